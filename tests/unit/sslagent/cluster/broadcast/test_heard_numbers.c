/* test_heard_numbers.c: compares the set of heard numbers with a plain array. */
#include <stdint.h>
#include <string.h>

#include "sslagent/cluster/broadcast/heard_numbers.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define NUMBERS 4000u

static uint32_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % below;
}

static uint64_t missing_in(const struct heard_numbers *h)
{
	uint64_t missing = 0;

	for (uint32_t i = 0; i < h->missing_count; i++) {
		ck_assert_uint_le(h->missing[i].first, h->missing[i].last);
		if (i > 0)
			ck_assert_uint_gt(h->missing[i].first, h->missing[i - 1].last + 1);
		missing += h->missing[i].last - h->missing[i].first + 1;
	}
	return missing;
}

START_TEST(numbers_in_order_leave_nothing_missing)
{
	struct heard_numbers h = { 0 };
	uint64_t missed = 0;

	for (uint64_t n = 1; n <= 100; n++)
		ck_assert_int_eq(heard_numbers_take(&h, n, &missed), 0);
	ck_assert_uint_eq(missed, 0);
	ck_assert_uint_eq(heard_numbers_complete(&h), 100);
	ck_assert_ptr_null(h.missing);
}
END_TEST

START_TEST(a_number_is_heard_once)
{
	struct heard_numbers h = { 0 };
	uint64_t missed = 0;

	heard_numbers_take(&h, 5, &missed);
	ck_assert_uint_eq(missed, 4);
	ck_assert_int_eq(heard_numbers_take(&h, 5, &missed), HEARD_BEFORE);
	ck_assert_int_eq(heard_numbers_take(&h, 3, &missed), 0);
	ck_assert_int_eq(heard_numbers_take(&h, 3, &missed), HEARD_BEFORE);
	ck_assert_uint_eq(heard_numbers_complete(&h), 0);
	free(h.missing);
}
END_TEST

START_TEST(any_order_is_as_good_as_an_array)
{
	for (unsigned round = 0; round < 50; round++) {
		struct heard_numbers h = { 0 };
		uint8_t heard[NUMBERS + 1] = { 0 };
		uint64_t missed = 0, count = 0;

		state = round;
		for (unsigned i = 0; i < 300; i++) {
			uint64_t n = 1 + draw(400);

			ck_assert_int_eq(heard_numbers_take(&h, n, &missed), heard[n] ? HEARD_BEFORE : 0);
			count += !heard[n];
			heard[n] = 1;
			ck_assert_uint_eq(missing_in(&h), h.highest - count);
		}
		free(h.missing);
	}
}
END_TEST

START_TEST(giving_up_counts_what_was_missing_below)
{
	struct heard_numbers h = { 0 };
	uint64_t missed = 0;

	heard_numbers_take(&h, 10, &missed);
	heard_numbers_take(&h, 20, &missed);
	ck_assert_uint_eq(heard_numbers_give_up(&h, 15), 9 + 4);
	ck_assert_uint_eq(missing_in(&h), 5);
	ck_assert_uint_eq(heard_numbers_complete(&h), 14);
	ck_assert_uint_eq(heard_numbers_give_up(&h, 100), 5);
	ck_assert_uint_eq(h.highest, 99);
	ck_assert_uint_eq(heard_numbers_give_up(&h, 50), 0);
	ck_assert_uint_eq(h.highest, 99);
	free(h.missing);
}
END_TEST

START_TEST(scattered_gaps_are_bounded_and_nothing_missing_is_forgotten)
{
	struct heard_numbers h = { 0 };
	uint64_t missed = 0;

	for (uint64_t n = 2; n <= NUMBERS; n += 2)
		heard_numbers_take(&h, n, &missed);
	ck_assert_uint_le(h.missing_count, MISSING_RUNS_MAX);
	for (uint64_t n = 1; n < NUMBERS; n += 2) {
		int is_missing = 0;

		for (uint32_t i = 0; i < h.missing_count; i++)
			is_missing |= h.missing[i].first <= n && n <= h.missing[i].last;
		ck_assert(is_missing);
	}
	for (uint64_t n = 1; n <= NUMBERS; n++)
		heard_numbers_take(&h, n, &missed);
	ck_assert_uint_eq(missing_in(&h), 0);
	free(h.missing);
}
END_TEST

START_TEST(splitting_gaps_is_bounded_too)
{
	struct heard_numbers h = { 0 };
	uint64_t missed = 0;

	heard_numbers_extend(&h, NUMBERS);
	for (uint64_t n = NUMBERS; n >= 2; n -= 2) /* every other, from above: each cuts the first gap */
		heard_numbers_take(&h, n, &missed);
	ck_assert_uint_le(h.missing_count, MISSING_RUNS_MAX);
	for (uint64_t n = 1; n <= NUMBERS; n++)
		heard_numbers_take(&h, n, &missed);
	ck_assert_uint_eq(missing_in(&h), 0);
	ck_assert_uint_eq(heard_numbers_complete(&h), NUMBERS);
	free(h.missing);
}
END_TEST

START_TEST(a_leap_of_numbers_costs_one_gap)
{
	struct heard_numbers h = { 0 };
	uint64_t missed = 0;

	heard_numbers_take(&h, UINT64_MAX, &missed);
	ck_assert_uint_eq(h.missing_count, 1);
	ck_assert_uint_eq(missed, UINT64_MAX - 1);
	heard_numbers_take(&h, UINT64_MAX - 1, &missed);
	ck_assert_uint_eq(h.missing_count, 1);
	free(h.missing);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, numbers_in_order_leave_nothing_missing);
	tcase_add_test(tcase, a_number_is_heard_once);
	tcase_add_test(tcase, any_order_is_as_good_as_an_array);
	tcase_add_test(tcase, giving_up_counts_what_was_missing_below);
	tcase_add_test(tcase, scattered_gaps_are_bounded_and_nothing_missing_is_forgotten);
	tcase_add_test(tcase, splitting_gaps_is_bounded_too);
	tcase_add_test(tcase, a_leap_of_numbers_costs_one_gap);
}

UNIT(heard_numbers)
{
	return run_suite("heard_numbers", add);
}
