/* test_quantity.c: facts of numbers as people read and type them. */
#include "csslctl/text.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(durations_have_two_digits_that_matter)
{
	static const struct {
		uint64_t us;
		const char *text;
	} rows[] = { { 0, "0 s" }, { 1, "1 us" }, { 999, "999 us" }, { 1000, "1.0 ms" }, { 9949, "9.9 ms" },
		{ 12345, "12 ms" }, { 1000000, "1.0 s" }, { 59400000, "59 s" }, { 60000000, "1min" },
		{ 90999999, "1min30s" }, { 3600000000, "1h" }, { 187200000000, "2d4h" } };
	char out[QUANTITY_TEXT_MAX];
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		ck_assert_str_eq(duration_text(rows[i].us, out), rows[i].text);
}
END_TEST

START_TEST(sizes_have_the_unit_that_fits)
{
	char out[QUANTITY_TEXT_MAX];
	ck_assert_str_eq(size_text(0, out), "0 B");
	ck_assert_str_eq(size_text(1023, out), "1023 B");
	ck_assert_str_eq(size_text(1024, out), "1.0 KiB");
	ck_assert_str_eq(size_text(35.0 * 1024 * 1024, out), "35 MiB");
	ck_assert_str_eq(size_text(18446744073709551615.0, out), "16777216 TiB");
}
END_TEST

START_TEST(rates_are_short)
{
	char out[QUANTITY_TEXT_MAX];
	ck_assert_str_eq(rate_text(0, out), "0");
	ck_assert_str_eq(rate_text(0.44, out), "0.4");
	ck_assert_str_eq(rate_text(35.2, out), "35");
	ck_assert_str_eq(rate_text(9999, out), "9999");
	ck_assert_str_eq(rate_text(12345, out), "12.3k");
	ck_assert_str_eq(rate_text(1234567, out), "1.2M");
}
END_TEST

START_TEST(durations_are_typed_as_in_the_cluster_file)
{
	uint32_t ms = 0;
	ck_assert_int_eq(duration_parse("30s", DURATION_MAX_MS, &ms), 0);
	ck_assert_uint_eq(ms, 30000);
	ck_assert_int_eq(duration_parse("500ms", DURATION_MAX_MS, &ms), 0);
	ck_assert_uint_eq(ms, 500);
	ck_assert_int_eq(duration_parse("30d", 2592000000u, &ms), 0);
	ck_assert_uint_eq(ms, 2592000000u);
	ck_assert_int_eq(duration_parse("2min", DURATION_MAX_MS, &ms), 0);
	ck_assert_uint_eq(ms, 120000);
}
END_TEST

START_TEST(a_malformed_duration_is_refused)
{
	uint32_t ms;
	static const char *const wrong[] = { "", "30", "s", "-1s", "1.5s", "30 s", "2d", "99999999999999999999s" };
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		ck_assert_msg(duration_parse(wrong[i], DURATION_MAX_MS, &ms) == CSSL_E_CONFIG, "'%s'", wrong[i]);
}
END_TEST

UNIT(quantity)
{
	const TTest *facts[] = { durations_have_two_digits_that_matter, sizes_have_the_unit_that_fits, rates_are_short,
		durations_are_typed_as_in_the_cluster_file, a_malformed_duration_is_refused };
	return suite_run("quantity", facts, SUITE_LEN(facts));
}
