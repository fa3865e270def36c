/* test_fates.c: facts about the fates of recipients. */
#include <stdlib.h>
#include <string.h>

#include "smtpproxy/envelope/fates.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct smtp_span none;

START_TEST(note_brings_back_each_fate_and_reply)
{
	struct fates f, again;
	size_t len;

	fates_begin(&f, 3, none);
	ck_assert_uint_eq(fates_count(&f, FATE_OPEN), 3);
	fates_set(&f, 0, FATE_DELIVERED, smtp_span_of("250 2.0.0 Ok"));
	fates_set(&f, 1, FATE_FAILED, smtp_span_of("550 5.1.1 No"));
	char *note = fates_note(&f, &len);
	ck_assert_int_eq(fates_begin(&again, 3, (struct smtp_span){ note, len }), 0);
	ck_assert_int_eq(again.at[0].fate, FATE_DELIVERED);
	ck_assert_int_eq(again.at[1].fate, FATE_FAILED);
	ck_assert_int_eq(again.at[2].fate, FATE_OPEN);
	ck_assert_str_eq(again.at[1].reply, "550 5.1.1 No");
	free(note);
	fates_free(&f);
	fates_free(&again);
}
END_TEST

START_TEST(note_brings_back_the_server_of_a_reply_and_whether_it_reports)
{
	struct fates f, again;
	size_t len;

	fates_begin(&f, 3, none);
	fates_set(&f, 0, FATE_DELIVERED, smtp_span_of("250 Ok"));
	fates_set_from(&f, 0, smtp_span_of("mx.example"), FATE_REPORTS_NONE);
	fates_set(&f, 1, FATE_FAILED, smtp_span_of("550 No"));
	fates_set_from(&f, 1, smtp_span_of("[192.0.2.1]"), FATE_REPORTS);
	fates_set(&f, 2, FATE_FAILED, smtp_span_of("451 Expired"));
	char *note = fates_note(&f, &len);
	ck_assert_int_eq(fates_begin(&again, 3, (struct smtp_span){ note, len }), 0);
	ck_assert_str_eq(again.at[0].reply, "250 Ok");
	ck_assert_str_eq(again.at[0].from, "mx.example");
	ck_assert_int_eq(again.at[0].reports, FATE_REPORTS_NONE);
	ck_assert_str_eq(again.at[1].from, "[192.0.2.1]");
	ck_assert_int_eq(again.at[1].reports, FATE_REPORTS);
	ck_assert_str_eq(again.at[2].reply, "451 Expired");
	ck_assert_str_eq(again.at[2].from, "");
	free(note);
	fates_free(&f);
	fates_free(&again);
}
END_TEST

START_TEST(reply_becomes_printable_ascii)
{
	struct fates f;

	fates_begin(&f, 1, none);
	fates_set(&f, 0, FATE_FAILED, smtp_span_of("550 \x1f\t\r\n\xc3\xa9~ x"));
	ck_assert_str_eq(f.at[0].reply, "550 ??????~ x");
	fates_free(&f);
}
END_TEST

/* A note with one recipient too many or too few, or with an unknown letter, is ignored: no recipient counts as
 * delivered. */
START_TEST(note_of_another_message_is_ignored)
{
	static const struct smtp_span notes[] = { { "d\0d", 4 }, { "d\0d\0d", 6 }, { "x\0d", 4 }, { "d\0d", 3 },
		{ "", 1 } };
	static const unsigned counts[] = { 3, 2, 2, 2, 1 };

	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
		struct fates f;

		ck_assert_int_eq(fates_begin(&f, counts[i], notes[i]), 0);
		ck_assert_uint_eq(fates_count(&f, FATE_OPEN), counts[i]);
		fates_free(&f);
	}
}
END_TEST

START_TEST(long_reply_is_cut)
{
	char reply[1000];
	struct fates f;
	size_t len;

	memset(reply, 'x', sizeof reply);
	fates_begin(&f, 1, none);
	fates_set_open(&f, FATE_OPEN, (struct smtp_span){ reply, sizeof reply });
	ck_assert_uint_eq(strlen(f.at[0].reply), FATE_REPLY_MAX);
	free(fates_note(&f, &len));
	ck_assert_uint_eq(len, FATE_REPLY_MAX + 2);
	fates_free(&f);
}
END_TEST

START_TEST(a_recipient_whose_delivery_has_no_end_is_open_again)
{
	struct fates f;

	fates_begin(&f, 2, none);
	fates_set(&f, 0, FATE_SENT, smtp_span_of("250 Ok"));
	fates_set(&f, 1, FATE_FAILED, smtp_span_of("550 No"));
	fates_unsend(&f);
	ck_assert_uint_eq(fates_count(&f, FATE_OPEN), 1);
	ck_assert_uint_eq(fates_count(&f, FATE_FAILED), 1);
	fates_free(&f);
}
END_TEST

UNIT(fates)
{
	const TTest *facts[] = {
		note_brings_back_each_fate_and_reply,
		note_brings_back_the_server_of_a_reply_and_whether_it_reports,
		reply_becomes_printable_ascii,
		note_of_another_message_is_ignored,
		long_reply_is_cut,
		a_recipient_whose_delivery_has_no_end_is_open_again,
	};
	return suite_run("fates", facts, SUITE_LEN(facts));
}
