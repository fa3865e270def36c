/* test_receiver_limit.c: facts of a limit that is learned from a receiver's refusals. */
#include "smtpproxy/outward/receiver_limit.h"

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct receiver_limit limit;

START_TEST(the_limit_begins_at_the_configured_ceiling)
{
	receiver_limit_init(&limit, 20, 1000);
	ck_assert(receiver_limit_allows(&limit, 19, 1000));
	ck_assert(!receiver_limit_allows(&limit, 20, 1000));
}
END_TEST

START_TEST(a_refusal_shows_how_many_the_receiver_takes)
{
	receiver_limit_init(&limit, 20, 0);
	receiver_limit_refused(&limit, 10, 5000);
	ck_assert_uint_eq(limit.limit, 10);
	ck_assert(receiver_limit_allows(&limit, 9, 5000));
	ck_assert(!receiver_limit_allows(&limit, 10, 5000));
}
END_TEST

START_TEST(a_late_refusal_does_not_hide_what_was_taken_since)
{
	receiver_limit_init(&limit, 20, 0);
	receiver_limit_refused(&limit, 8, 0);
	receiver_limit_taken(&limit, 9);
	receiver_limit_taken(&limit, 10);
	ck_assert_uint_eq(limit.limit, 10);
}
END_TEST

START_TEST(the_limit_rises_by_one_after_a_time_without_refusals)
{
	receiver_limit_init(&limit, 20, 0);
	receiver_limit_refused(&limit, 10, 0);
	ck_assert(!receiver_limit_allows(&limit, 10, RECEIVER_LIMIT_STEP_MS - 1));
	ck_assert_uint_eq(receiver_limit_wait_ms(&limit, RECEIVER_LIMIT_STEP_MS - 1), 1);
	ck_assert(receiver_limit_allows(&limit, 10, RECEIVER_LIMIT_STEP_MS));
	ck_assert(!receiver_limit_allows(&limit, 11, RECEIVER_LIMIT_STEP_MS));
}
END_TEST

START_TEST(the_limit_never_rises_above_the_configured_ceiling)
{
	receiver_limit_init(&limit, 2, 0);
	ck_assert(!receiver_limit_allows(&limit, 2, 100 * RECEIVER_LIMIT_STEP_MS));
	receiver_limit_taken(&limit, 5);
	ck_assert_uint_eq(limit.limit, 2);
}
END_TEST

START_TEST(at_the_ceiling_no_time_changes_anything)
{
	receiver_limit_init(&limit, 2, 0);
	ck_assert(!receiver_limit_allows(&limit, 2, 3 * RECEIVER_LIMIT_STEP_MS));
	ck_assert_uint_eq(receiver_limit_wait_ms(&limit, 3 * RECEIVER_LIMIT_STEP_MS), RECEIVER_LIMIT_NEVER);
	receiver_limit_init(&limit, 1, 0);
	receiver_limit_refused(&limit, 0, 1000);
	ck_assert_uint_eq(receiver_limit_wait_ms(&limit, 1000), RECEIVER_LIMIT_REST_MIN_MS);
	ck_assert_uint_eq(receiver_limit_wait_ms(&limit, 1000 + RECEIVER_LIMIT_REST_MIN_MS), RECEIVER_LIMIT_NEVER);
}
END_TEST

START_TEST(a_receiver_that_takes_nothing_is_left_alone_ever_longer)
{
	receiver_limit_init(&limit, 16, 0);
	receiver_limit_refused(&limit, 0, 1000);
	ck_assert_uint_eq(limit.limit, 8);
	ck_assert(!receiver_limit_allows(&limit, 0, 1000 + RECEIVER_LIMIT_REST_MIN_MS - 1));
	ck_assert(receiver_limit_allows(&limit, 0, 1000 + RECEIVER_LIMIT_REST_MIN_MS));
	receiver_limit_refused(&limit, 0, 2000);
	ck_assert_uint_eq(receiver_limit_wait_ms(&limit, 2000), 2 * RECEIVER_LIMIT_REST_MIN_MS);
	for (unsigned i = 0; i < 20; i++)
		receiver_limit_refused(&limit, 0, 3000);
	ck_assert_uint_eq(receiver_limit_wait_ms(&limit, 3000), RECEIVER_LIMIT_REST_MAX_MS);
	ck_assert_uint_eq(limit.limit, 1);
}
END_TEST

START_TEST(the_first_one_that_it_takes_ends_the_rest)
{
	receiver_limit_init(&limit, 16, 0);
	receiver_limit_refused(&limit, 0, 1000);
	receiver_limit_taken(&limit, 1);
	ck_assert(receiver_limit_allows(&limit, 1, 1001));
}
END_TEST

START_TEST(another_ceiling_keeps_what_was_learned)
{
	struct receiver_limit l;
	receiver_limit_init(&l, 20, 0);
	receiver_limit_set_ceiling(&l, 30);
	ck_assert_uint_eq(l.limit, 30); /* nothing was learned */
	receiver_limit_refused(&l, 10, 0);
	receiver_limit_set_ceiling(&l, 20);
	ck_assert_uint_eq(l.limit, 10);
	receiver_limit_set_ceiling(&l, 5);
	ck_assert_uint_eq(l.limit, 5);
}
END_TEST

UNIT(receiver_limit)
{
	const TTest *facts[] = {
		the_limit_begins_at_the_configured_ceiling,
		a_refusal_shows_how_many_the_receiver_takes,
		a_late_refusal_does_not_hide_what_was_taken_since,
		the_limit_rises_by_one_after_a_time_without_refusals,
		the_limit_never_rises_above_the_configured_ceiling,
		at_the_ceiling_no_time_changes_anything,
		a_receiver_that_takes_nothing_is_left_alone_ever_longer,
		the_first_one_that_it_takes_ends_the_rest,
		another_ceiling_keeps_what_was_learned,
	};
	return suite_run("receiver_limit", facts, SUITE_LEN(facts));
}
