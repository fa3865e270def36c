/* test_table.c: facts of columns, widths and characters that a terminal must not get. */
#include "csslctl/ask.h"
#include "csslctl/table.h"
#include "csslctl/text.h"
#include "tests/unit/csslctl/printed.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct column two[] = { { "NAME" }, { "SIZE", COLUMN_RIGHT } };

static void prints(struct table *t, int colour, const char *expected)
{
	struct printed p;
	printed_begin(&p);
	p.screen.colour = colour ? SCREEN_COLOUR : SCREEN_BLACK_AND_WHITE;
	table_print(t, &p.screen);
	table_destroy(t);
	char *text = printed_end(&p);
	ck_assert_str_eq(text, expected);
	free(text);
}

START_TEST(columns_are_as_wide_as_the_widest)
{
	struct table *t = table_create(two, 2);
	table_cell(t, STYLE_PLAIN, "a");
	table_cell(t, STYLE_PLAIN, "%d", 1);
	table_cell(t, STYLE_PLAIN, "longer");
	table_cell(t, STYLE_PLAIN, "%d", 123456);
	prints(t, 0, "NAME      SIZE\na            1\nlonger  123456\n");
}
END_TEST

START_TEST(without_rows_only_the_head_stands_there)
{
	prints(table_create(two, 2), 0, "NAME  SIZE\n");
}
END_TEST

START_TEST(no_line_ends_in_blanks)
{
	static const struct column left[] = { { "A" }, { "B" }, { "C" } };
	struct table *t = table_create(left, 3);
	table_cell(t, STYLE_PLAIN, "x");
	table_cell(t, STYLE_PLAIN, "%s", "");
	table_cell(t, STYLE_PLAIN, "%s", "");
	table_cell(t, STYLE_PLAIN, "%s", "");
	table_cell(t, STYLE_PLAIN, "%s", "");
	table_cell(t, STYLE_PLAIN, "wide");
	prints(t, 0, "A  B  C\nx\n      wide\n");
}
END_TEST

START_TEST(letters_count_not_bytes)
{
	struct table *t = table_create(two, 2);
	table_cell(t, STYLE_PLAIN,
		"b\xc3\xbc"
		"cher");
	table_cell(t, STYLE_PLAIN, "1");
	table_cell(t, STYLE_PLAIN, "e\xcc\x81"); /* e and a combining accent */
	table_cell(t, STYLE_PLAIN, "2");
	table_cell(t, STYLE_PLAIN, "\xe6\x97\xa5\xe6\x9c\xac"); /* two letters, two columns each */
	table_cell(t, STYLE_PLAIN, "3");
	prints(t, 0,
		"NAME    SIZE\n"
		"b\xc3\xbc"
		"cher     1\n"
		"e\xcc\x81          2\n"
		"\xe6\x97\xa5\xe6\x9c\xac       3\n");
}
END_TEST

START_TEST(control_characters_and_broken_utf_8_do_no_harm)
{
	struct table *t = facts_create();
	facts_add(t, "name", STYLE_PLAIN, "%s", "a\033[31mb\n\xff\xc3.\x7f\xc2\x9b");
	prints(t, 0, "name  a?[31mb???.???\n");
}
END_TEST

/* A mail server or a client chooses names: "txt.exe" must not look like "exe.txt". */
START_TEST(marks_that_turn_text_do_no_harm)
{
	static const char *const marks[] = { "\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xaa",
		"\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9" };
	for (size_t i = 0; i < SUITE_LEN(marks); i++) {
		char text[16];
		snprintf(text, sizeof text, "a%sb", marks[i]);
		ck_assert_uint_eq(text_clean(text), 2 + strlen(marks[i]));
		ck_assert_str_eq(text, i == 0 ? "a??b" : "a???b");
	}
}
END_TEST

START_TEST(json_for_a_terminal_is_ascii)
{
	struct printed p;
	struct invocation in = { 0 };
	json_t *value = json_pack("[s]", "\xc2\x9b\xe2\x80\xae");
	printed_begin(&p);
	in.screen = p.screen;
	show_json(&in, value);
	json_decref(value);
	char *text = printed_end(&p);
	ck_assert_str_eq(text, "[\n  \"\\u009B\\u202E\"\n]\n");
	free(text);
}
END_TEST

START_TEST(colour_is_outside_of_the_width)
{
	struct table *t = table_create(two, 2);
	table_cell(t, STYLE_GOOD, "up");
	table_cell(t, STYLE_BAD, "7");
	prints(t, 1,
		"\033[1mNAME\033[0m  \033[1mSIZE\033[0m\n"
		"\033[32mup\033[0m       \033[31m7\033[0m\n");
}
END_TEST

START_TEST(many_rows_are_no_problem)
{
	struct printed p;
	struct table *t = table_create(two, 2);
	for (int i = 0; i < 5000; i++) {
		table_cell(t, STYLE_PLAIN, "%d", i);
		table_cell(t, STYLE_PLAIN, "%d", -i);
	}
	printed_begin(&p);
	table_print(t, &p.screen);
	table_destroy(t);
	char *text = printed_end(&p);
	ck_assert_uint_eq(p.len, 5001 * strlen("4999  -4999\n"));
	free(text);
}
END_TEST

UNIT(table)
{
	const TTest *facts[] = { columns_are_as_wide_as_the_widest, without_rows_only_the_head_stands_there,
		no_line_ends_in_blanks, letters_count_not_bytes, control_characters_and_broken_utf_8_do_no_harm,
		marks_that_turn_text_do_no_harm, json_for_a_terminal_is_ascii, colour_is_outside_of_the_width,
		many_rows_are_no_problem };
	return suite_run_with("table", text_locale, facts, SUITE_LEN(facts));
}
