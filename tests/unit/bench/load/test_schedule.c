/* test_schedule.c: facts of due times, ramps and mixes. */
#include "bench/load/schedule.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define S UINT64_C(1000000000)

START_TEST(without_a_ramp_requests_are_due_evenly)
{
	const struct schedule s = { .rate = 1000 };

	for (uint64_t i = 0; i < 5000; i++)
		ck_assert_uint_eq((schedule_due_ns(&s, i) + 500) / 1000000, i);
}
END_TEST

START_TEST(a_ramp_makes_half_of_the_requests_of_full_speed)
{
	const struct schedule s = { .rate = 1000, .ramp_ns = 4 * S };

	ck_assert_uint_eq(schedule_due_ns(&s, 0), 0);
	ck_assert_uint_eq(schedule_due_ns(&s, 500), 2 * S); /* a quarter in the first half */
	ck_assert_uint_eq(schedule_due_ns(&s, 2000), 4 * S);
	ck_assert_uint_eq(schedule_due_ns(&s, 3000), 5 * S);
}
END_TEST

START_TEST(due_times_never_go_back)
{
	const struct schedule s = { .rate = 777.7, .ramp_ns = 3 * S };
	uint64_t before = 0;

	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t due = schedule_due_ns(&s, i);
		ck_assert_uint_ge(due, before);
		before = due;
	}
}
END_TEST

START_TEST(clients_start_evenly_over_the_ramp)
{
	ck_assert_uint_eq(schedule_start_ns(10 * S, 0, 5), 0);
	ck_assert_uint_eq(schedule_start_ns(10 * S, 1, 5), 2 * S);
	ck_assert_uint_eq(schedule_start_ns(10 * S, 4, 5), 8 * S);
	ck_assert_uint_eq(schedule_start_ns(0, 4, 5), 0);
}
END_TEST

START_TEST(a_mix_offers_nothing_first_and_then_the_session)
{
	struct mix m;
	static const int expected[] = { 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0 };

	ck_assert_int_eq(mix_parse("2:3", &m), 0);
	ck_assert_uint_eq(mix_cycle(&m), 5);
	for (unsigned i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		ck_assert_int_eq(mix_offers(&m, i), expected[i]);
}
END_TEST

START_TEST(a_mix_of_one_kind_is_only_that)
{
	struct mix full, resumed;

	ck_assert_int_eq(mix_parse("1:0", &full), 0);
	ck_assert_int_eq(mix_parse("0:1", &resumed), 0);
	for (unsigned i = 0; i < 10; i++) {
		ck_assert_int_eq(mix_offers(&full, i), 0);
		ck_assert_int_eq(mix_offers(&resumed, i), 1);
	}
}
END_TEST

START_TEST(a_malformed_mix_is_refused)
{
	static const char *const bad[] = { "", ":", "1", "1:", ":1", "0:0", "-1:2", "1:-2", "1:2:3", "1:2 ", " 1:2",
		"a:b", "1000001:1" };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mix m = { 7, 8 };
		ck_assert_int_eq(mix_parse(bad[i], &m), CSSL_E_RANGE);
		ck_assert_uint_eq(m.full, 7);
	}
}
END_TEST

START_TEST(the_shares_of_all_processes_are_the_whole)
{
	for (uint64_t total = 0; total < 50; total++) {
		for (unsigned processes = 1; processes < 9; processes++) {
			uint64_t sum = 0;
			for (unsigned i = 0; i < processes; i++)
				sum += schedule_share(total, i, processes);
			ck_assert_uint_eq(sum, total);
			ck_assert_uint_le(
				schedule_share(total, 0, processes) - schedule_share(total, processes - 1, processes),
				1);
		}
	}
}
END_TEST

UNIT(schedule)
{
	const TTest *facts[] = {
		without_a_ramp_requests_are_due_evenly,
		a_ramp_makes_half_of_the_requests_of_full_speed,
		due_times_never_go_back,
		clients_start_evenly_over_the_ramp,
		a_mix_offers_nothing_first_and_then_the_session,
		a_mix_of_one_kind_is_only_that,
		a_malformed_mix_is_refused,
		the_shares_of_all_processes_are_the_whole,
	};

	return suite_run("schedule", facts, SUITE_LEN(facts));
}
