/* test_peer_clock.c: facts of how far a peer's clock is from ours. */
#include "sslagent/cluster/broadcast/peer_clock.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

/* The peer's clock is ours less 1,000,000. */
#define REMOTE(ours) ((ours)-1000000)

START_TEST(a_time_is_never_taken_for_later_than_it_was)
{
	struct peer_clock c = { 0 };

	/* asked at 100, answered at 130 of ours, here at 140 */
	peer_clock_answered(&c, 100, REMOTE(130), 140);
	ck_assert_int_le(peer_clock_local(&c, REMOTE(120), 1000), 120);
	ck_assert_int_ge(peer_clock_local(&c, REMOTE(120), 1000), 120 - 40);
}
END_TEST

START_TEST(a_quicker_answer_makes_it_better_and_a_slower_does_not_make_it_worse)
{
	struct peer_clock c = { 0 };

	peer_clock_answered(&c, 0, REMOTE(100), 200);
	ck_assert_int_eq(peer_clock_local(&c, REMOTE(150), 200), 50);
	peer_clock_answered(&c, 200, REMOTE(201), 202);
	ck_assert_int_eq(peer_clock_local(&c, REMOTE(150), 202), 149);
	peer_clock_answered(&c, 300, REMOTE(500), 700);
	ck_assert_int_ge(peer_clock_local(&c, REMOTE(150), 700), 148);
}
END_TEST

START_TEST(nothing_is_later_than_now)
{
	struct peer_clock c = { 0 };

	peer_clock_answered(&c, 100, REMOTE(100), 100);
	ck_assert_int_eq(peer_clock_local(&c, REMOTE(5000), 200), 200);
	ck_assert_int_eq(peer_clock_local(&c, INT64_MAX, 200), 200);
	ck_assert_int_lt(peer_clock_local(&c, INT64_MIN, 200), 0);
}
END_TEST

START_TEST(after_either_side_slept_the_clocks_are_compared_anew)
{
	struct peer_clock c = { 0 };

	peer_clock_answered(&c, 100, REMOTE(100), 101);
	/* this machine slept an hour: its clock stood still, the peer's did not */
	peer_clock_answered(&c, 200, REMOTE(200) + 3600000, 201);
	ck_assert_int_le(peer_clock_local(&c, REMOTE(200) + 3600000, 300), 200);
	ck_assert_int_ge(peer_clock_local(&c, REMOTE(200) + 3600000, 300), 198);
	/* and now the peer's machine did */
	peer_clock_answered(&c, 400, REMOTE(400), 401);
	ck_assert_int_ge(peer_clock_local(&c, REMOTE(400), 500), 398);
}
END_TEST

START_TEST(an_old_bound_is_loosened_for_drift)
{
	struct peer_clock c = { 0 };

	peer_clock_answered(&c, 0, REMOTE(0), 0);
	ck_assert_int_le(peer_clock_local(&c, REMOTE(1000000), 2000000), 998001);
}
END_TEST

START_TEST(no_time_a_peer_tells_overflows)
{
	struct peer_clock c = { 0 };

	peer_clock_answered(&c, 100, INT64_MAX, 200);
	peer_clock_answered(&c, 100, INT64_MIN, 200);
	ck_assert_int_le(peer_clock_local(&c, INT64_MAX, 200), 200);
	peer_clock_local(&c, INT64_MIN, 200);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, a_time_is_never_taken_for_later_than_it_was);
	tcase_add_test(tcase, a_quicker_answer_makes_it_better_and_a_slower_does_not_make_it_worse);
	tcase_add_test(tcase, nothing_is_later_than_now);
	tcase_add_test(tcase, after_either_side_slept_the_clocks_are_compared_anew);
	tcase_add_test(tcase, an_old_bound_is_loosened_for_drift);
	tcase_add_test(tcase, no_time_a_peer_tells_overflows);
}

UNIT(peer_clock)
{
	return run_suite("peer_clock", add);
}
