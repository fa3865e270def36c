/* manual.c: the schema for people: as text, and as cssl.yaml(5) in the macros of man(7). */
#include "conf/schema.h"

#include <string.h>

#include "conf/conf.h"
#include "conf/program.h"
#include "conf/smtpproxy.h"
#include "conf/value.h"

#define HELP_WIDTH 112u
#define WHAT_MAX   (VALUE_EXPECTED_MAX + 64u)

/* "a list, each an address; required; default 5s" */
static const char *manual_describe(const struct schema_row *row, char out[static WHAT_MAX])
{
	char expected[VALUE_EXPECTED_MAX];
	const char *what = row->type == SCHEMA_MAP ? "a map"
			   : row->type == SCHEMA_LIST
				   ? "a list of maps"
				   : value_expected(row, row->type == SCHEMA_ITEMS ? row->item : row->type, expected);

	snprintf(out, WHAT_MAX, "%s%s%s%s%s", row->type == SCHEMA_ITEMS ? "a list, each " : "", what,
		row->presence == SCHEMA_REQUIRED ? "; required" : "", row->fallback ? "; default " : "",
		row->fallback ? row->fallback : "");
	return out;
}

/* --- as text --- */

static void print_indent(FILE *out, unsigned depth)
{
	fprintf(out, "%*s", (int)(2 * depth), "");
}

/* Words of @text, filled into lines. */
static void print_wrapped(FILE *out, unsigned depth, const char *text)
{
	size_t column = HELP_WIDTH;
	for (const char *word = text; *word != '\0';) {
		const size_t len = strcspn(word, " ");
		if (column + 1 + len > HELP_WIDTH) {
			if (word != text)
				fputc('\n', out);
			print_indent(out, depth);
			column = 2 * depth;
		} else {
			fputc(' ', out);
			column++;
		}
		fwrite(word, 1, len, out);
		column += len;
		word += len + (word[len] == ' ');
	}
	fputc('\n', out);
}

static void print_map(FILE *out, const struct schema_map *map, unsigned depth)
{
	char what[WHAT_MAX];

	for (const struct schema_row *row = map->rows; row->key; row++) {
		print_indent(out, depth);
		fprintf(out, "%s: %s\n", row->key, manual_describe(row, what));
		print_wrapped(out, depth + 2, row->help);
		/* one that stands in two places (limits, health) is described at the first */
		if (row->map && row->presence != SCHEMA_INHERITED)
			print_map(out, row->map, depth + 1);
	}
}

void conf_help_print(FILE *out)
{
	print_map(out, &schema_cluster, 0);
}

void conf_smtpproxy_help_print(FILE *out)
{
	print_map(out, &schema_smtpproxy, 0);
}

/* --- as cssl.yaml(5) --- */

static void print_rows(const struct schema_map *map, FILE *out)
{
	char what[WHAT_MAX];

	for (const struct schema_row *row = map->rows; row->key; row++) {
		roff_tag(row->key, NULL, out);
		roff_line(row->help, out);
		fputs(".br\n\\fI", out);
		roff_text(manual_describe(row, what), ROFF_WITHIN_LINE, out);
		fputs("\\fR\n", out);
		if (!row->map || row->presence == SCHEMA_INHERITED)
			continue;
		fputs(".RS\n", out);
		print_rows(row->map, out);
		fputs(".RE\n", out);
	}
}

void conf_manual_print(FILE *out, const char *version)
{
	roff_page("cssl.yaml", 5, version, "the cluster file of CSSL", out);
	fputs(".SH DESCRIPTION\n", out);
	roff_line("One YAML file describes a cluster. Every process reads the same file and finds its own name in it. "
		  "Relative paths are relative to the file's folder. Durations have units (200ms, 3s, 5min, 2h, 1d), "
		  "sizes too (64KiB, 256MiB). An unknown key or a bad value is an error that names file, line, key and "
		  "what was expected.",
		out);
	fputs(".SH KEYS\n", out);
	print_rows(&schema_cluster, out);
	fputs(".SH SEE ALSO\nragent(8), sslagent(8), csslctl(1)\n", out);
}
