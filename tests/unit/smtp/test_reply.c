/* test_reply.c: facts of reading replies. */
#include "smtp/reply.h"

#include <string.h>

#include "proto/error.h"
#include "smtp/line.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct smtp_reply reply;
static struct smtp_reply_line line;

static int add(const char *text)
{
	return smtp_reply_add(&reply, smtp_span_of(text), 0, &line);
}

static void begin_anew(void)
{
	memset(&reply, 0, sizeof reply);
}

START_TEST(one_line_is_a_reply)
{
	ck_assert_int_eq(add("250 2.1.0 Sender ok"), SMTP_REPLY_DONE);
	ck_assert_uint_eq(reply.code, 250);
	ck_assert_uint_eq(reply.enhanced.status, 2);
	ck_assert_uint_eq(reply.enhanced.subject, 1);
	ck_assert_uint_eq(reply.enhanced.detail, 0);
	ck_assert(smtp_span_is(line.text, "2.1.0 Sender ok"));
}
END_TEST

START_TEST(a_code_alone_is_a_last_line)
{
	ck_assert_int_eq(add("250"), SMTP_REPLY_DONE);
	ck_assert_uint_eq(line.text.len, 0);
	begin_anew();
	ck_assert_int_eq(add("354 "), SMTP_REPLY_DONE);
}
END_TEST

START_TEST(lines_with_a_hyphen_go_on)
{
	ck_assert_int_eq(add("250-a"), SMTP_REPLY_MORE);
	ck_assert_int_eq(add("250-"), SMTP_REPLY_MORE);
	ck_assert_int_eq(add("250 b"), SMTP_REPLY_DONE);
	ck_assert_uint_eq(reply.lines, 3);
	ck_assert_uint_eq(reply.len, 7 + 6 + 7);
}
END_TEST

START_TEST(mixed_codes_are_refused)
{
	ck_assert_int_eq(add("250-a"), SMTP_REPLY_MORE);
	ck_assert_int_eq(add("251 b"), CSSL_E_MISMATCH);
}
END_TEST

START_TEST(a_bad_reply_is_refused)
{
	const char *bad[] = { "", "25", "2500 x", "250_x", "abc", "199 x", "600 x", "-50 x", "25a x", " 250 x" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		begin_anew();
		ck_assert_msg(add(bad[i]) == CSSL_E_RANGE, "%s", bad[i]);
	}
}
END_TEST

START_TEST(flaws_are_refused)
{
	ck_assert_int_eq(smtp_reply_add(&reply, smtp_span_of("250 a"), SMTP_LINE_NUL, &line), CSSL_E_RANGE);
	ck_assert_int_eq(smtp_reply_add(&reply, smtp_span_of("250 a"), SMTP_LINE_BARE_LF, &line), CSSL_E_RANGE);
	ck_assert_int_eq(smtp_reply_add(&reply, smtp_span_of("250 a"), SMTP_LINE_BARE_CR, &line), CSSL_E_RANGE);
	ck_assert_int_eq(smtp_reply_add(&reply, smtp_span_of("250 a"), SMTP_LINE_TOO_LONG, &line), CSSL_E_TOO_LONG);
	ck_assert_int_eq(smtp_reply_add(&reply, smtp_span_of("250 a"), SMTP_LINE_8BIT, &line), SMTP_REPLY_DONE);
}
END_TEST

START_TEST(lines_and_length_are_bounded)
{
	char text[1000];
	for (unsigned i = 0; i < SMTP_REPLY_LINES_MAX; i++)
		ck_assert_int_eq(add("250-a"), SMTP_REPLY_MORE);
	ck_assert_int_eq(add("250-a"), CSSL_E_TOO_LONG);
	begin_anew();
	memset(text, 'a', sizeof text);
	memcpy(text, "250-", 4);
	text[sizeof text - 1] = 0;
	for (unsigned i = 0; i < 8; i++)
		ck_assert_int_eq(add(text), SMTP_REPLY_MORE);
	ck_assert_int_eq(add(text), CSSL_E_TOO_LONG);
}
END_TEST

START_TEST(an_enhanced_code_fits_its_code)
{
	static const struct {
		const char *text;
		unsigned code, status, taken;
	} rows[] = {
		{ "5.7.1 no", 550, 5, 6 },
		{ "5.7.1", 550, 5, 5 },
		{ "4.7.1 no", 550, 0, 0 },
		{ "2.1.5 ok", 250, 2, 6 },
		{ "3.0.0 go", 354, 0, 0 },
		{ "5.7 no", 550, 0, 0 },
		{ "5.1000.1 x", 550, 0, 0 },
		{ "5.01.1 x", 550, 0, 0 },
		{ "5.7.x no", 550, 0, 0 },
		{ "5.123.456 x", 550, 5, 10 },
		{ "no", 550, 0, 0 },
		{ "", 550, 0, 0 },
		{ "5.7.1x no", 550, 0, 0 },
	};
	size_t taken;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct smtp_enhanced e = smtp_enhanced_parse(smtp_span_of(rows[i].text), rows[i].code, &taken);
		ck_assert_msg(e.status == rows[i].status && taken == rows[i].taken, "%s: %zu", rows[i].text, taken);
	}
}
END_TEST

UNIT(reply)
{
	const TTest *facts[] = {
		one_line_is_a_reply,
		a_code_alone_is_a_last_line,
		lines_with_a_hyphen_go_on,
		mixed_codes_are_refused,
		a_bad_reply_is_refused,
		flaws_are_refused,
		lines_and_length_are_bounded,
		an_enhanced_code_fits_its_code,
	};
	return suite_run_with("reply", begin_anew, facts, SUITE_LEN(facts));
}
