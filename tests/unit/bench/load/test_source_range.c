/* test_source_range.c: facts of the addresses that clients come from. */
#include <string.h>

#include "bench/load/source_range.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static void assert_is(const struct source_ranges *all, uint64_t number, const char *expected)
{
	struct sockaddr_storage a;
	char text[ADDRESS_TEXT_MAX];

	ck_assert_int_eq(source_ranges_get(all, number, &a), 1);
	ck_assert_str_eq(address_format((const struct sockaddr *)&a, text), expected);
}

START_TEST(ranges_follow_each_other_and_begin_again)
{
	struct source_ranges all = { 0 };

	ck_assert_int_eq(source_ranges_add(&all, "127.0.1.254-127.0.2.1"), 0);
	ck_assert_int_eq(source_ranges_add(&all, "127.0.0.9"), 0);
	ck_assert_uint_eq(source_ranges_count(&all), 5);
	assert_is(&all, 0, "127.0.1.254:0");
	assert_is(&all, 1, "127.0.1.255:0");
	assert_is(&all, 2, "127.0.2.0:0");
	assert_is(&all, 3, "127.0.2.1:0");
	assert_is(&all, 4, "127.0.0.9:0");
	assert_is(&all, 5, "127.0.1.254:0");
}
END_TEST

START_TEST(ipv6_ranges_count_in_their_last_bits)
{
	struct source_ranges all = { 0 };

	ck_assert_int_eq(source_ranges_add(&all, "fd00::ffff-fd00::1:1"), 0);
	ck_assert_uint_eq(source_ranges_count(&all), 3);
	assert_is(&all, 1, "[fd00::1:0]:0");
}
END_TEST

START_TEST(no_range_means_no_address)
{
	struct source_ranges all = { 0 };
	struct sockaddr_storage a;

	ck_assert_uint_eq(source_ranges_count(&all), 0);
	ck_assert_int_eq(source_ranges_get(&all, 3, &a), 0);
}
END_TEST

START_TEST(a_malformed_range_is_refused)
{
	static const char *const bad[] = { "", "-", "127.0.0.1-", "-127.0.0.1", "127.0.0.2-127.0.0.1", "127.0.0.1-::1",
		"fd00::1-fd01::2", "127.0.0.1-127.2.0.1", "localhost", "127.0.0.1:80" };
	struct source_ranges all = { 0 };

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(source_ranges_add(&all, bad[i]) == CSSL_E_CONFIG, "'%s' was taken", bad[i]);
	ck_assert_uint_eq(all.count, 0);
}
END_TEST

START_TEST(only_so_many_are_taken)
{
	struct source_ranges all = { 0 };

	for (unsigned i = 0; i < SOURCE_RANGES_MAX; i++)
		ck_assert_int_eq(source_ranges_add(&all, "127.0.0.1"), 0);
	ck_assert_int_eq(source_ranges_add(&all, "127.0.0.1"), CSSL_E_FULL);
}
END_TEST

UNIT(source_range)
{
	const TTest *facts[] = {
		ranges_follow_each_other_and_begin_again,
		ipv6_ranges_count_in_their_last_bits,
		no_range_means_no_address,
		a_malformed_range_is_refused,
		only_so_many_are_taken,
	};

	return suite_run("source_range", facts, SUITE_LEN(facts));
}
