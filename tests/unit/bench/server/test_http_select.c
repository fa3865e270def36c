/* test_http_select.c: facts of conditions and ranges. */
#include <stdint.h>

#include "bench/server/http_select.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define ETAG "\"100-1\""

static uint64_t first, len;

static enum http_selection select_range(const char *range)
{
	struct http_conditions c = { .range = range };
	return http_select(&c, ETAG, 100, &first, &len);
}

#define ASSERT_PART(range, from, count)                                                                                \
	do {                                                                                                           \
		ck_assert_int_eq(select_range(range), HTTP_PART);                                                      \
		ck_assert_uint_eq(first, from);                                                                        \
		ck_assert_uint_eq(len, count);                                                                         \
	} while (0)

START_TEST(without_a_range_the_whole_is_selected)
{
	ck_assert_int_eq(select_range(NULL), HTTP_WHOLE);
	ck_assert_uint_eq(first, 0);
	ck_assert_uint_eq(len, 100);
}
END_TEST

START_TEST(ranges_select_their_part_and_end_with_the_representation)
{
	ASSERT_PART("bytes=0-0", 0, 1);
	ASSERT_PART("bytes=10-19", 10, 10);
	ASSERT_PART("bytes=90-", 90, 10);
	ASSERT_PART("bytes=90-1000", 90, 10);
	ASSERT_PART("bytes=-7", 93, 7);
	ASSERT_PART("bytes=-700", 0, 100);
	ASSERT_PART("bytes= 5-6 ", 5, 2);
	ASSERT_PART("bytes=1-99999999999999999999999999", 1, 99);
}
END_TEST

START_TEST(ranges_behind_the_end_are_unsatisfiable)
{
	ck_assert_int_eq(select_range("bytes=100-"), HTTP_UNSATISFIABLE);
	ck_assert_int_eq(select_range("bytes=99999999999999999999999999-"), HTTP_UNSATISFIABLE);
	ck_assert_int_eq(select_range("bytes=-0"), HTTP_UNSATISFIABLE);
}
END_TEST

START_TEST(nothing_of_an_empty_representation_can_be_selected)
{
	struct http_conditions suffix = { .range = "bytes=-1" }, prefix = { .range = "bytes=0-" };
	ck_assert_int_eq(http_select(&suffix, ETAG, 0, &first, &len), HTTP_UNSATISFIABLE);
	ck_assert_int_eq(http_select(&prefix, ETAG, 0, &first, &len), HTTP_UNSATISFIABLE);
}
END_TEST

START_TEST(anything_but_one_valid_range_is_ignored)
{
	static const char *const bad[] = { "", "bytes", "bytes=", "bytes=-", "bytes=5-4", "bytes=1-2,5-6", "bytes=1x-2",
		"bytes=1-2x", "bytes=-5x", "items=1-2", "bytes=--5", "bytes=1--5" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_msg(select_range(bad[i]) == HTTP_WHOLE, "%s", bad[i]);
		ck_assert_uint_eq(len, 100);
	}
}
END_TEST

static enum http_selection select_if_match(const char *list)
{
	struct http_conditions c = { .if_match = list };
	return http_select(&c, ETAG, 100, &first, &len);
}

START_TEST(if_match_needs_the_etag_in_its_list)
{
	ck_assert_int_eq(select_if_match("*"), HTTP_WHOLE);
	ck_assert_int_eq(select_if_match(ETAG), HTTP_WHOLE);
	ck_assert_int_eq(select_if_match("\"a\", W/\"b\" ,\"100-1\""), HTTP_WHOLE);
	ck_assert_int_eq(select_if_match("\"a,100-1\""), HTTP_PRECONDITION_FAILED);
	ck_assert_int_eq(select_if_match("W/" ETAG), HTTP_PRECONDITION_FAILED);
	ck_assert_int_eq(select_if_match("100-1"), HTTP_PRECONDITION_FAILED);
	ck_assert_int_eq(select_if_match("\"100-1"), HTTP_PRECONDITION_FAILED);
	ck_assert_int_eq(select_if_match(""), HTTP_PRECONDITION_FAILED);
}
END_TEST

START_TEST(if_none_match_compares_weakly)
{
	struct http_conditions same = { .if_none_match = "W/" ETAG }, other = { .if_none_match = "\"x\"" };
	ck_assert_int_eq(http_select(&same, ETAG, 100, &first, &len), HTTP_NOT_MODIFIED);
	ck_assert_int_eq(http_select(&other, ETAG, 100, &first, &len), HTTP_WHOLE);
}
END_TEST

START_TEST(if_range_lets_the_range_count_only_for_the_same_etag)
{
	struct http_conditions c = { .if_range = ETAG, .range = "bytes=1-2" };
	ck_assert_int_eq(http_select(&c, ETAG, 100, &first, &len), HTTP_PART);
	c.if_range = "\"old\"";
	ck_assert_int_eq(http_select(&c, ETAG, 100, &first, &len), HTTP_WHOLE);
	c.if_range = "W/" ETAG;
	ck_assert_int_eq(http_select(&c, ETAG, 100, &first, &len), HTTP_WHOLE);
	c.if_range = "Sat, 01 Jan 2000 00:00:00 GMT";
	ck_assert_int_eq(http_select(&c, ETAG, 100, &first, &len), HTTP_WHOLE);
}
END_TEST

START_TEST(if_match_comes_before_the_range)
{
	struct http_conditions c = { .if_match = "\"x\"", .range = "bytes=100-" };
	ck_assert_int_eq(http_select(&c, ETAG, 100, &first, &len), HTTP_PRECONDITION_FAILED);
}
END_TEST

UNIT(http_select)
{
	const TTest *facts[] = {
		without_a_range_the_whole_is_selected,
		ranges_select_their_part_and_end_with_the_representation,
		ranges_behind_the_end_are_unsatisfiable,
		nothing_of_an_empty_representation_can_be_selected,
		anything_but_one_valid_range_is_ignored,
		if_match_needs_the_etag_in_its_list,
		if_none_match_compares_weakly,
		if_range_lets_the_range_count_only_for_the_same_etag,
		if_match_comes_before_the_range,
	};
	return suite_run("http_select", facts, SUITE_LEN(facts));
}
