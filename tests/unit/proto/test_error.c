/* test_error.c: facts of the list of errors. */
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const int errors[] = {
#define X(name, value, sentence) value,
	CSSL_ERRORS(X)
#undef X
};

START_TEST(every_error_has_a_sentence)
{
	for (size_t i = 0; i < SUITE_LEN(errors); i++) {
		ck_assert(cssl_error_is_own(errors[i]));
		ck_assert_str_ne(cssl_strerror(errors[i]), "unknown error");
	}
}
END_TEST

START_TEST(no_two_errors_share_a_sentence)
{
	for (size_t i = 0; i < SUITE_LEN(errors); i++) {
		for (size_t j = 0; j < i; j++)
			ck_assert_str_ne(cssl_strerror(errors[i]), cssl_strerror(errors[j]));
	}
}
END_TEST

START_TEST(no_error_looks_like_one_of_libuv)
{
	/* libuv: errno values and its own from -3000 down to -4095. */
	for (size_t i = 0; i < SUITE_LEN(errors); i++)
		ck_assert_int_lt(errors[i], -4095);
}
END_TEST

START_TEST(a_number_outside_the_list_has_a_text_and_is_not_our_own)
{
	ck_assert_str_eq(cssl_strerror(-1), "unknown error");
	ck_assert(!cssl_error_is_own(-1));
	ck_assert(!cssl_error_is_own(0));
	ck_assert_str_eq(cssl_strerror(0), "success");
}
END_TEST

UNIT(error)
{
	const TTest *facts[] = {
		every_error_has_a_sentence,
		no_two_errors_share_a_sentence,
		no_error_looks_like_one_of_libuv,
		a_number_outside_the_list_has_a_text_and_is_not_our_own,
	};
	return suite_run("error", facts, SUITE_LEN(facts));
}
