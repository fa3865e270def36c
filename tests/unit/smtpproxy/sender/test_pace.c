/* test_pace.c: facts about the time for which a sender may let its receiver wait. */
#include "smtpproxy/sender/pace.h"

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct pace_rules rules = { .patience_ms = 1000, .least_rate = 100 };

START_TEST(only_the_senders_own_time_counts)
{
	struct pace p = { 0 };
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 999999), 1000);
	pace_set_turn(&p, PACE_SENDER, 5000);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 5400), 600);
	pace_set_turn(&p, PACE_RECEIVER, 5400);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 99999), 600);
	pace_set_turn(&p, PACE_SENDER, 100000);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 100599), 1);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 100600), 0);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 200000), 0);
}
END_TEST

START_TEST(the_bytes_of_a_sender_give_it_time)
{
	struct pace p = { 0 };
	pace_set_turn(&p, PACE_SENDER, 0);
	pace_count(&p, 50);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 0), 1500);
	pace_count(&p, 1u << 30);
	ck_assert_uint_gt(pace_left_ms(&p, &rules, 1u << 30), 1u << 30);
}
END_TEST

START_TEST(a_turn_that_is_told_twice_counts_once)
{
	struct pace p = { 0 };
	pace_set_turn(&p, PACE_SENDER, 100);
	pace_set_turn(&p, PACE_SENDER, 300);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 600), 500);
}
END_TEST

START_TEST(a_fast_beginning_pays_for_no_later_pause)
{
	struct pace p = { 0 };
	pace_set_turn(&p, PACE_SENDER, 0);
	pace_count(&p, 1u << 30);
	pace_settle(&p, &rules, 700);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 700), 1000);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 1699), 1);
	ck_assert_uint_eq(pace_left_ms(&p, &rules, 1700), 0);
}
END_TEST

START_TEST(all_of_a_senders_time_is_known_whatever_it_sent)
{
	struct pace p = { 0 };
	pace_set_turn(&p, PACE_SENDER, 1000);
	pace_count(&p, 1u << 20);
	pace_settle(&p, &rules, 1400);
	ck_assert_uint_eq(pace_all_ms(&p, 1500), 500);
	pace_set_turn(&p, PACE_RECEIVER, 1600);
	pace_settle(&p, &rules, 2000);
	ck_assert_uint_eq(pace_all_ms(&p, 9000), 600);
	pace_set_turn(&p, PACE_SENDER, 9000);
	ck_assert_uint_eq(pace_all_ms(&p, 9400), 1000);
}
END_TEST

START_TEST(a_slow_sender_cannot_settle_its_debt)
{
	struct pace p = { 0 };
	pace_set_turn(&p, PACE_SENDER, 0);
	for (uint64_t ms = 100; ms <= 2000; ms += 100) { /* half of the least rate */
		pace_count(&p, 5);
		pace_settle(&p, &rules, ms);
		ck_assert_uint_eq(pace_left_ms(&p, &rules, ms), 1000 - ms / 2);
	}
}
END_TEST

UNIT(pace)
{
	const TTest *facts[] = {
		only_the_senders_own_time_counts,
		the_bytes_of_a_sender_give_it_time,
		a_turn_that_is_told_twice_counts_once,
		a_fast_beginning_pays_for_no_later_pause,
		all_of_a_senders_time_is_known_whatever_it_sent,
		a_slow_sender_cannot_settle_its_debt,
	};
	return suite_run("pace", facts, SUITE_LEN(facts));
}
