/* test_connection_id_text.c: facts of abbreviated connection ids. */
#include "csslctl/form.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(four_digits_or_more_are_a_beginning)
{
	ck_assert(id_is_beginning("4f2a"));
	ck_assert(id_is_beginning("00112233445566778899aabbccddeeff"));
	ck_assert(!id_is_beginning("4f2"));
	ck_assert(!id_is_beginning(""));
	ck_assert(!id_is_beginning("4F2A"));
	ck_assert(!id_is_beginning("4f2x"));
	ck_assert(!id_is_beginning("00112233445566778899aabbccddeeff0"));
}
END_TEST

START_TEST(the_page_begins_right_before_the_beginning)
{
	char out[ID_DIGITS + 1];
	ck_assert_int_eq(id_before("4f2a", out), 0);
	ck_assert_str_eq(out, "4f29ffffffffffffffffffffffffffff");
	ck_assert_int_eq(id_before("4000", out), 0);
	ck_assert_str_eq(out, "3fffffffffffffffffffffffffffffff");
	ck_assert_int_eq(id_before("000a", out), 0);
	ck_assert_str_eq(out, "0009ffffffffffffffffffffffffffff");
	ck_assert_int_eq(id_before("00112233445566778899aabbccddeef0", out), 0);
	ck_assert_str_eq(out, "00112233445566778899aabbccddeeef");
}
END_TEST

START_TEST(before_the_first_there_is_none)
{
	char out[ID_DIGITS + 1];
	ck_assert_int_eq(id_before("0000", out), 1);
}
END_TEST

UNIT(connection_id_text)
{
	const TTest *facts[] = { four_digits_or_more_are_a_beginning, the_page_begins_right_before_the_beginning,
		before_the_first_there_is_none };
	return suite_run("connection_id_text", facts, SUITE_LEN(facts));
}
