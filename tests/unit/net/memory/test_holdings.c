/* test_holdings.c: facts of a budget of bytes, and of the holder with most of it. */
#include <stdlib.h>
#include <string.h>

#include "net/memory/holdings.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct holdings all;
static struct holding holders[16];

static void start(uint64_t limit)
{
	memset(holders, 0, sizeof holders);
	holdings_init(&all, limit);
}

START_TEST(the_sum_follows_each_holder)
{
	start(0);
	holdings_set(&all, &holders[0], 100);
	holdings_set(&all, &holders[1], 5000);
	holdings_set(&all, &holders[0], 70000);
	ck_assert_uint_eq(all.len, 75000);
	holdings_set(&all, &holders[0], 0);
	holdings_set(&all, &holders[1], 0);
	ck_assert_uint_eq(all.len, 0);
}
END_TEST

START_TEST(within_the_budget_nobody_has_to_give)
{
	start(1000);
	holdings_set(&all, &holders[0], 1000);
	ck_assert_ptr_null(holdings_greatest(&all));
	holdings_set(&all, &holders[1], 1);
	ck_assert_ptr_eq(holdings_greatest(&all), &holders[0]);
}
END_TEST

START_TEST(without_a_budget_nobody_ever_has)
{
	start(0);
	holdings_set(&all, &holders[0], UINT32_MAX);
	ck_assert_ptr_null(holdings_greatest(&all));
}
END_TEST

START_TEST(the_largest_holder_is_found_however_it_grew)
{
	start(1);
	for (unsigned i = 0; i < 16; i++)
		holdings_set(&all, &holders[i], 512u << i);
	for (unsigned i = 16; i-- > 0;) {
		ck_assert_ptr_eq(holdings_greatest(&all), &holders[i]);
		holdings_set(&all, &holders[i], 0);
	}
	ck_assert_ptr_null(holdings_greatest(&all));
}
END_TEST

START_TEST(among_equals_who_held_it_first_goes_first)
{
	start(1);
	for (unsigned i = 0; i < 4; i++)
		holdings_set(&all, &holders[i], 65000 + i);
	holdings_set(&all, &holders[0], 64000); /* as much, roughly */
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_ptr_eq(holdings_greatest(&all), &holders[i]);
		holdings_set(&all, &holders[i], 10);
	}
}
END_TEST

START_TEST(any_order_keeps_the_sum)
{
	uint64_t sum;

	start(1);
	srand(1);
	for (unsigned n = 0; n < 20000; n++) {
		holdings_set(&all, &holders[rand() % 16], rand() % 4 ? (size_t)rand() % 3000000 : 0);
		sum = 0;
		uint32_t most = 0;
		for (unsigned i = 0; i < 16; i++) {
			sum += holders[i].len;
			most = holders[i].len > most ? holders[i].len : most;
		}
		ck_assert_uint_eq(all.len, sum);
		const struct holding *greatest = holdings_greatest(&all);
		ck_assert(sum <= 1 ? !greatest : greatest && greatest->len >= most / 2);
	}
}
END_TEST

UNIT(holdings)
{
	const TTest *const facts[] = {
		the_sum_follows_each_holder,
		within_the_budget_nobody_has_to_give,
		without_a_budget_nobody_ever_has,
		the_largest_holder_is_found_however_it_grew,
		among_equals_who_held_it_first_goes_first,
		any_order_keeps_the_sum,
	};

	return suite_run("holdings", facts, SUITE_LEN(facts));
}
