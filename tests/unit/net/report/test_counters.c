/* test_counters.c: facts of counters. */
#include <pthread.h>

#include "net/report/counters.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define ADDS 1000000u

static counter made, level;

START_TEST(counter_adds_and_gauge_is_set)
{
	counter_add(&made, 2);
	counter_add(&made, 3);
	ck_assert_uint_eq(counter_get(&made), 5);
	counter_set(&level, 7);
	counter_set(&level, 4);
	ck_assert_uint_eq(counter_get(&level), 4);
}
END_TEST

static void *add_many(void *arg)
{
	for (unsigned i = 0; i < ADDS; i++)
		counter_add(&made, 1);
	return arg;
}

START_TEST(readers_see_a_counter_grow_while_its_thread_writes)
{
	pthread_t thread;
	uint64_t last = 0;

	pthread_create(&thread, NULL, add_many, NULL);
	while (last < ADDS) {
		uint64_t now = counter_get(&made);
		if (now < last)
			ck_abort_msg("a counter went back");
		last = now;
	}
	pthread_join(thread, NULL);
	ck_assert_uint_eq(counter_get(&made), ADDS);
}
END_TEST

UNIT(counters)
{
	const TTest *facts[] = { counter_adds_and_gauge_is_set, readers_see_a_counter_grow_while_its_thread_writes };
	return suite_run("counters", facts, SUITE_LEN(facts));
}
