/* test_arguments.c: facts of command lines. */
#include <string.h>

#include "csslctl/arguments.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct invocation in;
static char error[ARGUMENTS_ERROR_MAX];

/* The words of @line, which stay valid until the next call. */
static int parse(const char *line)
{
	static char copy[1024];
	static char *argv[32];
	int argc = 0;
	snprintf(copy, sizeof copy, "csslctl %s", line);
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	return arguments_parse(argc, argv, &in, error);
}

static void is_wrong(const char *line, const char *says)
{
	ck_assert_msg(parse(line) == CSSL_E_CONFIG, "'%s' was taken", line);
	ck_assert_msg(strstr(error, says) != NULL, "'%s': '%s' does not say '%s'", line, error, says);
}

START_TEST(a_command_of_one_word_is_found)
{
	ck_assert_int_eq(parse("status"), 0);
	ck_assert_str_eq(in.command->name, "status");
}
END_TEST

START_TEST(a_command_of_two_words_is_found)
{
	ck_assert_int_eq(parse("sessions count"), 0);
	ck_assert_str_eq(in.command->name, "sessions count");
	ck_assert_ptr_null(in.operands[0]);
}
END_TEST

START_TEST(options_stand_anywhere)
{
	ck_assert_int_eq(parse("--json drain --timeout=30s a1 --wait --socket s"), 0);
	ck_assert_str_eq(in.command->name, "drain");
	ck_assert_str_eq(in.operands[0], "a1");
	ck_assert_str_eq(in.options[OPTION_TIMEOUT], "30s");
	ck_assert_str_eq(in.options[OPTION_SOCKET], "s");
	ck_assert_ptr_nonnull(in.options[OPTION_JSON]);
	ck_assert_ptr_nonnull(in.options[OPTION_WAIT]);
	ck_assert_ptr_null(in.options[OPTION_DIR]);
}
END_TEST

START_TEST(a_value_may_look_like_an_option)
{
	ck_assert_int_eq(parse("sessions revoke --server-name --all"), 0);
	ck_assert_str_eq(in.options[OPTION_SERVER_NAME], "--all");
	ck_assert_ptr_null(in.options[OPTION_ALL]);
}
END_TEST

START_TEST(behind_two_dashes_all_is_operand)
{
	ck_assert_int_eq(parse("counters -- --json"), 0);
	ck_assert_str_eq(in.operands[0], "--json");
	ck_assert_ptr_null(in.options[OPTION_JSON]);
}
END_TEST

START_TEST(the_first_of_two_words_has_help)
{
	ck_assert_int_eq(parse("sessions --help"), 0);
	ck_assert_str_eq(in.command->name, "help");
	ck_assert_str_eq(in.operands[0], "sessions");
	ck_assert_ptr_null(in.options[OPTION_HELP]);
	is_wrong("sessions", "alone is no command");
	is_wrong("session --help", "no command");
}
END_TEST

START_TEST(a_dash_alone_is_an_operand)
{
	ck_assert_int_eq(parse("inspect -"), 0);
	ck_assert_str_eq(in.operands[0], "-");
}
END_TEST

START_TEST(optional_operands_may_be_absent)
{
	ck_assert_int_eq(parse("counters"), 0);
	ck_assert_ptr_null(in.operands[0]);
}
END_TEST

START_TEST(nothing_at_all_names_no_command)
{
	ck_assert_int_eq(parse(""), 0);
	ck_assert_ptr_null(in.command);
	ck_assert_int_eq(parse("--version"), 0);
	ck_assert_ptr_null(in.command);
}
END_TEST

START_TEST(help_needs_no_operand)
{
	ck_assert_int_eq(parse("drain --help"), 0);
	ck_assert_str_eq(in.command->name, "drain");
	ck_assert_int_eq(parse("drain -h"), 0);
	ck_assert_ptr_nonnull(in.options[OPTION_HELP]);
}
END_TEST

START_TEST(mistakes_are_named_with_their_remedy)
{
	is_wrong("statsu", "did you mean `csslctl status`?");
	is_wrong("frobnicate", "`csslctl help` lists them");
	is_wrong("sessions", "`csslctl sessions count`");
	is_wrong("sessions cuont", "`csslctl sessions count`");
	is_wrong("session list", "did you mean `csslctl sessions list`?");
	is_wrong("completion zsh", "'completion zsh' is no command; there is `csslctl completion bash`");
	is_wrong("drain", "AGENT is missing");
	is_wrong("move 4f2a", "AGENT is missing");
	is_wrong("status now", "'now' is too much");
	is_wrong("status --limit 3", "status takes no --limit");
	is_wrong("status --frob", "no option --frob");
	is_wrong("status -x", "no option -x");
	is_wrong("status --json=yes", "--json takes no value");
	is_wrong("status --socket", "--socket needs a value");
	is_wrong("status --json --json", "twice");
	is_wrong("a b c d e f g h i", "too many words");
}
END_TEST

START_TEST(an_argument_of_another_form_is_named_with_the_expected_form)
{
	is_wrong("sessions show zz",
		"sessions show: 'zz' is no session id: 64 hexadecimal digits; `csslctl help sessions show`");
	is_wrong("sessions list --tls 1.1", "sessions list: --tls: '1.1' is no version of TLS here: 1.2 or 1.3");
	is_wrong("weight a1 -1", "'-1' is no weight");
	is_wrong("move 4f2a a1/drain", "'a1/drain' is no name of an agent");
	ck_assert_int_eq(parse("sessions show zz --help"), 0);
}
END_TEST

START_TEST(an_empty_operand_is_none)
{
	char tool[] = "csslctl", command[] = "drain", nothing[] = "";
	char *const argv[] = { tool, command, nothing, NULL };
	ck_assert_int_eq(arguments_parse(3, argv, &in, error), CSSL_E_CONFIG);
	ck_assert_ptr_nonnull(strstr(error, "AGENT is empty"));
}
END_TEST

UNIT(arguments)
{
	const TTest *facts[] = { a_command_of_one_word_is_found, a_command_of_two_words_is_found,
		options_stand_anywhere, a_value_may_look_like_an_option, behind_two_dashes_all_is_operand,
		the_first_of_two_words_has_help, a_dash_alone_is_an_operand, optional_operands_may_be_absent,
		nothing_at_all_names_no_command, help_needs_no_operand, mistakes_are_named_with_their_remedy,
		an_argument_of_another_form_is_named_with_the_expected_form, an_empty_operand_is_none };
	return suite_run("arguments", facts, SUITE_LEN(facts));
}
