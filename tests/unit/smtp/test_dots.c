/* test_dots.c: facts of dot-stuffing. */

#include <string.h>

#include "smtp/data.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const char *const messages[] = { "", ".", "..", "a", "a\r\n", ".a\r\n.\r\n..\r\n", "a\r\n.", "\r\n\r\n.",
	"a\n.\r\n", "a\r.\n.b\r\n", ".\n.\r.\r\n.", "\r", "\n" };

static size_t add_cut(const char *in, size_t len, size_t cut, char *out, struct smtp_span *end)
{
	struct smtp_dots dots = { 0 };
	size_t written = smtp_dots_add(&dots, in, cut, out);
	written += smtp_dots_add(&dots, in + cut, len - cut, out + written);
	*end = smtp_dots_end(&dots);
	memcpy(out + written, end->at, end->len);
	return written + end->len;
}

START_TEST(dots_at_line_heads_are_doubled)
{
	char out[64];
	struct smtp_span end;
	size_t len = add_cut(".a\r\n.\r\nb.\r\n", 11, 5, out, &end);
	ck_assert_uint_eq(len, 16);
	ck_assert_mem_eq(out, "..a\r\n..\r\nb.\r\n.\r\n", 16);
}
END_TEST

START_TEST(a_message_without_an_end_of_line_gets_one)
{
	struct smtp_dots dots = { 0 };
	char out[4];
	ck_assert(smtp_span_is(smtp_dots_end(&dots), ".\r\n"));
	smtp_dots_add(&dots, "a", 1, out);
	ck_assert(smtp_span_is(smtp_dots_end(&dots), "\r\n.\r\n"));
}
END_TEST

START_TEST(a_stuffed_message_ends_at_its_own_end_and_comes_back)
{
	for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++) {
		const char *in = messages[i];
		size_t len = strlen(in), taken;
		for (size_t cut = 0; cut <= len; cut++) {
			char wire[64], back[64];
			struct smtp_span end;
			struct smtp_data d;
			size_t wire_len = add_cut(in, len, cut, wire, &end), message_len = wire_len - 3;
			smtp_data_begin(&d, 0);
			ck_assert_int_eq(smtp_data_follow(&d, wire, wire_len, &taken), SMTP_DATA_END);
			ck_assert_uint_eq(taken, wire_len);
			for (size_t at = 0; at <= message_len; at++) {
				struct smtp_dots dots = { 0 };
				size_t got = smtp_dots_remove(&dots, wire, at, back);
				got += smtp_dots_remove(&dots, wire + at, message_len - at, back + got);
				ck_assert_uint_eq(got, smtp_data_message_len(&d));
				ck_assert_uint_eq(got, len + end.len - 3);
				ck_assert_mem_eq(back, in, len);
			}
		}
	}
}
END_TEST

START_TEST(dots_are_removed_in_place)
{
	char text[] = "..a\r\n...\r\nb";
	struct smtp_dots dots = { 0 };
	ck_assert_uint_eq(smtp_dots_remove(&dots, text, sizeof text - 1, text), 9);
	ck_assert_mem_eq(text, ".a\r\n..\r\nb", 9);
}
END_TEST

UNIT(dots)
{
	const TTest *facts[] = {
		dots_at_line_heads_are_doubled,
		a_message_without_an_end_of_line_gets_one,
		a_stuffed_message_ends_at_its_own_end_and_comes_back,
		dots_are_removed_in_place,
	};
	return suite_run("dots", facts, SUITE_LEN(facts));
}
