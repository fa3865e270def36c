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

UNIT(end_reason)
{
	const TTest *facts[] = {
		every_reason_has_a_text_of_its_own,
		a_number_outside_the_table_is_unknown,
		every_reason_fits_the_one_byte_of_a_frame,
	};
	return suite_run("end_reason", facts, SUITE_LEN(facts));
}
