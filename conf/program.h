/* program.h: a program's command line as one table, for getopt, for --help and for the manual page. */
#ifndef CSSL_CONF_PROGRAM_H
#define CSSL_CONF_PROGRAM_H

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
};

#define PROGRAM_OPTIONS_MAX 24u

/* Like getopt_long(3): returns the key of the next option (its value is in optarg), -1 after the last one, '?' for a
 * mistake, which is printed. */
int program_next_option(const struct program *p, int argc, char **argv);
void program_print_help(const struct program *p, FILE *out);
void program_print_manual(const struct program *p, FILE *out);

#endif
