/* program.c: the table for getopt_long(3), for people, and for man(7). */
#include "conf/program.h"

#include <assert.h>
#include <ctype.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define HELP_COLUMN 24u

static bool is_short(char key)
{
	return key >= 'a' && key <= 'z';
}

int program_next_option(const struct program *p, int argc, char **argv)
{
	struct option longs[PROGRAM_OPTIONS_MAX + 1] = { 0 };
	char shorts[2 * PROGRAM_OPTIONS_MAX + 1], *s = shorts;

	for (unsigned i = 0; p->options[i].name; i++) {
		const struct program_option *o = &p->options[i];
		assert(i < PROGRAM_OPTIONS_MAX);
		longs[i] = (struct option){ o->name, o->value ? required_argument : no_argument, NULL, o->key };
		if (!is_short(o->key))
			continue;
		*s++ = o->key;
		if (o->value)
			*s++ = ':';
	}
	*s = '\0';
	return getopt_long(argc, argv, shorts, longs, NULL);
}

static void program_print_help(const struct program *p, FILE *out)
{
	fprintf(out, "usage: %s %s\n\n%s\n\n", p->name, p->synopsis, p->description);
	for (const struct program_option *o = p->options; o->name; o++) {
		int len = is_short(o->key) ? fprintf(out, "  -%c, --%s", o->key, o->name)
					   : fprintf(out, "      --%s", o->name);
		if (o->value)
			len += fprintf(out, " %s", o->value);
		fprintf(out, "%*s%s\n", len < (int)HELP_COLUMN ? (int)HELP_COLUMN - len : 1, "", o->help);
	}
	fprintf(out, "\n%s\n", p->signals);
}

static void program_print_option(const struct program_option *o, FILE *out)
{
	char name[64];

	if (is_short(o->key))
		snprintf(name, sizeof name, "-%c, --%s", o->key, o->name);
	else
		snprintf(name, sizeof name, "--%s", o->name);
	roff_tag(name, o->value, out);
	roff_line(o->help, out);
}

static void print_manual(const struct program *p, FILE *out)
{
	roff_page(p->name, p->section, p->version, p->summary, out);
	fputs(".SH SYNOPSIS\n\\fB", out);
	roff_text(p->name, ROFF_WITHIN_LINE, out);
	fputs("\\fR ", out);
	roff_line(p->synopsis, out);
	fputs(".SH DESCRIPTION\n", out);
	roff_line(p->description, out);
	fputs(".SH OPTIONS\n", out);
	for (const struct program_option *o = p->options; o->name; o++)
		program_print_option(o, out);
	fputs(".SH SIGNALS\n", out);
	roff_line(p->signals, out);
	fputs(".SH SEE ALSO\n", out);
	roff_line(p->see_also, out);
}

_Noreturn void program_answer(const struct program *p, int key)
{
	switch (key) {
	case 'H': p->help_config(stdout); exit(EXIT_SUCCESS);
	case 'M': print_manual(p, stdout); exit(EXIT_SUCCESS);
	case 'h': program_print_help(p, stdout); exit(EXIT_SUCCESS);
	case 'V': printf("%s %s\n", p->name, p->version); exit(EXIT_SUCCESS);
	default: program_print_help(p, stderr); exit(EXIT_FAILURE);
	}
}

/* --- man(7) --- */

void roff_text(const char *text, enum roff_place at, FILE *out)
{
	if (at == ROFF_LINE_START && (*text == '.' || *text == '\''))
		fputs("\\&", out);
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			fputs("\\e", out);
		else if (*text == '-')
			fputs("\\-", out);
		else
			fputc(*text, out);
	}
}

void roff_line(const char *text, FILE *out)
{
	roff_text(text, ROFF_LINE_START, out);
	fputc('\n', out);
}

void roff_tag(const char *bold, const char *italic, FILE *out)
{
	fputs(".TP\n\\fB", out);
	roff_text(bold, ROFF_WITHIN_LINE, out);
	fputs("\\fR", out);
	if (italic) {
		fputs(" \\fI", out);
		roff_text(italic, ROFF_WITHIN_LINE, out);
		fputs("\\fR", out);
	}
	fputc('\n', out);
}

void roff_page(const char *name, unsigned section, const char *version, const char *summary, FILE *out)
{
	fputs(".TH ", out);
	for (const char *c = name; *c != '\0'; c++)
		fputc(toupper((unsigned char)*c), out);
	fprintf(out, " %u \"\" \"CSSL %s\" \"CSSL\"\n.SH NAME\n", section, version);
	roff_text(name, ROFF_LINE_START, out);
	fputs(" \\- ", out);
	roff_line(summary, out);
}
