/* test_time_counters.c: facts of times counted by their length. */
#include <string.h>

#include "net/report/time_counters.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define PAUSE_BUCKETS(B, X, name)                                                                                      \
	B(X, name, 2ms, 2000, "up to 2 ms")                                                                            \
	B(X, name, 1s, 1000000, "up to 1 s")
#define ROWS(X)                                                                                                        \
	X(before, MONOTONIC, "another counter")                                                                        \
	TIME_ROWS(X, pauses, PAUSE_BUCKETS)                                                                            \
	X(after, MONOTONIC, "another counter")

static const struct time_bucket buckets[] = TIME_BUCKETS(PAUSE_BUCKETS);
static const struct counter_row table[] = {
#define X(name, kind, help) { #name, help, COUNTER_##kind },
	ROWS(X)
#undef X
};

struct counted {
#define X(name, kind, help) counter name;
	ROWS(X)
#undef X
};

START_TEST(each_bucket_is_a_row_of_the_table)
{
	ck_assert_uint_eq(sizeof table / sizeof table[0], 5);
	ck_assert_str_eq(table[1].name, "pauses_2ms");
	ck_assert_str_eq(table[2].name, "pauses_1s");
	ck_assert_str_eq(table[2].help, "up to 1 s");
	ck_assert_str_eq(table[3].name, "pauses_longer");
	ck_assert_str_eq(buckets[2].suffix, "longer");
}
END_TEST

START_TEST(a_limit_belongs_to_its_bucket)
{
	struct counted c;
	memset(&c, 0, sizeof c);
	time_counters_add(&c.pauses_2ms, buckets, 0);
	time_counters_add(&c.pauses_2ms, buckets, 2000);
	time_counters_add(&c.pauses_2ms, buckets, 2001);
	time_counters_add(&c.pauses_2ms, buckets, 1000001);
	time_counters_add(&c.pauses_2ms, buckets, UINT64_MAX);
	ck_assert_uint_eq(counter_get(&c.before), 0);
	ck_assert_uint_eq(counter_get(&c.pauses_2ms), 2);
	ck_assert_uint_eq(counter_get(&c.pauses_1s), 1);
	ck_assert_uint_eq(counter_get(&c.pauses_longer), 2);
	ck_assert_uint_eq(counter_get(&c.after), 0);
}
END_TEST

UNIT(time_counters)
{
	const TTest *facts[] = { each_bucket_is_a_row_of_the_table, a_limit_belongs_to_its_bucket };
	return suite_run("time_counters", facts, SUITE_LEN(facts));
}
