/* test_mail_mark.c: facts of the mark by which a mail is known again. */
#include "bench/mail/mail_mark.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct mail_mark mark_of(const char *body)
{
	struct mail_mark mark = { .id = "run-1", .body_len = strlen(body) };
	mail_mark_hash(body, strlen(body), mark.hash);
	return mark;
}

/* A mail with this head, the mark in its middle, and this body. */
static size_t make_mail(const struct mail_mark *mark, const char *body, char out[static 1024])
{
	char line[MAIL_MARK_LINE_MAX];
	mail_mark_write(mark, line);
	return (size_t)snprintf(
		out, 1024, "Received: by a relay\r\n\twith a second line\r\n%sSubject: x\r\n\r\n%s", line, body);
}

/* Fed in two pieces, at every place; the verdict is always the same. */
static enum mail_verdict verdict(const char *mail, size_t len)
{
	static struct mail_check check;
	mail_check_begin(&check);
	mail_check_feed(&check, mail, len);
	enum mail_verdict whole = mail_check_end(&check);
	for (size_t cut = 0; cut <= len; cut++) {
		mail_check_begin(&check);
		mail_check_feed(&check, mail, cut);
		mail_check_feed(&check, mail + cut, len - cut);
		ck_assert_int_eq(mail_check_end(&check), whole);
	}
	return whole;
}

START_TEST(a_mail_with_its_body_is_right)
{
	const char *bodies[] = { "", "a\r\n", "one\r\n\r\ntwo\r\n", "X-CSSL-Mail: in the body\r\n" };
	char mail[1024];
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
		struct mail_mark mark = mark_of(bodies[i]);
		ck_assert_int_eq(verdict(mail, make_mail(&mark, bodies[i], mail)), MAIL_RIGHT);
	}
}
END_TEST

START_TEST(a_mail_with_another_body_is_wrong)
{
	struct mail_mark mark = mark_of("one\r\n");
	const char *bodies[] = { "", "one\r", "one\r\n\r\n", "onE\r\n", ".one\r\n" };
	char mail[1024];
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
		ck_assert_int_eq(verdict(mail, make_mail(&mark, bodies[i], mail)), MAIL_WRONG);
}
END_TEST

START_TEST(a_mail_without_a_mark_is_unmarked)
{
	ck_assert_int_eq(verdict("Subject: a\r\n\r\nbody\r\n", 20), MAIL_UNMARKED);
	ck_assert_int_eq(verdict("X-CSSL-Mail: a 1 beef\r\n\r\nb", 26), MAIL_UNMARKED);
	ck_assert_int_eq(verdict("", 0), MAIL_UNMARKED);
}
END_TEST

START_TEST(a_long_head_line_hides_nothing)
{
	struct mail_mark mark = mark_of("b\r\n");
	char mail[1024], line[MAIL_MARK_LINE_MAX];
	mail_mark_write(&mark, line);
	int len = snprintf(mail, sizeof mail, "X-Long: %0500d\r\n%s\r\nb\r\n", 1, line);
	ck_assert_int_eq(verdict(mail, (size_t)len), MAIL_RIGHT);
}
END_TEST

START_TEST(a_mark_is_read_back_as_it_was_written)
{
	struct mail_mark mark = mark_of("abc"), again;
	char line[MAIL_MARK_LINE_MAX];
	size_t len = mail_mark_write(&mark, line);
	ck_assert_str_eq(line + len - 2, "\r\n");
	struct smtp_span rest = { line, len - 2 };
	ck_assert(smtp_span_is(smtp_span_until(&rest, ':'), MAIL_MARK));
	ck_assert_int_eq(mail_mark_parse(rest, &again), 0);
	ck_assert_str_eq(again.id, "run-1");
	ck_assert_uint_eq(again.body_len, 3);
	ck_assert_mem_eq(again.hash, mark.hash, sizeof mark.hash);
}
END_TEST

START_TEST(a_malformed_mark_is_refused)
{
	const char *hash = "00112233445566778899aabbccddeeff";
	char text[256];
	struct mail_mark mark;
	const char *bad[] = { "%s", "1 %s", "a b %s", "a -1 %s", "a 1 %s0", "a 1 %s x" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		snprintf(text, sizeof text, bad[i], hash);
		ck_assert_msg(mail_mark_parse(smtp_span_of(text), &mark) < 0, "%s", text);
	}
	ck_assert_int_lt(mail_mark_parse(smtp_span_of("a 1 0011223344556677889xaabbccddeeff"), &mark), 0);
}
END_TEST

UNIT(mail_mark)
{
	const TTest *facts[] = {
		a_mail_with_its_body_is_right,
		a_mail_with_another_body_is_wrong,
		a_mail_without_a_mark_is_unmarked,
		a_long_head_line_hides_nothing,
		a_mark_is_read_back_as_it_was_written,
		a_malformed_mark_is_refused,
	};
	return sodium_init() < 0 ? 1 : suite_run("mail_mark", facts, SUITE_LEN(facts));
}
