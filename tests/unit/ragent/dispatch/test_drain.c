/* test_drain.c: facts of one agent's drain. */
#include <string.h>

#include "ragent/dispatch/drain.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct drain d;

static struct drain_report report(uint64_t now_ms, uint64_t held)
{
	struct drain_report r;

	drain_describe(&d, now_ms, held, &r);
	return r;
}

static void begin(void)
{
	memset(&d, 0, sizeof d);
	drain_begin(&d, DRAIN_BY_OPERATOR, 1000, 500, 10);
}

START_TEST(a_drain_is_over_when_nothing_is_left)
{
	begin();
	ck_assert_int_eq(drain_settle(&d, 1100, 1), 0);
	ck_assert_int_eq(drain_state(&d), DRAIN_UNDER_WAY);
	ck_assert_int_eq(drain_settle(&d, 1200, 0), 1);
	ck_assert_int_eq(drain_settle(&d, 1200, 0), 0);
	ck_assert_int_eq(drain_state(&d), DRAIN_DONE);
}
END_TEST

START_TEST(a_drain_times_out_with_what_is_left)
{
	begin();
	ck_assert_uint_eq(drain_left_ms(&d, 1400), 100);
	ck_assert_int_eq(drain_settle(&d, 1499, 1), 0);
	ck_assert_int_eq(drain_settle(&d, 1500, 1), 1);
	ck_assert_int_eq(drain_state(&d), DRAIN_TIMED_OUT);
	ck_assert_uint_eq(drain_left_ms(&d, 1600), 0);
	ck_assert_int_eq(drain_settle(&d, 1600, 0), 0); /* and stays so */
	ck_assert_str_eq(report(1700, 0).state, "timed out");
}
END_TEST

START_TEST(the_time_of_a_drain_stands_still_when_it_is_over)
{
	begin();
	ck_assert_uint_eq(report(1200, 1).elapsed_ms, 200);
	drain_settle(&d, 1300, 0);
	ck_assert_uint_eq(report(9000, 0).elapsed_ms, 300);
}
END_TEST

START_TEST(figures_add_up)
{
	begin();
	drain_note_moved(&d, 300);
	drain_note_moved(&d, 900);
	drain_note_moved(&d, 100);
	drain_note_rested(&d);
	drain_note_ended(&d);
	struct drain_report r = report(1200, 5);
	ck_assert_str_eq(r.state, "draining");
	ck_assert_str_eq(r.reason, "operator");
	ck_assert_uint_eq(r.total, 10);
	ck_assert_uint_eq(r.left, 5);
	ck_assert_uint_eq(r.moved, 3);
	ck_assert_uint_eq(r.rested, 1);
	ck_assert_uint_eq(r.ended, 1);
	ck_assert_uint_eq(r.longest_pause_us, 900);
	ck_assert_uint_eq(r.summed_pause_us, 1300);
}
END_TEST

START_TEST(a_drain_that_begins_while_it_is_under_way_gets_another_deadline_only)
{
	begin();
	drain_note_moved(&d, 300);
	drain_begin(&d, DRAIN_BY_OPERATOR, 1400, 5000, 3);
	ck_assert_uint_eq(drain_left_ms(&d, 1400), 5000);
	ck_assert_uint_eq(report(1500, 3).elapsed_ms, 500);
	ck_assert_uint_eq(report(1500, 3).total, 10);
	ck_assert_uint_eq(report(1500, 3).moved, 1);
}
END_TEST

START_TEST(a_drain_that_begins_anew_counts_anew)
{
	begin();
	drain_note_moved(&d, 300);
	drain_settle(&d, 1500, 2);
	drain_begin(&d, DRAIN_LEAVING, 2000, 500, 2);
	struct drain_report r = report(2100, 2);
	ck_assert_str_eq(r.reason, "leaving");
	ck_assert_uint_eq(r.elapsed_ms, 100);
	ck_assert_uint_eq(r.total, 2);
	ck_assert_uint_eq(r.moved + r.longest_pause_us + r.summed_pause_us, 0);
}
END_TEST

START_TEST(a_drain_that_ended_tells_nothing)
{
	begin();
	drain_end(&d);
	drain_end(&d);
	struct drain_report r = report(1200, 7);
	ck_assert_str_eq(r.state, "none");
	ck_assert_ptr_null(r.reason);
	ck_assert_uint_eq(r.total + r.left + r.elapsed_ms, 0);
}
END_TEST

START_TEST(a_drain_goes_where_the_drawing_says)
{
	static const struct {
		enum drain_state from, to;
	} arrows[] = {
		{ DRAIN_NONE, DRAIN_UNDER_WAY },
		{ DRAIN_UNDER_WAY, DRAIN_DONE },
		{ DRAIN_UNDER_WAY, DRAIN_TIMED_OUT },
		{ DRAIN_DONE, DRAIN_UNDER_WAY },
		{ DRAIN_TIMED_OUT, DRAIN_UNDER_WAY },
		{ DRAIN_UNDER_WAY, DRAIN_NONE },
		{ DRAIN_DONE, DRAIN_NONE },
		{ DRAIN_TIMED_OUT, DRAIN_NONE },
	};
	unsigned legal = 0;

	for (unsigned from = 0; from < DRAIN_STATE_COUNT; from++)
		for (unsigned to = 0; to < DRAIN_STATE_COUNT; to++)
			legal += (unsigned)drain_may_go((enum drain_state)from, (enum drain_state)to);
	ck_assert_uint_eq(legal, SUITE_LEN(arrows));
	for (size_t i = 0; i < SUITE_LEN(arrows); i++)
		ck_assert_int_eq(drain_may_go(arrows[i].from, arrows[i].to), 1);
}
END_TEST

UNIT(drain)
{
	const TTest *const facts[] = {
		a_drain_is_over_when_nothing_is_left,
		a_drain_times_out_with_what_is_left,
		the_time_of_a_drain_stands_still_when_it_is_over,
		figures_add_up,
		a_drain_that_begins_while_it_is_under_way_gets_another_deadline_only,
		a_drain_that_begins_anew_counts_anew,
		a_drain_that_ended_tells_nothing,
		a_drain_goes_where_the_drawing_says,
	};

	return suite_run("drain", facts, SUITE_LEN(facts));
}
