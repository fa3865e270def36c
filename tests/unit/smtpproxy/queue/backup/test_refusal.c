/* test_refusal.c: facts of a server that refuses; time is an argument. test_refusals.c has what the log tells of it. */
#include <string.h>

#include "smtpproxy/queue/backup/refusal.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct refusal r;

static void before(void)
{
	r = (struct refusal){ .backup = 1 };
}

START_TEST(refusal_lasts_for_three_attempts)
{
	ck_assert(!refusal_lasts(&r, 5));
	refusal_told(&r, REFUSAL_AT_CALL, "NOPERM", REFUSAL_TEXT_PLAIN, 1000);
	ck_assert(refusal_lasts(&r, 1000 + 3 * REFUSAL_RETRY_MS - 1));
	ck_assert(!refusal_lasts(&r, 1000 + 3 * REFUSAL_RETRY_MS));
}
END_TEST

START_TEST(refusal_is_lifted_by_what_lies_behind_it_only)
{
	refusal_told(&r, REFUSAL_AT_LOOK, "role:slave", REFUSAL_TEXT_PLAIN, 1000);
	refusal_lifted(&r, REFUSAL_AT_LOGIN);
	ck_assert(refusal_lasts(&r, 1000));
	refusal_lifted(&r, REFUSAL_AT_LOOK);
	ck_assert(!refusal_lasts(&r, 1000));
	ck_assert_int_eq(r.at, REFUSAL_NONE);
}
END_TEST

START_TEST(secret_answer_is_kept_only_if_it_is_known)
{
	refusal_told(&r, REFUSAL_AT_LOGIN, "ERR unknown command 'AUTH' 's3cret-word'", REFUSAL_TEXT_SECRET, 1000);
	ck_assert_ptr_null(strstr(r.answer, "s3cret-word"));
	refusal_told(&r, REFUSAL_AT_LOGIN, "WRONGPASS invalid", REFUSAL_TEXT_SECRET, 1000);
	ck_assert_str_eq(r.answer, "WRONGPASS invalid");
	refusal_told(&r, REFUSAL_AT_CALL, "ERR other", REFUSAL_TEXT_PLAIN, 1000);
	ck_assert_str_eq(r.answer, "ERR other");
}
END_TEST

UNIT(refusal)
{
	const TTest *facts[] = {
		refusal_lasts_for_three_attempts,
		refusal_is_lifted_by_what_lies_behind_it_only,
		secret_answer_is_kept_only_if_it_is_known,
	};
	return suite_run_with("refusal", before, facts, SUITE_LEN(facts));
}
