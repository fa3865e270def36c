/* test_option_table.c: facts of command lines that are tables. */
#include "bench/command/option_table.h"

#include <getopt.h>
#include <stdint.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

struct options {
	uint64_t count, pause_ms;
	const char *name;
	unsigned loud;
};

static const struct option_row rows[] = {
	{ .help = "A heading" },
	OPTION_NUMBER('n', "count", "N", struct options, count, 1, 10, 1, "so many"),
	OPTION_NUMBER(0, "pause", "S", struct options, pause_ms, 0, 5, 1000, "between"),
	OPTION_TEXT('m', "name", "TEXT", struct options, name, "of it"),
	OPTION_FLAG('l', "loud", struct options, loud, 2, "noise"),
};
#define ROWS (sizeof rows / sizeof rows[0])

static struct options o;

static enum option_parse parse(char **argv, int argc)
{
	memset(&o, 0, sizeof o);
	return option_table_parse("test", rows, ROWS, argc, argv, &o);
}

#define WORDS(...) ((const char *[]){ "x", __VA_ARGS__, NULL })
#define PARSE(...) parse((char **)WORDS(__VA_ARGS__), (int)(sizeof WORDS(__VA_ARGS__) / sizeof(char *)) - 1)

START_TEST(long_and_short_options_are_the_same)
{
	ck_assert_int_eq(PARSE("--count", "3", "--pause", "0.25", "--name", "a", "--loud", "rest"), OPTIONS_PARSED);
	ck_assert_uint_eq(o.count, 3);
	ck_assert_uint_eq(o.pause_ms, 250);
	ck_assert_str_eq(o.name, "a");
	ck_assert_uint_eq(o.loud, 2);
	ck_assert_int_eq(optind, 8);
	ck_assert_int_eq(PARSE("-n3", "-ma", "-l"), OPTIONS_PARSED);
	ck_assert_uint_eq(o.count, 3);
	ck_assert_uint_eq(o.loud, 2);
}
END_TEST

START_TEST(bad_values_are_refused)
{
	ck_assert_int_eq(PARSE("--count", "0"), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--count", "11"), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--count", "1.5"), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--count", "3x"), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--name", ""), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--name", "a\nb"), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--nothing"), OPTIONS_BAD);
}
END_TEST

START_TEST(help_lists_every_row)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	option_table_help(out, rows, ROWS);
	fclose(out);
	ck_assert(strstr(text, "A heading\n") && strstr(text, "-n --count N") && strstr(text, "   --pause S"));
	free(text);
	ck_assert_int_eq(PARSE("--help"), OPTIONS_HELP);
	ck_assert_int_eq(PARSE("-h"), OPTIONS_HELP);
}
END_TEST

UNIT(option_table)
{
	const TTest *facts[] = { long_and_short_options_are_the_same, bad_values_are_refused, help_lists_every_row };
	return suite_run("option_table", facts, SUITE_LEN(facts));
}
