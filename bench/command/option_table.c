/* option_table.c: getopt_long with its tables made from the rows. */
#include "bench/command/option_table.h"

#include <assert.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

#define LONG(i) ((int)(256 + (i))) /* the value that getopt_long returns for row i */
#define HELP    1

/* The number, within its bounds. */
static int read_number(const struct option_row *row, const char *value, double *out)
{
	char *end;
	*out = strtod(value, &end);
	return end == value || *end || !(*out >= row->min && *out <= row->max) ? CSSL_E_RANGE : 0;
}

int option_set_number(void *options, const struct option_row *row, const char *value)
{
	double n;
	int r = read_number(row, value, &n);
	if (r == 0 && row->unit == 1 && n != floor(n))
		r = CSSL_E_RANGE;
	if (r == 0)
		*(uint64_t *)option_member(options, row) = (uint64_t)(n * row->unit);
	return r;
}

int option_set_real(void *options, const struct option_row *row, const char *value)
{
	return read_number(row, value, option_member(options, row));
}

int option_set_text(void *options, const struct option_row *row, const char *value)
{
	*(const char **)option_member(options, row) = value;
	return value[0] && !strpbrk(value, "\r\n") ? 0 : CSSL_E_CONFIG;
}

int option_set_flag(void *options, const struct option_row *row, const char *value)
{
	*(unsigned *)option_member(options, row) = (unsigned)row->unit;
	return 0;
}

int option_set_word(void *options, const struct option_row *row, const char *value)
{
	unsigned number = (unsigned)row->unit;
	for (const char *word = row->value; *word; number++) {
		const size_t len = strcspn(word, "|");
		if (strlen(value) == len && memcmp(word, value, len) == 0) {
			*(unsigned *)option_member(options, row) = number;
			return 0;
		}
		word += len + (word[len] == '|');
	}
	return CSSL_E_CONFIG;
}

static void getopt_tables(const struct option_command *c, struct option *longs, char *letters)
{
	for (unsigned i = 0; i < c->count; i++) {
		const struct option_row *row = &c->rows[i];
		if (!row->name)
			continue;
		*longs++ = (struct option){ row->name, row->value ? required_argument : no_argument, NULL, LONG(i) };
		if (!row->letter)
			continue;
		*letters++ = row->letter;
		if (row->value)
			*letters++ = ':';
	}
	*letters++ = 'h'; /* getopt takes the first match: a row may use this letter */
	*letters = 0;
	*longs++ = (struct option){ "help", no_argument, NULL, HELP };
	*longs = (struct option){ NULL, 0, NULL, 0 };
}

static const struct option_row *find_row(const struct option_command *c, int option)
{
	for (unsigned i = 0; i < c->count; i++) {
		if (c->rows[i].name && (option == LONG(i) || c->rows[i].letter == option))
			return &c->rows[i];
	}
	return NULL;
}

static void option_print_help(const struct option_command *c)
{
	fputs(c->about, stdout);
	for (unsigned i = 0; i < c->count; i++) {
		const struct option_row *row = &c->rows[i];
		char left[48];
		if (!row->name) {
			printf("\n%s\n", row->help);
			continue;
		}
		snprintf(left, sizeof left, "--%s%s%s", row->name, row->value ? " " : "", row->value ? row->value : "");
		printf("  %c%c %-28s %s\n", row->letter ? '-' : ' ', row->letter ? row->letter : ' ', left, row->help);
	}
	fputs(c->end ? c->end : "", stdout);
}

enum option_parse option_table_parse(const struct option_command *c, int argc, char **argv, void *options)
{
	struct option longs[OPTION_ROWS_MAX + 2];
	char letters[2 * OPTION_ROWS_MAX + 2];
	int option;
	assert(c->count <= OPTION_ROWS_MAX);
	getopt_tables(c, longs, letters);
	optind = 1;
	while ((option = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		const struct option_row *row = find_row(c, option);
		if (option == HELP || (option == 'h' && !row)) {
			option_print_help(c);
			return OPTIONS_HELP;
		}
		if (!row)
			return OPTIONS_BAD;
		if (row->set(options, row, optarg)) {
			fprintf(stderr, "%s: --%s: bad value '%s'\n", c->name, row->name, optarg);
			return OPTIONS_BAD;
		}
	}
	if (c->takes == OPTIONS_AND_WORDS || optind == argc)
		return OPTIONS_PARSED;
	fprintf(stderr, "%s: unexpected '%s'\n", c->name, argv[optind]);
	return OPTIONS_BAD;
}
