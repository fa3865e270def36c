/* test_line.c: facts of cutting bytes into lines; every split gives the same lines. */
#include "smtp/line.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define MAX 16u

/* The lines that were read, as one text: [text|flaws]. */
struct account {
	char text[2048];
	size_t len, taken;
};

static void note(struct account *a, const struct smtp_line *line)
{
	a->len += (size_t)snprintf(a->text + a->len, sizeof a->text - a->len, "[%.*s|%u|%zu]", (int)line->text.len,
		line->text.at, line->flaws, line->wire.len);
}

static void feed(struct smtp_line_reader *r, const char *in, size_t len, struct account *a)
{
	struct smtp_line line;
	for (size_t at = 0, taken; at < len; at += taken) {
		int event = smtp_line_read(r, in + at, len - at, &taken, &line);
		a->taken += taken;
		if (event == SMTP_LINE)
			note(a, &line);
		else
			ck_assert_uint_eq(taken, len - at);
	}
}

/* Gives the input in three pieces, with cuts at @first and @second. A wipe leaves nothing of it. */
static struct account read_cut(const char *in, size_t len, size_t first, size_t second)
{
	struct account a = { 0 };
	struct smtp_line_reader r;
	static const char clean[MAX];
	char buf[MAX] = { 0 };
	smtp_line_begin(&r, MAX, buf);
	feed(&r, in, first, &a);
	feed(&r, in + first, second - first, &a);
	feed(&r, in + second, len - second, &a);
	smtp_line_wipe(&r);
	ck_assert_mem_eq(buf, clean, MAX);
	return a;
}

static void expect(const char *in, size_t len, const char *lines)
{
	for (size_t first = 0; first <= len; first++) {
		for (size_t second = first; second <= len; second++) {
			struct account a = read_cut(in, len, first, second);
			ck_assert_msg(strcmp(a.text, lines) == 0, "%zu %zu: %s", first, second, a.text);
			ck_assert_uint_eq(a.taken, len);
		}
	}
}

#define EXPECT(in, lines) expect(in, sizeof(in) - 1, lines)

START_TEST(lines_end_with_crlf)
{
	EXPECT("EHLO a\r\nQUIT\r\n\r\nx", "[EHLO a|0|8][QUIT|0|6][|0|2]");
}
END_TEST

START_TEST(a_bare_lf_ends_a_line_and_is_told)
{
	EXPECT("a\nb\r\n\n", "[a|16|2][b|0|3][|16|1]");
}
END_TEST

START_TEST(a_bare_cr_is_a_part_and_is_told)
{
	EXPECT("a\rb\r\n\r\r\n", "[a\rb|8|5][\r|8|3]");
}
END_TEST

START_TEST(bytes_that_a_command_cannot_have_are_told)
{
	EXPECT("\x1b\r\n\xff\r\n\t\r\n\x7f\r\n", "[\x1b|2|3][\xff|4|3][\t|0|3][\x7f|2|3]");
	EXPECT("a\0b\r\n", "[a|1|5]");
}
END_TEST

START_TEST(the_longest_line_fits)
{
	EXPECT("12345678901234\r\nx\r\n", "[12345678901234|0|16][x|0|3]");
}
END_TEST

START_TEST(a_longer_line_is_told_once_and_skipped)
{
	EXPECT("123456789012345\r\nx\r\n", "[123456789012345\r|32|16][x|0|3]");
	EXPECT("1234567890123456\r\nx\r\n", "[1234567890123456|32|16][x|0|3]");
	EXPECT("12345678901234567890123456789012345678901234567890\r\nx\r\n", "[1234567890123456|32|16][x|0|3]");
	EXPECT("12345678901234567890\nx\r\n", "[1234567890123456|32|16][x|0|3]");
}
END_TEST

START_TEST(between_lines_nothing_is_held)
{
	struct smtp_line_reader r;
	struct account a = { 0 };
	char buf[MAX];
	smtp_line_begin(&r, MAX, buf);
	ck_assert(smtp_line_is_between(&r));
	feed(&r, "a\r", 2, &a);
	ck_assert(!smtp_line_is_between(&r));
	feed(&r, "\n", 1, &a);
	ck_assert(smtp_line_is_between(&r));
	feed(&r, "12345678901234567", 17, &a);
	ck_assert(!smtp_line_is_between(&r));
	feed(&r, "\r\n", 2, &a);
	ck_assert(smtp_line_is_between(&r));
}
END_TEST

START_TEST(a_whole_line_is_not_copied)
{
	struct smtp_line_reader r;
	struct smtp_line line;
	const char *in = "NOOP\r\nQUIT\r\n";
	size_t taken;
	char buf[MAX];
	smtp_line_begin(&r, MAX, buf);
	ck_assert_int_eq(smtp_line_read(&r, in, 12, &taken, &line), SMTP_LINE);
	ck_assert_ptr_eq(line.text.at, in);
	ck_assert_uint_eq(taken, 6);
}
END_TEST

UNIT(line)
{
	const TTest *facts[] = {
		lines_end_with_crlf,
		a_bare_lf_ends_a_line_and_is_told,
		a_bare_cr_is_a_part_and_is_told,
		bytes_that_a_command_cannot_have_are_told,
		the_longest_line_fits,
		a_longer_line_is_told_once_and_skipped,
		between_lines_nothing_is_held,
		a_whole_line_is_not_copied,
	};
	return suite_run("line", facts, SUITE_LEN(facts));
}
