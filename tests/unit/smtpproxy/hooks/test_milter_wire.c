/* test_milter_wire.c: facts of the milter protocol's packets. */
#include "smtpproxy/hooks/milter_wire.h"

#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(a_packet_is_length_letter_and_texts)
{
	static const uint8_t expected[] = "\0\0\0\7Ha.b\0x"; /* the literal adds the last NUL */
	uint8_t out[64];
	struct wire_writer w = wire_writer(out, sizeof out);
	uint8_t *begin = milter_packet(&w, MILTER_HELO);

	milter_put_text(&w, smtp_span_of("a.b"));
	milter_put_text(&w, (struct smtp_span){ "x\0y", 3 });
	milter_packet_end(&w, begin);
	ck_assert_int_eq(wire_writer_len(&w), sizeof expected);
	ck_assert_mem_eq(out, expected, sizeof expected);
}
END_TEST

START_TEST(a_packet_is_taken_when_it_is_complete)
{
	static const uint8_t in[] = "\0\0\0\4y55\0c";
	struct wire_reader rest;
	size_t taken;
	uint8_t letter;

	for (size_t len = 0; len < 8; len++)
		ck_assert_int_eq(milter_take(in, len, &taken, &letter, &rest), 0);
	ck_assert_int_eq(milter_take(in, sizeof in, &taken, &letter, &rest), 1);
	ck_assert_uint_eq(taken, 8);
	ck_assert_int_eq(letter, 'y');
	ck_assert_uint_eq(wire_left(&rest), 3);
}
END_TEST

START_TEST(an_empty_packet_and_one_that_is_too_long_are_refused)
{
	static const uint8_t empty[4], longest[4] = { 0, 2, 0, 1 };
	struct wire_reader rest;
	size_t taken;
	uint8_t letter;

	ck_assert_int_eq(milter_take(empty, 4, &taken, &letter, &rest), CSSL_E_RANGE);
	ck_assert_int_eq(milter_take(longest, 4, &taken, &letter, &rest), CSSL_E_RANGE);
}
END_TEST

static struct milter_options o;

static int read_options(uint32_t version, uint32_t actions, uint32_t flags, size_t len)
{
	uint8_t in[32] = { 0 };
	struct wire_writer w = wire_writer(in, sizeof in);

	wire_put_u32(&w, version);
	wire_put_u32(&w, actions);
	wire_put_u32(&w, flags);
	return milter_read_options(wire_reader(in, len), &o);
}

START_TEST(a_milter_may_wish_for_more_than_was_offered)
{
	ck_assert_int_eq(read_options(6, MILTER_ACTIONS, MILTER_FLAGS, 12), 0);
	ck_assert_int_eq(read_options(2, 0, 0, 12), 0);
	ck_assert_int_eq(read_options(6, 1, 0, 20), 0); /* with a list of macros, which is ignored */
	ck_assert_int_eq(read_options(1, 0, 0, 12), CSSL_E_VERSION);
	ck_assert_int_eq(read_options(7, 0, 0, 12), CSSL_E_VERSION);
	ck_assert_int_eq(read_options(6, 0x3f, 0x900 | MILTER_NO_BODY, 12), 0); /* as rspamd does */
	ck_assert_uint_eq(o.flags, MILTER_NO_UNKNOWN | MILTER_NO_BODY);
	ck_assert_int_eq(read_options(6, 0, 0, 11), CSSL_E_TRUNCATED);
}
END_TEST

START_TEST(a_text_without_its_end_is_refused)
{
	static const uint8_t in[] = "ab\0cd";
	struct wire_reader r = wire_reader(in, 5);
	struct smtp_span text;

	ck_assert_int_eq(milter_read_text(&r, &text), 0);
	ck_assert(smtp_span_is(text, "ab"));
	ck_assert_int_eq(milter_read_text(&r, &text), CSSL_E_TRUNCATED);
}
END_TEST

static const char *reply_of(const char *text)
{
	static char out[1025];
	struct wire_writer w = wire_writer((uint8_t *)out, sizeof out - 1);

	if (milter_write_reply(&w, smtp_span_of(text)) < 0)
		return "refused";
	out[wire_writer_len(&w)] = '\0';
	return out;
}

START_TEST(a_reply_of_a_milter_becomes_one_for_the_sender)
{
	ck_assert_str_eq(reply_of("550 5.7.1 no"), "550 5.7.1 no\r\n");
	ck_assert_str_eq(reply_of("450-4.7.1 a\r\n450 4.7.1 b"), "450-4.7.1 a\r\n450 4.7.1 b\r\n");
	ck_assert_str_eq(reply_of("421 4.7.0 end"), "451 4.7.0 end\r\n");
	ck_assert_str_eq(reply_of("550 a\rb\001"), "550 a?b?\r\n");
	ck_assert_str_eq(reply_of("250 ok"), "refused");
	ck_assert_str_eq(reply_of("354 go"), "refused");
	ck_assert_str_eq(reply_of("no"), "refused");
	ck_assert_str_eq(reply_of(""), "refused");
	ck_assert_str_eq(reply_of("5500 x"), "refused");
	ck_assert_str_eq(reply_of("550 a\n551 b"), "refused");
}
END_TEST

UNIT(milter_wire)
{
	const TTest *facts[] = {
		a_packet_is_length_letter_and_texts,
		a_packet_is_taken_when_it_is_complete,
		an_empty_packet_and_one_that_is_too_long_are_refused,
		a_milter_may_wish_for_more_than_was_offered,
		a_text_without_its_end_is_refused,
		a_reply_of_a_milter_becomes_one_for_the_sender,
	};
	return suite_run("milter_wire", facts, SUITE_LEN(facts));
}
