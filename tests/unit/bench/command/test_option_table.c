/* test_option_table.c: facts of command lines that are tables. */
#include "bench/command/option_table.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

struct options {
	uint64_t count, pause_ms;
	const char *name;
	unsigned loud, word;
	double real;
};

static const struct option_row rows[] = {
	{ .help = "A heading" },
	OPTION_NUMBER('n', "count", "N", struct options, count, 1, 10, 1, "so many"),
	OPTION_NUMBER(0, "pause", "S", struct options, pause_ms, 0, 5, 1000, "between"),
	OPTION_TEXT('m', "name", "TEXT", struct options, name, "of it"),
	OPTION_FLAG('l', "loud", struct options, loud, 2, "noise"),
	OPTION_WORD(0, "word", "no|yes|perhaps", struct options, word, "one of three"),
	{ 0, "real", "R", "any number", option_set_real, offsetof(struct options, real), 0, 1 },
};
static const struct option_command command = { "test", "About it.\n", "The end.\n", rows, sizeof rows / sizeof rows[0],
	OPTIONS_AND_WORDS };

static struct options o;

static enum option_parse parse(char **argv, int argc)
{
	memset(&o, 0, sizeof o);
	return option_table_parse(&command, argc, argv, &o);
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
	ck_assert_int_eq(PARSE("--word", "ye"), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--word", ""), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--word", "no|yes"), OPTIONS_BAD);
	ck_assert_int_eq(PARSE("--real", "1.5"), OPTIONS_BAD);
}
END_TEST

START_TEST(word_is_stored_as_its_number)
{
	ck_assert_int_eq(PARSE("--word", "perhaps", "--real", "0.5"), OPTIONS_PARSED);
	ck_assert_uint_eq(o.word, 2);
	ck_assert(o.real == 0.5);
	ck_assert_int_eq(PARSE("--word", "no"), OPTIONS_PARSED);
	ck_assert_uint_eq(o.word, 0);
}
END_TEST

START_TEST(words_behind_the_options_are_refused_where_none_belongs)
{
	struct option_command without = command;

	without.takes = OPTIONS_ONLY;
	ck_assert_int_eq(option_table_parse(&without, 2, (char **)WORDS("rest"), &o), OPTIONS_BAD);
	ck_assert_int_eq(option_table_parse(&without, 2, (char **)WORDS("-l"), &o), OPTIONS_PARSED);
}
END_TEST

START_TEST(help_lists_every_row)
{
	char text[4096];
	FILE *out = tmpfile();
	const int before = dup(STDOUT_FILENO);

	fflush(stdout);
	dup2(fileno(out), STDOUT_FILENO);
	const enum option_parse asked = PARSE("--help");
	fflush(stdout);
	dup2(before, STDOUT_FILENO);
	close(before);
	rewind(out);
	text[fread(text, 1, sizeof text - 1, out)] = 0;
	fclose(out);
	ck_assert_int_eq(asked, OPTIONS_HELP);
	ck_assert(strstr(text, "A heading\n") && strstr(text, "-n --count N") && strstr(text, "   --pause S"));
	ck_assert(strstr(text, "About it.\n") == text && strstr(text, "The end.\n"));
	ck_assert_int_eq(PARSE("-h"), OPTIONS_HELP);
}
END_TEST

UNIT(option_table)
{
	const TTest *facts[] = { long_and_short_options_are_the_same, bad_values_are_refused,
		word_is_stored_as_its_number, words_behind_the_options_are_refused_where_none_belongs,
		help_lists_every_row };
	return suite_run("option_table", facts, SUITE_LEN(facts));
}
