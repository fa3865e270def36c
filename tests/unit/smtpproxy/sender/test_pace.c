/* test_pace.c: facts about the time for which a sender may let its receiver wait. */
#include "smtpproxy/sender/pace.h"

#include "tests/unit/proto/suite.h"

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

int main(void)
{
	const TTest *facts[] = {
		only_the_senders_own_time_counts,
		the_bytes_of_a_sender_give_it_time,
		a_turn_that_is_told_twice_counts_once,
	};
	return suite_run("pace", facts, SUITE_LEN(facts));
}
