/* test_heap_tide.c: facts of the end of a burst, and of the memory that goes back then. */
#include <stdlib.h>
#include <string.h>

#include "net/memory/heap_tide.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(a_burst_is_over_when_few_are_left)
{
	struct heap_tide t = { 0 };

	ck_assert(!heap_tide_is_over(&t, 1000, 1000, 1000));
	ck_assert(!heap_tide_is_over(&t, 1000, 600, 2000));
	ck_assert(heap_tide_is_over(&t, 600, 250, 3000));
	ck_assert(heap_tide_is_over(&t, 250, 0, 60000)); /* the rest of the burst */
	ck_assert(!heap_tide_is_over(&t, 0, 0, 120000));
}
END_TEST

START_TEST(a_burst_that_came_and_went_between_two_looks_is_one)
{
	struct heap_tide t = { 0 };

	ck_assert(heap_tide_is_over(&t, 1000, 0, 1000));
	ck_assert(!heap_tide_is_over(&t, 0, 0, 60000));
}
END_TEST

START_TEST(a_few_are_no_burst)
{
	struct heap_tide t = { 0 };

	ck_assert(!heap_tide_is_over(&t, HEAP_TIDE_HIGH - 1, HEAP_TIDE_HIGH - 1, 1000));
	ck_assert(!heap_tide_is_over(&t, 0, 0, 2000));
}
END_TEST

START_TEST(bursts_one_after_another_cost_no_more_than_one_in_a_while)
{
	struct heap_tide t = { 0 };
	unsigned times = 0;

	for (uint64_t ms = 0; ms < 100000; ms += 1000)
		times += (unsigned)heap_tide_is_over(&t, 1000, ms / 1000 % 2 ? 0 : 1000, ms + 1);
	ck_assert_uint_le(times, 100000 / HEAP_TIDE_EVERY_MS + 1);
	ck_assert_uint_ge(times, 8);
}
END_TEST

#ifndef CSSL_SANITIZED
START_TEST(pages_between_what_stays_go_back)
{
	enum { COUNT = 1000, LEN = 20000 };
	static void *stay[COUNT], *go[COUNT];
	uint64_t empty = resident_bytes();

	for (unsigned i = 0; i < COUNT; i++) {
		go[i] = malloc(LEN);
		memset(go[i], 1, LEN);
		stay[i] = malloc(64);
	}
	for (unsigned i = 0; i < COUNT; i++)
		free(go[i]);
	ck_assert_uint_gt(resident_bytes() - empty, COUNT * LEN / 2);
	ck_assert_uint_gt(heap_give_back(), COUNT * LEN / 2);
	for (unsigned i = 0; i < COUNT; i++)
		free(stay[i]);
}
END_TEST
#endif

UNIT(heap_tide)
{
	const TTest *const facts[] = {
		a_burst_is_over_when_few_are_left,
		a_burst_that_came_and_went_between_two_looks_is_one,
		a_few_are_no_burst,
		bursts_one_after_another_cost_no_more_than_one_in_a_while,
#ifndef CSSL_SANITIZED
		pages_between_what_stays_go_back,
#endif
	};

	return suite_run("heap_tide", facts, SUITE_LEN(facts));
}
