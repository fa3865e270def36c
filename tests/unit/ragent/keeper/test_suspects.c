/* test_suspects.c: facts of sources that crash RAgent. */
#include <stddef.h>

#include "net/limits/admission.h"
#include "ragent/keeper/suspects.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct suspects suspects;

static struct client_address source(uint8_t last)
{
	return (struct client_address){ .bytes = { 192, 0, 2, last }, .len = 4 };
}

static void begin(void)
{
	suspects = (struct suspects){ 0 };
}

START_TEST(a_source_is_refused_after_its_second_crash)
{
	const struct client_address bad = source(1), good = source(2);

	ck_assert_uint_eq(suspects_add(&suspects, &bad, 1000), 1);
	ck_assert_int_eq(suspects_refuse(&suspects, &bad, 1000), 0);
	ck_assert_uint_eq(suspects_add(&suspects, &bad, 2000), 2);
	ck_assert_int_eq(suspects_refuse(&suspects, &bad, 2000), 1);
	ck_assert_int_eq(suspects_refuse(&suspects, &good, 2000), 0);
}
END_TEST

START_TEST(it_is_refused_for_ten_minutes)
{
	const struct client_address bad = source(1);

	suspects_add(&suspects, &bad, 0);
	suspects_add(&suspects, &bad, 1000);
	ck_assert_int_eq(suspects_refuse(&suspects, &bad, 1000 + SUSPECT_REFUSED_MS - 1), 1);
	ck_assert_int_eq(suspects_refuse(&suspects, &bad, 1000 + SUSPECT_REFUSED_MS), 0);
	ck_assert_uint_eq(suspects_add(&suspects, &bad, 1000 + SUSPECT_REFUSED_MS), 1);
}
END_TEST

START_TEST(the_one_seen_longest_ago_gives_way)
{
	for (uint8_t i = 0; i < SUSPECTS_MAX + 1; i++) {
		const struct client_address a = source(i);
		suspects_add(&suspects, &a, i);
		if (i > 0)
			suspects_add(&suspects, &a, i);
	}
	const struct client_address first = source(0), second = source(1), last = source(SUSPECTS_MAX);
	ck_assert_uint_eq(suspects.count, SUSPECTS_MAX);
	ck_assert_uint_eq(suspects_add(&suspects, &first, 100), 1);
	ck_assert_int_eq(suspects_refuse(&suspects, &second, 100), 0);
	ck_assert_int_eq(suspects_refuse(&suspects, &last, 100), 1);
}
END_TEST

/* Else who has a /48 could crash it from each of 65,536 subnets. */
START_TEST(an_ipv6_site_is_refused_after_crashes_of_many_subnets)
{
	struct client_address bad = { .bytes = { 0x20, 0x01, 0x0d, 0xb8, 1, 2 }, .len = 16 }, good = bad;

	good.bytes[5] = 3;
	for (uint8_t i = 0; i < SUSPECT_CRASHES * ADMISSION_OF_SITE; i++) {
		bad.bytes[7] = i;
		ck_assert_int_eq(suspects_refuse(&suspects, &bad, 1000), 0);
		ck_assert_uint_eq(suspects_add(&suspects, &bad, 1000), 1);
	}
	bad.bytes[7] = 200;
	ck_assert_int_eq(suspects_refuse(&suspects, &bad, 1000), 1);
	ck_assert_int_eq(suspects_refuse(&suspects, &good, 1000), 0);
	ck_assert_int_eq(suspects_refuse(&suspects, &bad, 1000 + SUSPECT_REFUSED_MS), 0);
}
END_TEST

START_TEST(the_other_addresses_of_an_ipv6_subscriber_are_refused_too)
{
	struct client_address bad = { .bytes = { 0x20, 0x01, 0x0d, 0xb8, 1, 2, 3, 4, 5 }, .len = 16 }, good = bad;

	suspects_add(&suspects, &bad, 0);
	bad.bytes[15] = 77;
	ck_assert_uint_eq(suspects_add(&suspects, &bad, 1), 2);
	bad.bytes[8] = 9;
	ck_assert_int_eq(suspects_refuse(&suspects, &bad, 2), 1);
	good.bytes[7] = 5;
	ck_assert_int_eq(suspects_refuse(&suspects, &good, 2), 0);
}
END_TEST

START_TEST(a_count_that_is_no_count_harms_nobody)
{
	const struct client_address bad = source(1);

	suspects.count = UINT32_MAX;
	ck_assert_uint_eq(suspects_add(&suspects, &bad, 5), 1);
	ck_assert_int_eq(suspects_refuse(&suspects, &bad, 5), 0);
}
END_TEST

START_TEST(an_unknown_address_is_no_suspect)
{
	const struct client_address nobody = { .len = 0 }, torn = { .len = 77 };

	ck_assert_uint_eq(suspects_add(&suspects, &nobody, 0), 0);
	ck_assert_uint_eq(suspects_add(&suspects, &torn, 0), 0);
	ck_assert_uint_eq(suspects.count, 0);
	ck_assert_int_eq(suspects_refuse(NULL, &nobody, 0), 0);
}
END_TEST

UNIT(suspects)
{
	const TTest *const facts[] = {
		a_source_is_refused_after_its_second_crash,
		it_is_refused_for_ten_minutes,
		the_one_seen_longest_ago_gives_way,
		an_ipv6_site_is_refused_after_crashes_of_many_subnets,
		the_other_addresses_of_an_ipv6_subscriber_are_refused_too,
		a_count_that_is_no_count_harms_nobody,
		an_unknown_address_is_no_suspect,
	};

	return suite_run_with("suspects", begin, facts, sizeof facts / sizeof facts[0]);
}
