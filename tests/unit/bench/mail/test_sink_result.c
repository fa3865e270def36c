/* test_sink_result.c: facts of smtp-sink's counts. */
#include "bench/mail/sink_result.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct sink_result *result;

static void begin(void)
{
	result = sink_result_create();
	ck_assert_ptr_nonnull(result);
}

static void end(void)
{
	sink_result_destroy(result);
}

static void mail_from(const char *sender, const char *id, enum mail_verdict verdict)
{
	struct mail_mark mark = { .body_len = 0 };
	strcpy(mark.id, id ? id : "");
	sink_result_mail(result, smtp_span_of(sender), 100, 2, verdict, id ? &mark : NULL, 5);
}

START_TEST(mails_that_come_twice_are_duplicates)
{
	mail_from("a@b", "run-1", MAIL_RIGHT);
	mail_from("a@b", "run-2", MAIL_RIGHT);
	ck_assert_uint_eq(result->counts[SINK_DUPLICATES], 0);
	mail_from("a@b", "run-1", MAIL_RIGHT);
	mail_from("a@b", NULL, MAIL_UNMARKED);
	mail_from("a@b", NULL, MAIL_UNMARKED);
	ck_assert_uint_eq(result->counts[SINK_DUPLICATES], 1);
	ck_assert_uint_eq(result->counts[SINK_MAILS], 5);
	ck_assert_uint_eq(result->counts[SINK_RECIPIENTS], 10);
	ck_assert_uint_eq(result->counts[SINK_UNMARKED], 2);
}
END_TEST

START_TEST(senders_are_counted_apart)
{
	mail_from("a@b", "1", MAIL_RIGHT);
	mail_from("A@B", "2", MAIL_WRONG);
	mail_from("", "3", MAIL_RIGHT);
	ck_assert_uint_eq(result->sender_count, 2);
	ck_assert_uint_eq(result->counts[SINK_WRONG], 1);
}
END_TEST

START_TEST(too_many_senders_are_others)
{
	char name[32];
	for (unsigned i = 0; i < SINK_SENDERS_MAX + 100; i++) {
		snprintf(name, sizeof name, "%u@b", i);
		mail_from(name, NULL, MAIL_UNMARKED);
	}
	ck_assert_uint_eq(result->sender_count, SINK_SENDERS_MAX);
	uint64_t mails = 0;
	for (unsigned i = 0; i < sizeof result->senders / sizeof result->senders[0]; i++)
		mails += result->senders[i].mails;
	ck_assert_uint_eq(mails, SINK_SENDERS_MAX + 100);
}
END_TEST

UNIT(sink_result)
{
	const TTest *facts[] = {
		mails_that_come_twice_are_duplicates,
		senders_are_counted_apart,
		too_many_senders_are_others,
	};
	TCase *all = tcase_create("sink_result");
	tcase_add_checked_fixture(all, begin, end);
	return suite_run_case("sink_result", all, facts, SUITE_LEN(facts));
}
