/* test_partials.c: facts of clients that hold back a part of a record. */
#include <string.h>

#include "ragent/connection/limits/partials.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define BUDGET (64u * 1024u * 1024u)

static struct partials all;
static struct partial at[4];

static void begin(void)
{
	partials_init(&all, BUDGET);
	memset(at, 0, sizeof at);
}

static void note(unsigned i, size_t len, uint64_t now_ms)
{
	partials_note(&all, &at[i], len, PARTIAL_SAME_RECORD, now_ms);
}

START_TEST(a_record_that_is_not_whole_in_time_goes)
{
	begin();
	note(0, 100, 1000);
	ck_assert_ptr_null(partials_victim(&all, 1000 + PARTIALS_LIMIT_MS));
	ck_assert_ptr_eq(partials_victim(&all, 1001 + PARTIALS_LIMIT_MS), &at[0]);
}
END_TEST

START_TEST(more_bytes_of_the_same_record_do_not_buy_time)
{
	begin();
	note(0, 100, 1000);
	note(0, 200, 20000);
	ck_assert_uint_eq(all.len, 200);
	ck_assert_ptr_eq(partials_victim(&all, 1001 + PARTIALS_LIMIT_MS), &at[0]);
}
END_TEST

START_TEST(the_next_record_begins_a_new_time_behind_the_others)
{
	begin();
	note(0, 100, 1000);
	note(1, 100, 2000);
	partials_note(&all, &at[0], 50, PARTIAL_NEW_RECORD, 3000);
	ck_assert_uint_eq(all.len, 150);
	ck_assert_ptr_eq(partials_victim(&all, 2001 + PARTIALS_LIMIT_MS), &at[1]);
	note(1, 0, 4000);
	ck_assert_ptr_null(partials_victim(&all, 2001 + PARTIALS_LIMIT_MS));
	ck_assert_ptr_eq(partials_victim(&all, 3001 + PARTIALS_LIMIT_MS), &at[0]);
}
END_TEST

START_TEST(above_the_budget_the_oldest_goes_until_the_rest_fits)
{
	begin();
	note(0, BUDGET / 2, 1000);
	note(1, 10, 1001);
	note(2, BUDGET / 2, 1002);
	ck_assert_ptr_eq(partials_victim(&all, 1002), &at[0]);
	note(0, 0, 1002);
	ck_assert_ptr_null(partials_victim(&all, 1002));
	note(3, BUDGET / 2, 1003);
	ck_assert_ptr_eq(partials_victim(&all, 1003), &at[1]);
}
END_TEST

START_TEST(leaving_in_any_order_leaves_nothing)
{
	static const unsigned orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 }, { 1, 2, 0 } };

	for (size_t o = 0; o < SUITE_LEN(orders); o++) {
		begin();
		for (unsigned i = 0; i < 3; i++)
			note(i, 10 + i, i);
		for (unsigned i = 0; i < 3; i++)
			note(orders[o][i], 0, 10);
		ck_assert_uint_eq(all.len, 0);
		ck_assert_ptr_null(TAILQ_FIRST(&all.by_age));
		note(3, 5, 20);
		ck_assert_ptr_eq(TAILQ_FIRST(&all.by_age), &at[3]);
		note(3, 0, 20);
	}
}
END_TEST

UNIT(partials)
{
	const TTest *const facts[] = {
		a_record_that_is_not_whole_in_time_goes,
		more_bytes_of_the_same_record_do_not_buy_time,
		the_next_record_begins_a_new_time_behind_the_others,
		above_the_budget_the_oldest_goes_until_the_rest_fits,
		leaving_in_any_order_leaves_nothing,
	};

	return suite_run("partials", facts, SUITE_LEN(facts));
}
