/* program.h: a program's command line as one table: what getopt takes, what --help prints, and the page for man(7). */
#ifndef CSSL_CONF_PROGRAM_H
#define CSSL_CONF_PROGRAM_H

#include <stdio.h>

struct program_option {
	const char *name;  /* without dashes */
	const char *value; /* what it takes; NULL: nothing */
	const char *help;
	char key; /* what program_next_option() returns; a small letter is a short option, too */
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

/* As getopt_long(3): the key of the next option (its value in optarg), -1 behind the last, '?' for a mistake, which is
 * printed. */
int program_next_option(const struct program *p, int argc, char **argv);
void program_print_help(const struct program *p, FILE *out);
void program_print_manual(const struct program *p, FILE *out);

#endif
