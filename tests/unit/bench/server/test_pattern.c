/* test_pattern.c: facts of the bytes that answers are made of. */
#include <string.h>

#include "bench/server/pattern.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(the_first_bytes_are_those_of_the_definition)
{
	uint8_t out[3];
	pattern_fill(out, sizeof(out), 0, 0);
	/* x = 1, then 1664525 + 1013904223 = 0x3c88596c, then 0x5e8885db: computed apart */
	ck_assert_uint_eq(out[0], 0x00);
	ck_assert_uint_eq(out[1], 0x3c);
	ck_assert_uint_eq(out[2], 0x5e);
}
END_TEST

START_TEST(a_part_is_what_the_whole_has_there)
{
	static uint8_t whole[200000], part[1000];
	pattern_fill(whole, sizeof(whole), sizeof(whole), 0);
	for (size_t at = 0; at + sizeof(part) <= sizeof(whole); at += 777) {
		pattern_fill(part, sizeof(part), sizeof(whole), at);
		ck_assert_mem_eq(part, whole + at, sizeof(part));
	}
}
END_TEST

START_TEST(answers_of_other_sizes_have_other_bytes)
{
	uint8_t a[64], b[64];
	pattern_fill(a, sizeof(a), 1024, 0);
	pattern_fill(b, sizeof(b), 1025, 0);
	ck_assert_mem_ne(a, b, sizeof(a));
}
END_TEST

START_TEST(offsets_near_the_largest_number_do_not_wrap)
{
	uint8_t a[16], b[16];
	/* The sum of both overflows 64 bits; the place in the period must not. */
	pattern_fill(a, sizeof(a), UINT64_MAX, UINT64_MAX);
	pattern_fill(b, sizeof(b), UINT64_MAX % PATTERN_PERIOD, UINT64_MAX % PATTERN_PERIOD);
	ck_assert_mem_eq(a, b, sizeof(a));
}
END_TEST

START_TEST(a_comparison_finds_one_wrong_byte)
{
	static uint8_t bytes[3 * PATTERN_PERIOD];
	pattern_fill(bytes, sizeof(bytes), 1000000, 77);
	ck_assert_int_eq(pattern_is(bytes, sizeof(bytes), 1000000, 77), 1);
	ck_assert_int_eq(pattern_is(bytes, sizeof(bytes), 1000000, 78), 0);
	bytes[sizeof(bytes) - 1] ^= 1;
	ck_assert_int_eq(pattern_is(bytes, sizeof(bytes), 1000000, 77), 0);
	ck_assert_int_eq(pattern_is(bytes, sizeof(bytes) - 1, 1000000, 77), 1);
}
END_TEST

UNIT(pattern)
{
	const TTest *facts[] = {
		the_first_bytes_are_those_of_the_definition,
		a_part_is_what_the_whole_has_there,
		answers_of_other_sizes_have_other_bytes,
		offsets_near_the_largest_number_do_not_wrap,
		a_comparison_finds_one_wrong_byte,
	};
	pattern_make();
	return suite_run("pattern", facts, SUITE_LEN(facts));
}
