/* test_usage.c: help and manual contain all rows of the tables. */
#include <stdlib.h>
#include <string.h>

#include "csslctl/usage.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static char *printed(void (*print)(FILE *out))
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	print(out);
	fclose(out);
	return text;
}

static void has(const char *text, const char *what)
{
	ck_assert_msg(strstr(text, what) != NULL, "'%s' is missing", what);
}

START_TEST(the_help_has_every_command_and_common_option)
{
	size_t count;
	const struct command *all = commands(&count);
	char *text = printed(usage_print);
	for (size_t i = 0; i < count; i++) {
		has(text, all[i].name);
		has(text, all[i].help);
	}
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		if (option_row(o)->scope == OPTION_COMMON)
			has(text, option_row(o)->meaning);
	free(text);
}
END_TEST

/* @name with its dashes as roff wants them. */
static void has_in_roff(const char *text, const char *format, const char *name)
{
	char what[128], masked[256];
	size_t len = 0;
	snprintf(what, sizeof what, format, name);
	for (const char *p = what; *p != '\0'; p++) {
		if (*p == '-')
			masked[len++] = '\\';
		masked[len++] = *p;
	}
	masked[len] = '\0';
	has(text, masked);
}

START_TEST(the_manual_has_every_command_and_option)
{
	size_t count;
	const struct command *all = commands(&count);
	char *text = printed(manual_print);
	for (size_t i = 0; i < count; i++)
		has_in_roff(text, "\n.TP\n\\fB%s\\fR", all[i].name);
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		has_in_roff(text, "\\fB--%s\\fR", option_row(o)->name);
#define X(name, value, meaning) has(text, "\n.TP\n\\fB" #value "\\fR\n" meaning "\n");
	EXIT_CODES(X)
#undef X
	free(text);
}
END_TEST

START_TEST(a_synopsis_has_operands_and_options)
{
	char out[SYNOPSIS_MAX];
	synopsis_of(command_find("drain", 5), out);
	ck_assert_str_eq(out, "drain AGENT [--timeout TIME] [--wait]");
	synopsis_of(command_find("counters", 8), out);
	ck_assert_str_eq(out, "counters [PATTERN] [--agent NAME]");
}
END_TEST

START_TEST(no_synopsis_is_cut)
{
	size_t count;
	const struct command *all = commands(&count);
	char out[SYNOPSIS_MAX];
	for (size_t i = 0; i < count; i++) {
		synopsis_of(&all[i], out);
		ck_assert_msg(strlen(out) < SYNOPSIS_MAX - 1, "%s", all[i].name);
	}
}
END_TEST

START_TEST(a_first_word_tells_of_all_commands_that_begin_with_it)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	ck_assert_uint_eq(usage_print_group("sessions", out), 4);
	ck_assert_uint_eq(usage_print_group("session", out), 0);
	ck_assert_uint_eq(usage_print_group("status", out), 0);
	fclose(out);
	has(text, "usage: csslctl sessions show SESSION\n");
	has(text, "usage: csslctl sessions revoke ");
	free(text);
}
END_TEST

UNIT(usage)
{
	const TTest *facts[] = { the_help_has_every_command_and_common_option, the_manual_has_every_command_and_option,
		a_synopsis_has_operands_and_options, no_synopsis_is_cut,
		a_first_word_tells_of_all_commands_that_begin_with_it };
	return suite_run("usage", facts, SUITE_LEN(facts));
}
