/* test_error.c: facts of the list of errors. */
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"

static const struct {
	int value;
	enum error_class class;
} errors[] = {
#define X(name, value, class, sentence) { value, ERROR_CLASS_##class },
	CSSL_ERRORS(X)
#undef X
};

START_TEST(every_error_has_a_sentence_and_its_class)
{
	for (size_t i = 0; i < SUITE_LEN(errors); i++) {
		ck_assert_str_ne(cssl_strerror(errors[i].value), "unknown error");
		ck_assert_int_eq(cssl_error_class(errors[i].value), errors[i].class);
	}
}
END_TEST

START_TEST(no_two_errors_share_a_sentence)
{
	for (size_t i = 0; i < SUITE_LEN(errors); i++) {
		for (size_t j = 0; j < i; j++)
			ck_assert_str_ne(cssl_strerror(errors[i].value), cssl_strerror(errors[j].value));
	}
}
END_TEST

START_TEST(no_error_looks_like_one_of_libuv)
{
	/* libuv: errno values and its own from -3000 down to -4095. */
	for (size_t i = 0; i < SUITE_LEN(errors); i++)
		ck_assert_int_lt(errors[i].value, -4095);
}
END_TEST

START_TEST(a_number_outside_the_list_has_a_text_and_is_a_bug)
{
	ck_assert_str_eq(cssl_strerror(-1), "unknown error");
	ck_assert_int_eq(cssl_error_class(-1), ERROR_CLASS_BUG);
	ck_assert_str_eq(cssl_strerror(0), "success");
}
END_TEST

int main(void)
{
	const TTest *facts[] = {
		every_error_has_a_sentence_and_its_class,
		no_two_errors_share_a_sentence,
		no_error_looks_like_one_of_libuv,
		a_number_outside_the_list_has_a_text_and_is_a_bug,
	};
	return suite_run("error", facts, SUITE_LEN(facts));
}
