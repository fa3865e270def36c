/* test_bdat.c: facts of chunks (RFC 3030 2). */
#include "smtp/data.h"

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(chunks_add_up_to_a_message)
{
	struct smtp_bdat b = { 0 };
	ck_assert_int_eq(smtp_bdat_begin(&b, 10, 0), 0);
	ck_assert_int_eq(b.state, SMTP_BDAT_CHUNK);
	ck_assert_uint_eq(smtp_bdat_follow(&b, 4), 4);
	ck_assert(smtp_bdat_is_inside(&b));
	ck_assert_uint_eq(smtp_bdat_follow(&b, 100), 6);
	ck_assert_int_eq(b.state, SMTP_BDAT_BETWEEN);
	ck_assert_uint_eq(smtp_bdat_follow(&b, 100), 0);
	ck_assert_int_eq(smtp_bdat_begin(&b, 5, 1), 0);
	ck_assert_uint_eq(smtp_bdat_follow(&b, 5), 5);
	ck_assert_int_eq(b.state, SMTP_BDAT_OVER);
	ck_assert_uint_eq(b.len, 15);
	ck_assert_uint_eq(b.chunks, 2);
}
END_TEST

START_TEST(an_empty_last_chunk_ends_at_once)
{
	struct smtp_bdat b = { 0 };
	ck_assert_int_eq(smtp_bdat_begin(&b, 0, 0), 0);
	ck_assert_int_eq(b.state, SMTP_BDAT_BETWEEN);
	ck_assert_int_eq(smtp_bdat_begin(&b, 0, 1), 0);
	ck_assert_int_eq(b.state, SMTP_BDAT_OVER);
	ck_assert(!smtp_bdat_is_inside(&b));
}
END_TEST

START_TEST(a_chunk_behind_the_last_is_followed_all_the_same)
{
	struct smtp_bdat b = { 0 };
	smtp_bdat_begin(&b, 0, 1);
	ck_assert_int_eq(smtp_bdat_begin(&b, 7, 0), CSSL_E_STATE);
	ck_assert_uint_eq(smtp_bdat_follow(&b, 100), 7);
	ck_assert_int_eq(b.state, SMTP_BDAT_OVER);
	ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(a_sum_that_overflows_is_refused)
{
	struct smtp_bdat b = { .state = SMTP_BDAT_BETWEEN, .len = UINT64_MAX - 5 };
	ck_assert_int_eq(smtp_bdat_begin(&b, 6, 1), CSSL_E_EXHAUSTED);
	ck_assert_uint_eq(b.left, 6);
	ck_assert_uint_eq(b.len, UINT64_MAX - 5);
	ck_assert_uint_eq(smtp_bdat_follow(&b, 6), 6);
	ck_assert_int_eq(b.state, SMTP_BDAT_BETWEEN);
}
END_TEST

UNIT(bdat)
{
	const TTest *facts[] = {
		chunks_add_up_to_a_message,
		an_empty_last_chunk_ends_at_once,
		a_chunk_behind_the_last_is_followed_all_the_same,
		a_sum_that_overflows_is_refused,
	};
	return suite_run("bdat", facts, SUITE_LEN(facts));
}
