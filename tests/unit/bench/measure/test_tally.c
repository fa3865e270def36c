/* test_tally.c: facts of texts and how often each came. */
#include <stdio.h>
#include <string.h>

#include "bench/measure/tally.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define ROWS 16u

static struct tally rows[ROWS], sum[ROWS];

static void count(const char *text, uint64_t times)
{
	tally_row(rows, ROWS, text, strlen(text))->count += times;
}

static uint64_t counted(const struct tally *table, const char *text)
{
	for (unsigned i = 0; i < ROWS; i++) {
		if (strcmp(table[i].text, text) == 0)
			return table[i].count;
	}
	return 0;
}

START_TEST(a_text_is_one_row_and_its_beginning_another)
{
	count("handshake: cut", 1);
	count("handshake", 4);
	count("handshake: cut", 2);
	ck_assert_uint_eq(counted(rows, "handshake: cut"), 3);
	ck_assert_uint_eq(counted(rows, "handshake"), 4);
}
END_TEST

START_TEST(further_texts_of_a_full_table_are_others)
{
	char text[16];
	for (unsigned i = 0; i < ROWS + 5; i++) {
		snprintf(text, sizeof text, "error %u", i);
		count(text, 1);
	}
	ck_assert_uint_eq(counted(rows, "error 14"), 1);
	ck_assert_uint_eq(counted(rows, "others"), 6);
	tally_add(sum, rows, ROWS);
	tally_add(sum, rows, ROWS);
	ck_assert_uint_eq(counted(sum, "error 14"), 2);
	ck_assert_uint_eq(counted(sum, "others"), 12);
}
END_TEST

START_TEST(a_long_text_is_cut_and_stays_one_row)
{
	char text[2 * TALLY_TEXT_MAX];
	memset(text, 'x', sizeof text);
	for (int i = 0; i < 2; i++)
		tally_row(rows, ROWS, text, sizeof text)->count++;
	ck_assert_uint_eq(rows[0].count, 2);
	ck_assert_uint_eq(strlen(rows[0].text), TALLY_TEXT_MAX - 1);
	ck_assert_uint_eq(rows[1].count, 0);
}
END_TEST

START_TEST(texts_that_do_not_end_are_cut_when_they_are_added)
{
	memset(rows, 'x', sizeof rows);
	tally_add(sum, rows, ROWS);
	ck_assert_uint_eq(strlen(sum[0].text), TALLY_TEXT_MAX - 1);
	ck_assert_uint_eq(sum[0].count, ROWS * rows[0].count);
	ck_assert_str_eq(sum[1].text, "");
}
END_TEST

START_TEST(a_note_says_where_and_what)
{
	tally_note(rows, ROWS, "RCPT", "550 No");
	tally_note(rows, ROWS, "RCPT", "550 No");
	ck_assert_uint_eq(counted(rows, "RCPT: 550 No"), 2);
}
END_TEST

static void forget(void)
{
	memset(rows, 0, sizeof rows);
	memset(sum, 0, sizeof sum);
}

UNIT(tally)
{
	const TTest *facts[] = {
		a_text_is_one_row_and_its_beginning_another,
		further_texts_of_a_full_table_are_others,
		a_long_text_is_cut_and_stays_one_row,
		texts_that_do_not_end_are_cut_when_they_are_added,
		a_note_says_where_and_what,
	};
	return suite_run_with("tally", forget, facts, SUITE_LEN(facts));
}
