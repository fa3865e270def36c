/* test_histogram.c: facts of the histogram, most of them against exact percentiles of the same values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure/histogram.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

enum { VALUES = 100000 };

static const double percents[] = { 0, 0.001, 1, 25, 50, 75, 90, 99, 99.9, 99.99, 100 };

#define PERCENTS (sizeof(percents) / sizeof(percents[0]))

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* By its definition: the smallest value that so many do not exceed. */
static uint64_t exact_percentile(const uint64_t *sorted, size_t count, double percent)
{
	size_t rank = 1;

	while (rank < count && (double)rank * 100 < percent * (double)count)
		rank++;
	return sorted[rank - 1];
}

static void assert_is_near(uint64_t found, uint64_t exact)
{
	ck_assert_uint_ge(found, exact);
	ck_assert_uint_le((found - exact) * 1000, exact);
}

/* Values of @spread_bits different magnitudes. */
static uint64_t *make_values(struct histogram *h, uint64_t seed, unsigned spread_bits)
{
	uint64_t *values = calloc(VALUES, sizeof(*values)), x = seed;

	ck_assert_ptr_nonnull(values);
	for (size_t i = 0; i < VALUES; i++) {
		uint64_t random = next_random(&x);
		values[i] = random >> (64 - spread_bits) >> random % spread_bits;
		histogram_record(h, values[i]);
	}
	qsort(values, VALUES, sizeof(*values), by_value);
	return values;
}

static struct histogram *make_histogram(void)
{
	struct histogram *h = calloc(1, sizeof(*h));

	ck_assert_ptr_nonnull(h);
	return h;
}

START_TEST(percentiles_have_three_digits_over_nine_magnitudes)
{
	struct histogram *h = make_histogram();
	uint64_t *values = make_values(h, 88172645463325252u, 38);

	for (unsigned i = 0; i < PERCENTS; i++)
		assert_is_near(histogram_percentile(h, percents[i]), exact_percentile(values, VALUES, percents[i]));
	free(values);
	free(h);
}
END_TEST

START_TEST(small_values_are_exact)
{
	struct histogram *h = make_histogram();
	uint64_t *values = make_values(h, 1, 11);

	for (unsigned i = 0; i < PERCENTS; i++)
		ck_assert_uint_eq(histogram_percentile(h, percents[i]), exact_percentile(values, VALUES, percents[i]));
	free(values);
	free(h);
}
END_TEST

START_TEST(every_bucket_border_is_near_its_value)
{
	for (unsigned bit = 0; bit < HISTOGRAM_MAX_BITS; bit++) {
		for (int off = -1; off <= 1; off++) {
			uint64_t value = (UINT64_C(1) << bit) + (uint64_t)(int64_t)off;
			struct histogram *h = make_histogram();
			histogram_record(h, value);
			histogram_record(
				h, (UINT64_C(1) << HISTOGRAM_MAX_BITS) - 1); /* lifts the maximum out of the way */
			assert_is_near(histogram_percentile(h, 50), value);
			free(h);
		}
	}
}
END_TEST

START_TEST(merged_histograms_are_the_histogram_of_both)
{
	struct histogram *a = make_histogram(), *b = make_histogram(), *both = make_histogram();

	free(make_values(a, 2, 30));
	free(make_values(b, 3, 20));
	free(make_values(both, 2, 30));
	free(make_values(both, 3, 20));
	histogram_add(a, b);
	ck_assert_mem_eq(a, both, sizeof(*a));
	free(a);
	free(b);
	free(both);
}
END_TEST

START_TEST(an_empty_one_changes_nothing_when_merged)
{
	struct histogram *a = make_histogram(), *before = make_histogram(), *empty = make_histogram();

	histogram_record(a, 7);
	*before = *a;
	histogram_add(a, empty);
	ck_assert_mem_eq(a, before, sizeof(*a));
	histogram_add(empty, a);
	ck_assert_mem_eq(empty, before, sizeof(*a));
	free(a);
	free(before);
	free(empty);
}
END_TEST

START_TEST(an_empty_one_says_zero)
{
	struct histogram *h = make_histogram();

	ck_assert_uint_eq(histogram_percentile(h, 50), 0);
	ck_assert_double_eq(histogram_mean(h), 0);
	free(h);
}
END_TEST

START_TEST(extremes_and_mean_are_exact)
{
	struct histogram *h = make_histogram();

	histogram_record(h, 1000003);
	histogram_record(h, 3);
	histogram_record(h, 2000000);
	ck_assert_uint_eq(h->min, 3);
	ck_assert_uint_eq(h->max, 2000000);
	ck_assert_uint_eq(histogram_percentile(h, 100), 2000000);
	ck_assert_double_eq(histogram_mean(h), 3000006.0 / 3);
	free(h);
}
END_TEST

START_TEST(values_beyond_its_range_count_as_the_longest)
{
	struct histogram *h = make_histogram();

	histogram_record(h, UINT64_MAX);
	ck_assert_uint_eq(h->count, 1);
	ck_assert_uint_eq(h->max, (UINT64_C(1) << HISTOGRAM_MAX_BITS) - 1);
	ck_assert_uint_eq(histogram_percentile(h, 50), h->max);
	free(h);
}
END_TEST

START_TEST(one_with_fewer_values_than_it_says_has_an_end)
{
	struct histogram *h = make_histogram();

	histogram_record(h, 7);
	h->count = UINT64_MAX / 2;
	for (unsigned i = 0; i < PERCENTS; i++)
		ck_assert_uint_eq(histogram_percentile(h, percents[i]), 7);
	free(h);
}
END_TEST

UNIT(histogram)
{
	const TTest *facts[] = {
		percentiles_have_three_digits_over_nine_magnitudes,
		small_values_are_exact,
		every_bucket_border_is_near_its_value,
		merged_histograms_are_the_histogram_of_both,
		an_empty_one_changes_nothing_when_merged,
		an_empty_one_says_zero,
		extremes_and_mean_are_exact,
		values_beyond_its_range_count_as_the_longest,
		one_with_fewer_values_than_it_says_has_an_end,
	};

	return suite_run("histogram", facts, SUITE_LEN(facts));
}
