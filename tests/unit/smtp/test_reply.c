/* test_reply.c: facts of reading replies. Every reply is read whole and in pieces, with the same lines. */
#include "smtp/reply.h"

#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MAX 64u

/* The lines that were given, each as |wire; behind the last one of a reply a point; behind all, an error. */
struct account {
	char text[4096];
	size_t len;
	struct smtp_reply_line last;
};

static void note(struct account *a, const char *what, size_t len)
{
	ck_assert_uint_lt(a->len + len, sizeof a->text);
	memcpy(a->text + a->len, what, len);
	a->len += len;
	a->text[a->len] = '\0';
}

static int take_line(struct smtp_reply_reader *r, const char *in, size_t len, size_t *taken, struct account *a)
{
	const int result = smtp_reply_read(r, in, len, taken, &a->last);

	if (result > SMTP_REPLY_NONE) {
		ck_assert_mem_eq(a->last.wire.at + a->last.wire.len - 2, "\r\n", 2);
		note(a, "|", 1);
		note(a, a->last.wire.at, a->last.wire.len - 2);
	}
	if (result == SMTP_REPLY_DONE)
		note(a, ".", 1);
	if (result < 0)
		note(a, result == CSSL_E_RANGE ? "bad" : "endless", result == CSSL_E_RANGE ? 3 : 7);
	return result;
}

static int take(struct smtp_reply_reader *r, const char *in, size_t len, struct account *a)
{
	size_t taken = 0;
	int result = SMTP_REPLY_NONE;

	for (size_t at = 0; at < len && result >= 0; at += taken)
		result = take_line(r, in + at, len - at, &taken, a);
	return result;
}

/* In pieces of @piece bytes. */
static struct account read_in(const char *in, size_t len, size_t piece)
{
	static char buf[MAX];
	struct smtp_reply_reader r;
	struct account a = { 0 };
	int result = 0;

	smtp_reply_begin(&r, buf, sizeof buf);
	for (size_t at = 0; at < len && result >= 0; at += piece)
		result = take(&r, in + at, len - at < piece ? len - at : piece, &a);
	ck_assert(result < 0 || in[len - 1] != '\n' || a.text[a.len - 1] != '.' || smtp_reply_is_between(&r));
	return a;
}

static struct account expect(const char *in, const char *lines)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 63, 64, 65, 1 << 20 };
	struct account a;

	for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
		a = read_in(in, strlen(in), pieces[i]);
		ck_assert_msg(strcmp(a.text, lines) == 0, "%s in pieces of %zu: %s", in, pieces[i], a.text);
	}
	return a;
}

START_TEST(one_line_is_a_reply)
{
	const struct account a = expect("250 2.1.0 Sender ok\r\n", "|250 2.1.0 Sender ok.");
	ck_assert_uint_eq(a.last.code, 250);
	ck_assert_uint_eq(a.last.enhanced.status, 2);
	ck_assert_uint_eq(a.last.enhanced.subject, 1);
	ck_assert_uint_eq(a.last.enhanced.detail, 0);
	ck_assert_uint_eq(a.last.number, 1);
}
END_TEST

START_TEST(a_clean_line_is_not_copied)
{
	const char in[] = "250 ok\r\n";
	struct smtp_reply_reader r;
	struct smtp_reply_line line;
	size_t taken;
	char buf[MAX];
	smtp_reply_begin(&r, buf, sizeof buf);
	ck_assert_int_eq(smtp_reply_read(&r, in, sizeof in - 1, &taken, &line), SMTP_REPLY_DONE);
	ck_assert_ptr_eq(line.wire.at, in);
	ck_assert(smtp_span_is(line.text, "ok"));
}
END_TEST

START_TEST(a_code_alone_is_a_last_line)
{
	expect("250\r\n", "|250.");
	expect("354 \r\n", "|354 .");
}
END_TEST

START_TEST(lines_with_a_hyphen_go_on)
{
	const struct account a = expect("250-a\r\n250-\r\n250 b\r\n250 c\r\n", "|250-a|250-|250 b.|250 c.");
	ck_assert_uint_eq(a.last.number, 1);
	expect("250-a\r\n25", "|250-a");
}
END_TEST

START_TEST(the_last_line_decides_on_the_code)
{
	const struct account a = expect("250-a\r\n451-b\r\n550 c\r\n", "|250-a|451-b|550 c.");
	ck_assert_uint_eq(a.last.code, 550);
	ck_assert_uint_eq(a.last.number, 3);
}
END_TEST

START_TEST(lf_ends_a_line_and_so_do_several_cr_before_it)
{
	expect("250-a\n250 b\n", "|250-a|250 b.");
	expect("250-a\r\r\n250 b\r\r\r\n", "|250-a|250 b.");
	expect("250\n", "|250 .");
}
END_TEST

START_TEST(control_characters_are_replaced)
{
	expect("250 as\r1\x1b\x7f\r\n", "|250 as?1??.");
	expect("250 a\tb\r\n", "|250 a\tb.");
	const struct account a = read_in("250 o\0k\r\n", 9, 4);
	ck_assert_str_eq(a.text, "|250 o?k.");
}
END_TEST

START_TEST(anything_may_stand_behind_the_code)
{
	expect("250OK\r\n", "|250 OK.");
	expect("250\tok\r\n", "|250 ok.");
	expect("250_x\r\n", "|250 _x.");
	expect("250.\r\n", "|250 ..");
	expect("250\xff\r\n", "|250 \xff.");
}
END_TEST

START_TEST(a_longer_line_is_cut)
{
	char in[200], out[MAX + 8];
	struct account a;
	for (size_t text = 50; text < 150; text++) {
		const size_t fits = text + 6 <= MAX ? text : MAX - 6;
		memset(in, 'x', sizeof in);
		memcpy(in, "550-", 4);
		memcpy(in + 4 + text, "\r\n550 y\r\n", 10);
		snprintf(out, sizeof out, "|550-%.*s|550 y.", (int)fits, in + 4);
		a = expect(in, out);
		ck_assert(!a.last.is_cut);
		memcpy(in, "550 ", 4);
		in[4 + text + 2] = '\0';
		snprintf(out, sizeof out, "|550 %.*s.", (int)fits, in + 4);
		a = expect(in, out);
		ck_assert_int_eq(a.last.is_cut, text != fits);
	}
}
END_TEST

START_TEST(what_has_no_code_is_no_reply)
{
	const char *bad[] = { "\r\n", "25\r\n", "2500 x\r\n", "abc\r\n", "199 x\r\n", "600 x\r\n", "-50 x\r\n",
		"25a x\r\n", " 250 x\r\n", "\n" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		expect(bad[i], "bad");
	expect("250-a\r\nb\r\n", "|250-abad");
}
END_TEST

START_TEST(behind_what_is_no_reply_the_next_line_is_one)
{
	static char buf[MAX];
	struct smtp_reply_reader r;
	struct account a = { 0 };

	smtp_reply_begin(&r, buf, sizeof buf);
	take(&r, "gar", 3, &a);
	ck_assert(!smtp_reply_is_between(&r));
	take(&r, "bage\r\n", 6, &a);
	take(&r, "250 ok\r\n", 8, &a);
	ck_assert_str_eq(a.text, "bad|250 ok.");
}
END_TEST

START_TEST(of_many_lines_the_last_one_is_given)
{
	static char in[SMTP_REPLY_TEXT_MAX * 2];
	const char line[] = "250-3456789 23456789 234567890\r\n";
	size_t len = 0, taken;
	struct smtp_reply_reader r;
	struct smtp_reply_line out;
	char buf[MAX];
	unsigned lines = 0;
	while (len + sizeof line < sizeof in)
		len += (size_t)snprintf(in + len, sizeof in - len, "%s", line);
	smtp_reply_begin(&r, buf, sizeof buf);
	for (size_t at = 0; at < len; at += taken)
		lines += smtp_reply_read(&r, in + at, len - at, &taken, &out) == SMTP_REPLY_MORE;
	ck_assert_uint_eq(lines, SMTP_REPLY_TEXT_MAX / (sizeof line - 1));
	ck_assert_int_eq(smtp_reply_read(&r, "451 x\r\n", 7, &taken, &out), SMTP_REPLY_DONE);
	ck_assert_uint_eq(out.code, 451);
	ck_assert(smtp_reply_is_between(&r));
}
END_TEST

START_TEST(a_reply_without_an_end_is_refused)
{
	static char in[SMTP_REPLY_BYTES_MAX + 1];
	memset(in, 'x', sizeof in);
	memcpy(in, "250 ", 4);
	ck_assert_str_eq(read_in(in, sizeof in - 1, 1000).text, "");
	ck_assert_str_eq(read_in(in, sizeof in, 1000).text, "endless");
}
END_TEST

START_TEST(an_enhanced_code_fits_its_code)
{
	static const struct {
		const char *text;
		unsigned code, status;
	} rows[] = {
		{ "5.7.1 no", 550, 5 },
		{ "5.7.1", 550, 5 },
		{ "4.7.1 no", 550, 0 },
		{ "2.1.5 ok", 250, 2 },
		{ "3.0.0 go", 354, 0 },
		{ "5.7 no", 550, 0 },
		{ "5.1000.1 x", 550, 0 },
		{ "5.01.1 x", 550, 0 },
		{ "5.7.x no", 550, 0 },
		{ "5.123.456 x", 550, 5 },
		{ "no", 550, 0 },
		{ "", 550, 0 },
		{ "5.7.1x no", 550, 0 },
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct smtp_reply_line line;
		char text[32];
		snprintf(text, sizeof text, "%u %s", rows[i].code, rows[i].text);
		ck_assert_int_eq(smtp_reply_line_parse(smtp_span_of(text), &line), 0);
		ck_assert_msg(line.enhanced.status == rows[i].status, "%s", text);
	}
}
END_TEST

UNIT(reply)
{
	const TTest *facts[] = {
		one_line_is_a_reply,
		a_clean_line_is_not_copied,
		a_code_alone_is_a_last_line,
		lines_with_a_hyphen_go_on,
		the_last_line_decides_on_the_code,
		lf_ends_a_line_and_so_do_several_cr_before_it,
		control_characters_are_replaced,
		anything_may_stand_behind_the_code,
		a_longer_line_is_cut,
		what_has_no_code_is_no_reply,
		behind_what_is_no_reply_the_next_line_is_one,
		of_many_lines_the_last_one_is_given,
		a_reply_without_an_end_is_refused,
		an_enhanced_code_fits_its_code,
	};
	return suite_run("reply", facts, SUITE_LEN(facts));
}
