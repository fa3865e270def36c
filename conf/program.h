/* program.h: a program's command line as one table, for getopt, for --help and for the manual page. */
#pragma once

#include <stdio.h>

struct program_option {
	const char *name;  /* without dashes */
	const char *value; /* the name of its value; NULL: it has none */
	const char *help;
	char key; /* the result of program_next_option(); a small letter is also the short option */
};

struct program {
	const char *name;
	unsigned section; /* of the manual */
	const char *version;
	const char *summary;                  /* a line */
	const char *synopsis;                 /* behind the name */
	const char *description;              /* a paragraph */
	const struct program_option *options; /* a row without name ends them */
	const char *signals;                  /* a paragraph */
	const char *see_also;
	void (*help_config)(FILE *out); /* prints every key of the program's file */
};

#define PROGRAM_OPTIONS_MAX 24u

/* The last rows of a daemon's options. @file: what its configuration is called. */
#define PROGRAM_QUESTIONS(file)                                                                                        \
	{ "help-config", NULL, "describe every key of the " file, 'H' },                                               \
		{ "manual", NULL, "print the manual page, for man(7)", 'M' },                                          \
		{ "help", NULL, "print this text", 'h' }, { "version", NULL, "print the version", 'V' },               \
	{                                                                                                              \
		0                                                                                                      \
	}

/* Like getopt_long(3): returns the key of the next option (its value is in optarg), -1 after the last one, '?' for a
 * mistake, which is printed. */
int program_next_option(const struct program *p, int argc, char **argv);
/* For the key of a PROGRAM_QUESTIONS: prints the answer and exits the process in order. Any other key is a mistake:
 * prints the help to standard error and exits with a failure. */
_Noreturn void program_answer(const struct program *p, int key);

/* Text in the macros of man(7). Characters that roff would interpret are escaped. */

/* The head of a page, as for "RAGENT" 8, and its section NAME. */
void roff_page(const char *name, unsigned section, const char *version, const char *summary, FILE *out);
/* A part of a line; with ROFF_LINE_START its beginning. */
enum roff_place { ROFF_WITHIN_LINE, ROFF_LINE_START };
void roff_text(const char *text, enum roff_place at, FILE *out);
/* A whole line. */
void roff_line(const char *text, FILE *out);
/* The name of a tagged paragraph: "--config FILE" with the one in bold, the other (or NULL) in italics. */
void roff_tag(const char *bold, const char *italic, FILE *out);
