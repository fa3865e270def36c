/* test_load_report.c: facts of how a generator's own effort is judged. */
#include "bench/load/load_result.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MS 1000000u

static enum load_effort effort(uint64_t cpu_ms, uint64_t waiting_ms)
{
	static struct load_result r; /* a megabyte */

	r.cpu_ns = cpu_ms * MS;
	r.waiting_ns = waiting_ms * MS;
	r.wall_ns = 1000 * (uint64_t)MS;
	return load_effort_of(&r);
}

START_TEST(one_that_rests_is_at_ease)
{
	ck_assert_int_eq(effort(700, 100), LOAD_AT_EASE);
	ck_assert_int_eq(effort(0, 0), LOAD_AT_EASE);
}
END_TEST

START_TEST(one_that_always_computes_is_saturated)
{
	ck_assert_int_eq(effort(950, 0), LOAD_SATURATED);
	ck_assert_int_eq(effort(950, 50), LOAD_SATURATED);
}
END_TEST

START_TEST(one_that_waits_for_a_cpu_instead_of_resting_is_starved)
{
	ck_assert_int_eq(effort(500, 450), LOAD_STARVED);
}
END_TEST

START_TEST(one_that_never_ran_is_at_ease)
{
	static const struct load_result r;

	ck_assert_int_eq(load_effort_of(&r), LOAD_AT_EASE);
}
END_TEST

UNIT(load_report)
{
	const TTest *const facts[] = {
		one_that_rests_is_at_ease,
		one_that_always_computes_is_saturated,
		one_that_waits_for_a_cpu_instead_of_resting_is_starved,
		one_that_never_ran_is_at_ease,
	};

	return suite_run("load_report", facts, SUITE_LEN(facts));
}
