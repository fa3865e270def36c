/* test_envelope.c: facts of the envelope of a stored message. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "smtpproxy/envelope/envelope.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct envelope_text text;

static void begin(const char *sender)
{
	text = (struct envelope_text){ 0 };
	ck_assert_int_eq(envelope_begin(&text, smtp_span_of("client.example"), smtp_span_of("192.0.2.1:25"),
				 smtp_span_of(sender), smtp_span_of("ENVID=1")),
		0);
}

START_TEST(a_written_envelope_is_read_back)
{
	struct envelope_recipient one;
	struct envelope e;

	begin("a@b");
	envelope_add(&text, smtp_span_of("c@d"), smtp_span_of("NOTIFY=NEVER"));
	envelope_add(&text, smtp_span_of("e@f"), smtp_span_of(""));
	ck_assert_int_eq(envelope_read(&e, text.at, text.len), 0);
	ck_assert(smtp_span_is(e.hello, "client.example") && smtp_span_is(e.client, "192.0.2.1:25"));
	ck_assert(smtp_span_is(e.sender, "a@b") && smtp_span_is(e.params, "ENVID=1"));
	ck_assert_uint_eq(e.recipients, 2);
	ck_assert_int_eq(envelope_next(&e.rest, &one), 1);
	ck_assert(smtp_span_is(one.mailbox, "c@d") && smtp_span_is(one.params, "NOTIFY=NEVER"));
	ck_assert_int_eq(envelope_next(&e.rest, &one), 1);
	ck_assert(smtp_span_is(one.mailbox, "e@f") && one.params.len == 0);
	ck_assert_int_eq(envelope_next(&e.rest, &one), 0);
	envelope_free(&text);
}
END_TEST

START_TEST(null_sender_is_kept)
{
	struct envelope e;

	begin("");
	envelope_add(&text, smtp_span_of("c@d"), smtp_span_of(""));
	ck_assert_int_eq(envelope_read(&e, text.at, text.len), 0);
	ck_assert_uint_eq(e.sender.len, 0);
	envelope_free(&text);
}
END_TEST

/* Every cut is refused, also one that leaves no recipient. */
START_TEST(cut_text_is_refused)
{
	struct envelope e;

	begin("a@b");
	envelope_add(&text, smtp_span_of("c@d"), smtp_span_of("x"));
	for (size_t len = 0; len < text.len; len++) {
		char *cut = malloc(len + 1);

		memcpy(cut, text.at, len);
		ck_assert_int_eq(envelope_read(&e, cut, len), CSSL_E_TRUNCATED);
		free(cut);
	}
	text.at[0] = 9;
	ck_assert_int_eq(envelope_read(&e, text.at, text.len), CSSL_E_VERSION);
	envelope_free(&text);
}
END_TEST

START_TEST(many_recipients_have_room)
{
	struct envelope e;

	begin("a@b");
	for (unsigned i = 0; i < 1000; i++)
		ck_assert_int_eq(envelope_add(&text, smtp_span_of("somebody@receiver.example"), smtp_span_of("")), 0);
	ck_assert_int_eq(envelope_read(&e, text.at, text.len), 0);
	ck_assert_uint_eq(e.recipients, 1000);
	envelope_free(&text);
}
END_TEST

START_TEST(domain_is_behind_the_last_at)
{
	ck_assert(smtp_span_is(envelope_domain(smtp_span_of("\"a@b\"@c.d")), "c.d"));
	ck_assert_uint_eq(envelope_domain(smtp_span_of("postmaster")).len, 0);
}
END_TEST

static int is_secured(const char *params)
{
	const struct envelope e = { .params = smtp_span_of(params) };

	return envelope_is_secured(&e);
}

START_TEST(the_last_parameter_tells_that_it_came_with_tls)
{
	ck_assert(is_secured(ENVELOPE_SECURED));
	ck_assert(is_secured("BODY=8BITMIME" ENVELOPE_SECURED));
	ck_assert(!is_secured(""));
	ck_assert(!is_secured("ENVID=REQUIRETLS"));
	ck_assert(!is_secured("BODY=8BITMIME"));
}
END_TEST

UNIT(envelope)
{
	const TTest *facts[] = {
		a_written_envelope_is_read_back,
		null_sender_is_kept,
		cut_text_is_refused,
		many_recipients_have_room,
		domain_is_behind_the_last_at,
		the_last_parameter_tells_that_it_came_with_tls,
	};
	return suite_run("envelope", facts, SUITE_LEN(facts));
}
