/* test_span.c: facts of pieces of text. */
#include "smtp/span.h"

#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(letters_are_compared_as_ascii_without_case)
{
	ck_assert(smtp_span_is(smtp_span_of("StartTLS"), "STARTTLS"));
	ck_assert(!smtp_span_is(smtp_span_of("STARTTL"), "STARTTLS"));
	ck_assert(!smtp_span_is(smtp_span_of("\xc4"), "\xe4"));
	ck_assert(smtp_span_is((struct smtp_span){ NULL, 0 }, ""));
}
END_TEST

START_TEST(words_lie_between_blanks)
{
	struct smtp_span rest = smtp_span_of("  one\t two  ");
	ck_assert(smtp_span_is(smtp_span_word(&rest), "one"));
	ck_assert(smtp_span_is(smtp_span_word(&rest), "two"));
	ck_assert_uint_eq(rest.len, 0);
	ck_assert_uint_eq(smtp_span_word(&rest).len, 0);
}
END_TEST

START_TEST(a_separator_that_is_not_there_gives_everything)
{
	struct smtp_span rest = smtp_span_of("a,b,");
	ck_assert(smtp_span_is(smtp_span_until(&rest, ','), "a"));
	ck_assert(smtp_span_is(smtp_span_until(&rest, ','), "b"));
	ck_assert_uint_eq(rest.len, 0);
	rest = smtp_span_of("abc");
	ck_assert(smtp_span_is(smtp_span_until(&rest, ','), "abc"));
	ck_assert_ptr_null(rest.at);
}
END_TEST

START_TEST(a_number_is_decimal_digits_within_its_bound)
{
	uint64_t value = 7;
	ck_assert_int_eq(smtp_span_number(smtp_span_of("18446744073709551615"), UINT64_MAX, &value), 0);
	ck_assert_uint_eq(value, UINT64_MAX);
	const char *bad[] = { "", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616", "99999999999999999999999",
		"11" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_int_eq(smtp_span_number(smtp_span_of(bad[i]), 10, &value), CSSL_E_RANGE);
	ck_assert_uint_eq(value, UINT64_MAX);
}
END_TEST

START_TEST(a_copy_is_whole_or_empty)
{
	char out[4] = "xyz";
	ck_assert_int_eq(smtp_span_copy(smtp_span_of("abc"), out, sizeof out), 0);
	ck_assert_str_eq(out, "abc");
	ck_assert_int_eq(smtp_span_copy(smtp_span_of("abcd"), out, sizeof out), CSSL_E_TOO_LONG);
	ck_assert_str_eq(out, "");
}
END_TEST

START_TEST(utf8_has_the_shortest_form_and_no_surrogates_and_controls)
{
	const char *good[] = { "", "abc", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf",
		"\xf4\x8f\xbf\xbf" };
	const char *bad[] = { "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"\xf5\x80\x80\x80", "\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "a\x1b", "\x7f", "\xc2\x85", "\t" };
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
		ck_assert_msg(smtp_span_is_utf8(smtp_span_of(good[i])), "good %zu", i);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(!smtp_span_is_utf8(smtp_span_of(bad[i])), "bad %zu", i);
}
END_TEST

UNIT(span)
{
	const TTest *facts[] = {
		letters_are_compared_as_ascii_without_case,
		words_lie_between_blanks,
		a_separator_that_is_not_there_gives_everything,
		a_number_is_decimal_digits_within_its_bound,
		a_copy_is_whole_or_empty,
		utf8_has_the_shortest_form_and_no_surrogates_and_controls,
	};
	return suite_run("span", facts, SUITE_LEN(facts));
}
