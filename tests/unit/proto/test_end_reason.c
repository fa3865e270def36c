/* test_end_reason.c: facts of the list of end reasons. */
#include "proto/end_reason.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(every_reason_has_a_text_of_its_own)
{
	for (unsigned i = 0; i < END_REASON_COUNT; i++) {
		ck_assert_str_ne(end_reason_text(i), "unknown");
		for (unsigned j = 0; j < i; j++)
			ck_assert_str_ne(end_reason_text(i), end_reason_text(j));
	}
}
END_TEST

START_TEST(a_number_outside_the_table_is_unknown)
{
	ck_assert_str_eq(end_reason_text(END_REASON_COUNT), "unknown");
	ck_assert_str_eq(end_reason_text(~0u), "unknown");
}
END_TEST

START_TEST(every_reason_fits_the_one_byte_of_a_frame)
{
	ck_assert_int_le(END_REASON_COUNT, 256);
}
END_TEST

START_TEST(limits_and_suspicion_are_refusals)
{
	static const char *const words[] = { "connection limit", "connection limit of source", "handshake limit",
		"preamble limit", "suspected" };
	unsigned refusals = 0;

	for (unsigned i = 0; i < END_REASON_COUNT + 1; i++) {
		int is_word = 0;
		for (size_t w = 0; w < SUITE_LEN(words); w++)
			is_word |= strcmp(words[w], end_reason_text(i)) == 0;
		ck_assert_msg(end_reason_is_refusal(i) == is_word, "%s", end_reason_text(i));
		refusals += is_word;
	}
	ck_assert_uint_eq(refusals, SUITE_LEN(words));
}
END_TEST

UNIT(end_reason)
{
	const TTest *facts[] = {
		every_reason_has_a_text_of_its_own,
		a_number_outside_the_table_is_unknown,
		every_reason_fits_the_one_byte_of_a_frame,
		limits_and_suspicion_are_refusals,
	};
	return suite_run("end_reason", facts, SUITE_LEN(facts));
}
