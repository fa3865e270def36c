/* test_record.c: facts of the record of a transaction. */
#include "smtpproxy/events/record.h"

#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const struct record_origin origin = { .connection = 7,
	.client = "192.0.2.1:1000",
	.ehlo = "c\x01",
	.destination = "192.0.2.2:25",
	.wall_ms = 1500,
	.now_ms = 10 };

static struct smtp_reply_line reply(const char *text)
{
	struct smtp_reply_line line;
	ck_assert_int_eq(smtp_reply_line_parse(smtp_span_of(text), &line), 0);
	return line;
}

static void check(struct record *r, const char *expected)
{
	json_t *out = record_end(r, RECORD_REFUSED, 99, 50);
	char *text = json_dumps(out, JSON_COMPACT);
	ck_assert_str_eq(text, expected);
	free(text);
	json_decref(out);
	ck_assert(!record_is_open(r));
}

START_TEST(a_record_has_every_field)
{
	struct record r;
	const struct smtp_reply_line ok = reply("250 2.1.5 Ok"), no = reply("550 No such \xff user");
	record_begin(&r, &origin, smtp_span_of("a@b"));
	record_turn(&r, 30);
	record_recipient(&r, smtp_span_of("c@d"));
	record_recipient(&r, smtp_span_of("\xc3\xa4@d"));
	record_recipient_reply(&r, &ok);
	record_recipient_reply(&r, &no);
	record_tls(&r, "TLSv1.3", "X");
	record_text(&r, "transaction", "0a/1");
	record_reply(&r, &ok);
	record_reply(&r, &no);
	check(&r,
		"{\"time\":\"1970-01-01T00:00:01.500Z\",\"connection\":7,\"client\":\"192.0.2.1:1000\",\"ehlo\":\"c?\","
		"\"destination\":\"192.0.2.2:25\",\"from\":\"a@b\",\"tls\":{\"version\":\"TLSv1.3\",\"cipher\":\"X\"},"
		"\"transaction\":\"0a/1\",\"code\":550,\"text\":\"No such ? user\",\"recipients\":[{\"to\":\"c@d\","
		"\"code\":250,\"enhanced\":\"2.1.5\",\"text\":\"2.1.5 Ok\"},{\"to\":\"\xc3\xa4@d\",\"code\":550,"
		"\"text\":\"No such ? user\"}],\"size\":99,\"outcome\":\"refused\",\"wait_ms\":20,\"ms\":40}");
}
END_TEST

START_TEST(a_transaction_that_was_not_served_has_our_reply_and_waited_to_the_end)
{
	struct record r;
	record_begin(&r, &origin, smtp_span_of("a@b"));
	record_own_reply(&r, SMTP_OWN_BACKEND_UNREACHABLE, "");
	json_t *out = record_end(&r, RECORD_NOT_SERVED, 0, 50);
	ck_assert_int_eq(json_integer_value(json_object_get(out, "wait_ms")), 40);
	ck_assert_int_eq(json_integer_value(json_object_get(out, "code")), 421);
	ck_assert_str_eq(json_string_value(json_object_get(out, "enhanced")), "4.4.1");
	ck_assert_str_eq(json_string_value(json_object_get(out, "text")),
		"4.4.1 The mail server behind does not answer, try again later");
	json_decref(out);
}
END_TEST

START_TEST(many_recipients_are_counted_and_not_kept)
{
	struct record r;
	record_begin(&r, &origin, smtp_span_of(""));
	for (unsigned i = 0; i < RECORD_RECIPIENTS_MAX + 5; i++)
		record_recipient(&r, smtp_span_of("c@d"));
	json_t *out = record_end(&r, RECORD_ABORTED, 0, 50);
	ck_assert_uint_eq(json_array_size(json_object_get(out, "recipients")), RECORD_RECIPIENTS_MAX);
	ck_assert_int_eq(json_integer_value(json_object_get(out, "more")), 5);
	json_decref(out);
}
END_TEST

UNIT(record)
{
	const TTest *facts[] = { a_record_has_every_field,
		a_transaction_that_was_not_served_has_our_reply_and_waited_to_the_end,
		many_recipients_are_counted_and_not_kept };
	return suite_run("record", facts, SUITE_LEN(facts));
}
