/* test_pace.c: facts of moments at a bounded rate. */
#include "ragent/connection/limits/pace.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct pace p;

/* How many of @count that ask at @now_ms may begin within @within_ms. */
static unsigned begin_within(unsigned count, uint64_t now_ms, uint64_t within_ms)
{
	unsigned begun = 0;

	while (count--)
		begun += pace_delay_ms(&p, now_ms) <= within_ms;
	return begun;
}

START_TEST(without_a_rate_nobody_waits)
{
	pace_init(&p, 0, 4);
	ck_assert_uint_eq(begin_within(100000, 5, 0), 100000);
}
END_TEST

START_TEST(a_burst_begins_at_once_and_the_others_at_the_rate)
{
	pace_init(&p, 1000, 1);
	ck_assert_uint_eq(begin_within(51, 7000, 0), 51);
	ck_assert_uint_eq(begin_within(2000, 7000, 1000), 1000);
}
END_TEST

START_TEST(later_ones_queue_behind_those_who_wait)
{
	pace_init(&p, 100, 1);
	begin_within(106, 1000, 0); /* 100 of them wait, up to a second */
	uint64_t delay_ms = pace_delay_ms(&p, 1500);
	ck_assert_uint_ge(delay_ms, 500);
	ck_assert_uint_le(delay_ms, 520);
}
END_TEST

START_TEST(time_without_takers_is_not_saved_up)
{
	pace_init(&p, 1000, 1);
	ck_assert_uint_eq(begin_within(51, 1000, 0), 51);
	ck_assert_uint_eq(begin_within(100, 3600000, 0), 51);
}
END_TEST

START_TEST(workers_share_the_rate)
{
	pace_init(&p, 1000, 4);
	ck_assert_uint_eq(begin_within(1000, 1000, 1000), (1000 + 50) / 4 + 1);
}
END_TEST

START_TEST(one_may_always_begin)
{
	pace_init(&p, 1, 8);
	ck_assert_uint_eq(begin_within(1, 1000, 0), 1);
	ck_assert_uint_eq(pace_delay_ms(&p, 1000), 7950);
}
END_TEST

UNIT(pace)
{
	const TTest *const facts[] = {
		without_a_rate_nobody_waits,
		a_burst_begins_at_once_and_the_others_at_the_rate,
		later_ones_queue_behind_those_who_wait,
		time_without_takers_is_not_saved_up,
		workers_share_the_rate,
		one_may_always_begin,
	};

	return suite_run("pace", facts, SUITE_LEN(facts));
}
