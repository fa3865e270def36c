/* test_error_text.c: facts of the sentences for errors of CSSL and of libuv. */
#include <uv.h>

#include "net/report/error_text.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(each_error_of_the_list_has_its_own_sentence)
{
#define X(name, value, sentence) ck_assert_str_eq(error_text(value), sentence);
	CSSL_ERRORS(X)
#undef X
}
END_TEST

START_TEST(an_error_of_libuv_has_the_text_of_libuv)
{
	ck_assert_str_eq(error_text(UV_ECONNRESET), "connection reset by peer");
	ck_assert_str_eq(error_text(UV_EOF), "end of file");
}
END_TEST

START_TEST(zero_is_success)
{
	ck_assert_str_eq(error_text(0), "success");
}
END_TEST

UNIT(error_text)
{
	const TTest *facts[] = {
		each_error_of_the_list_has_its_own_sentence,
		an_error_of_libuv_has_the_text_of_libuv,
		zero_is_success,
	};
	return suite_run("error_text", facts, SUITE_LEN(facts));
}
