/* test_commands.c: facts that every row of the table keeps, so that parser, help and completion may rely on them. */
#include <string.h>

#include "csslctl/command.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct command *all;
static size_t count;

static void take_table(void)
{
	all = commands(&count);
}

START_TEST(every_command_has_a_name_a_meaning_and_a_function)
{
	for (size_t i = 0; i < count; i++) {
		ck_assert_ptr_nonnull(all[i].name);
		ck_assert_ptr_nonnull(all[i].help);
		ck_assert_msg(all[i].run || (all[i].path && (all[i].show || all[i].columns)), "%s", all[i].name);
		ck_assert_msg(all[i].help[strlen(all[i].help) - 1] != '.', "%s", all[i].name);
	}
}
END_TEST

START_TEST(every_command_is_found_by_its_name)
{
	for (size_t i = 0; i < count; i++)
		ck_assert_ptr_eq(command_find(all[i].name, strlen(all[i].name)), &all[i]);
	ck_assert_ptr_null(command_find("stat", 4));
	ck_assert_ptr_null(command_find("", 0));
}
END_TEST

START_TEST(required_operands_stand_before_optional_ones)
{
	for (size_t i = 0; i < count; i++)
		for (unsigned j = 1; j < OPERANDS_MAX && all[i].operands[j].name; j++) {
			ck_assert_ptr_nonnull(all[i].operands[j - 1].name);
			ck_assert_msg(
				all[i].operands[j].presence >= all[i].operands[j - 1].presence, "%s", all[i].name);
		}
}
END_TEST

START_TEST(options_of_a_command_are_its_own_and_end)
{
	for (size_t i = 0; i < count; i++) {
		unsigned j = 0;
		for (; j < COMMAND_OPTIONS_MAX && all[i].options[j] != OPTION_NONE; j++)
			ck_assert_int_eq(option_row(all[i].options[j])->scope, OPTION_OF_COMMAND);
		ck_assert_msg(j < COMMAND_OPTIONS_MAX, "%s", all[i].name);
	}
}
END_TEST

START_TEST(every_option_belongs_to_something)
{
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++) {
		unsigned takers = 0;
		for (size_t i = 0; i < count; i++)
			takers += command_takes(&all[i], o) != 0;
		ck_assert_msg(takers > 0, "--%s", option_row(o)->name);
	}
}
END_TEST

/* The completion goes through the rows in their order. */
START_TEST(commands_with_one_first_word_stand_together)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 2; j < count; j++) {
			const size_t len = strcspn(all[i].name, " ");
			if (all[i].name[len] == ' ' && strncmp(all[i].name, all[j].name, len + 1) == 0)
				ck_assert_int_eq(strncmp(all[j - 1].name, all[i].name, len + 1), 0);
		}
}
END_TEST

START_TEST(every_option_is_found_by_its_name)
{
	for (enum option o = OPTION_NONE + 1; o < OPTION_COUNT; o++)
		ck_assert_int_eq(option_find(option_row(o)->name, strlen(option_row(o)->name)), o);
	ck_assert_int_eq(option_find("js", 2), OPTION_NONE);
	ck_assert_int_eq(option_find("", 0), OPTION_NONE);
}
END_TEST

UNIT(commands)
{
	const TTest *facts[] = { every_command_has_a_name_a_meaning_and_a_function, every_command_is_found_by_its_name,
		required_operands_stand_before_optional_ones, options_of_a_command_are_its_own_and_end,
		every_option_belongs_to_something, commands_with_one_first_word_stand_together,
		every_option_is_found_by_its_name };
	return suite_run_with("commands", take_table, facts, SUITE_LEN(facts));
}
