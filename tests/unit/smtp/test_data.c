/* test_data.c: facts of the end of data; every split gives the same. */
#include "smtp/data.h"

#include <string.h>

#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

struct outcome {
	enum smtp_data_event event;
	uint32_t flaws;
	uint64_t len, message_len, lines;
};

/* Gives the text in three pieces, up to the first event that is not MORE. */
static struct outcome follow_cut(const char *in, size_t len, uint32_t refuse, size_t first, size_t second)
{
	struct smtp_data d;
	size_t from[] = { 0, first, second }, to[] = { first, second, len }, taken;
	enum smtp_data_event event = SMTP_DATA_MORE;
	smtp_data_begin(&d, refuse);
	for (unsigned i = 0; i < 3 && event == SMTP_DATA_MORE; i++)
		event = smtp_data_follow(&d, in + from[i], to[i] - from[i], &taken);
	return (struct outcome){ event, d.flaws, d.len, smtp_data_message_len(&d), d.lines };
}

static struct outcome follow(const char *in, size_t len, uint32_t refuse)
{
	struct outcome whole = follow_cut(in, len, refuse, len, len);
	for (size_t first = 0; first <= len; first++) {
		for (size_t second = first; second <= len; second++) {
			struct outcome cut = follow_cut(in, len, refuse, first, second);
			ck_assert_msg(cut.event == whole.event && cut.flaws == whole.flaws && cut.len == whole.len &&
					      cut.message_len == whole.message_len && cut.lines == whole.lines,
				"cut at %zu and %zu of %s", first, second, in);
		}
	}
	return whole;
}

#define FOLLOW(in, refuse) follow(in, sizeof(in) - 1, refuse)

START_TEST(crlf_dot_crlf_is_the_end)
{
	struct outcome o = FOLLOW("Subject: a\r\n\r\nb\r\n.\r\nQUIT\r\n", 0);
	ck_assert_int_eq(o.event, SMTP_DATA_END);
	ck_assert_uint_eq(o.len, 20);
	ck_assert_uint_eq(o.message_len, 17);
	ck_assert_uint_eq(o.lines, 3);
	ck_assert_uint_eq(o.flaws, 0);
}
END_TEST

START_TEST(a_dot_at_once_is_the_end)
{
	struct outcome o = FOLLOW(".\r\n", 0);
	ck_assert_int_eq(o.event, SMTP_DATA_END);
	ck_assert_uint_eq(o.message_len, 0);
}
END_TEST

START_TEST(stuffed_dots_are_counted_off)
{
	struct outcome o = FOLLOW("..\r\n...a\r\n.b\r\na..\r\n.\r\n", 0);
	ck_assert_int_eq(o.event, SMTP_DATA_END);
	ck_assert_uint_eq(o.len, 22);
	ck_assert_uint_eq(o.message_len, 22 - 3 - 3);
	ck_assert_uint_eq(o.flaws, 0);
}
END_TEST

/* The smuggling sequences. Each stands between a line and a second mail. */
static const struct sequence {
	const char *bytes;
	size_t len;
	enum smtp_data_flaw flaw;
} sequences[] = {
#define SEQUENCE(bytes, flaw)                                                                                          \
	{                                                                                                              \
		bytes, sizeof(bytes) - 1, SMTP_DATA_##flaw                                                             \
	}
	SEQUENCE("\n.\n", LF_DOT_LF),
	SEQUENCE("\n.\r", LF_DOT_CR),
	SEQUENCE("\r.\n", CR_DOT_LF),
	SEQUENCE("\r.\r", CR_DOT_CR),
	SEQUENCE("\n.\r\n", LF_DOT_CRLF),
	SEQUENCE("\r.\r\n", CR_DOT_CRLF),
	SEQUENCE("\r\n\0.\r\n", DOT_NUL),
	SEQUENCE("\r\n.\n", CRLF_DOT_LF),
	SEQUENCE("\r\n.\r", CRLF_DOT_CR),
	SEQUENCE("\r\n.\0\r\n", DOT_NUL),
	SEQUENCE("\r\n.\0\0.\r\n", DOT_NUL), /* once an added dot is removed */
	SEQUENCE("\r\n.\r\r\n", CRLF_DOT_CR),
	SEQUENCE("\r\r\n.\r\r\n", CRLF_DOT_CR),
};

static size_t smuggling_mail(const struct sequence *s, char *out)
{
	static const char before[] = "a", behind[] = "MAIL FROM:<e@v>\r\nDATA\r\n\r\nb\r\n.\r\n";
	size_t at = sizeof before - 1;
	memcpy(out, before, at);
	memcpy(out + at, s->bytes, s->len);
	memcpy(out + at + s->len, behind, sizeof behind - 1);
	return at + s->len + sizeof behind - 1;
}

START_TEST(no_smuggling_sequence_is_an_end)
{
	char mail[128];
	for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
		size_t len = smuggling_mail(&sequences[i], mail);
		struct outcome o = follow(mail, len, 0);
		ck_assert_int_eq(o.event, SMTP_DATA_END);
		ck_assert_uint_eq(o.len, len);
		uint32_t seen = o.flaws & SMTP_DATA_SMUGGLING;
		ck_assert_msg(seen == SMTP_DATA_BIT(sequences[i].flaw), "%zu: %x", i, seen);
	}
}
END_TEST

START_TEST(each_smuggling_sequence_can_be_refused)
{
	char mail[128];
	for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
		size_t len = smuggling_mail(&sequences[i], mail);
		struct outcome o = follow(mail, len, SMTP_DATA_BIT(sequences[i].flaw));
		ck_assert_int_eq(o.event, SMTP_DATA_BAD);
		ck_assert_uint_le(o.len, 1 + sequences[i].len + 1);
		ck_assert_int_eq(follow(mail, len, SMTP_DATA_SMUGGLING).event, SMTP_DATA_BAD);
	}
}
END_TEST

START_TEST(a_refused_mail_is_followed_to_its_end)
{
	const char in[] = "a\n.\nMAIL\r\n\n.\n\r\n.\r\nQUIT";
	struct smtp_data d;
	size_t taken, at;
	smtp_data_begin(&d, SMTP_DATA_SMUGGLING);
	ck_assert_int_eq(smtp_data_follow(&d, in, sizeof in - 1, &at), SMTP_DATA_BAD);
	ck_assert_uint_eq(at, 4);
	ck_assert_int_eq(smtp_data_follow(&d, in + at, sizeof in - 1 - at, &taken), SMTP_DATA_END);
	ck_assert_uint_eq(at + taken, sizeof in - 1 - 4);
	ck_assert_int_eq(smtp_data_follow(&d, "x", 1, &taken), SMTP_DATA_END);
	ck_assert_uint_eq(taken, 0);
}
END_TEST

START_TEST(bare_ends_of_lines_are_reported)
{
	ck_assert_uint_eq(FOLLOW("a\nb\r\n.\r\n", 0).flaws, SMTP_DATA_BIT(SMTP_DATA_BARE_LF));
	ck_assert_uint_eq(FOLLOW("a\rb\r\n.\r\n", 0).flaws, SMTP_DATA_BIT(SMTP_DATA_BARE_CR));
	ck_assert_uint_eq(FOLLOW("a\r\r\n.\r\n", 0).flaws, SMTP_DATA_BIT(SMTP_DATA_BARE_CR));
	ck_assert_int_eq(FOLLOW("a\nb", SMTP_DATA_BARE).event, SMTP_DATA_BAD);
	ck_assert_int_eq(FOLLOW("a\rb", SMTP_DATA_BARE).event, SMTP_DATA_BAD);
	ck_assert_int_eq(FOLLOW("a\r\nb\r\n.\r\n", SMTP_DATA_BARE).event, SMTP_DATA_END);
}
END_TEST

START_TEST(nul_is_told)
{
	ck_assert_uint_eq(FOLLOW("a\r\n\0..\r\n.\r\n", 0).flaws, SMTP_DATA_BIT(SMTP_DATA_NUL));
	ck_assert_uint_eq(FOLLOW("a\r\n.\0..\r\n.\r\n", 0).flaws, SMTP_DATA_BIT(SMTP_DATA_NUL));
	ck_assert_uint_eq(FOLLOW("ab\0c\r\n.\r\n", 0).flaws, SMTP_DATA_BIT(SMTP_DATA_NUL));
	struct outcome o = FOLLOW("ab\0c\r\n.\r\n", SMTP_DATA_BIT(SMTP_DATA_NUL));
	ck_assert_int_eq(o.event, SMTP_DATA_BAD);
	ck_assert_uint_eq(o.len, 3);
}
END_TEST

START_TEST(a_long_line_is_told_at_its_end)
{
	char in[1100];
	memset(in, 'a', sizeof in);
	memcpy(in + 998, "\r\n.\r\n", 5);
	struct outcome o = follow_cut(in, 1003, 0, 500, 999);
	ck_assert_uint_eq(o.flaws, 0);
	memset(in + 998, 'a', 5);
	memcpy(in + 999, "\r\n.\r\n", 5);
	o = follow_cut(in, 1004, 0, 500, 1000);
	ck_assert_uint_eq(o.flaws, SMTP_DATA_BIT(SMTP_DATA_LONG_LINE));
}
END_TEST

/* Compares the follower with a plain search, for all texts of up to 7 characters that matter. */
START_TEST(the_end_is_where_a_search_finds_it)
{
	static const char alphabet[] = { '\r', '\n', '.', 'a', 0 };
	char in[2 + 7] = "\r\n", *text = in + 2;
	unsigned digits[7] = { 0 };
	for (unsigned long n = 0; n < 78125; n++) {
		for (unsigned i = 0, left = (unsigned)n; i < 7; i++, left /= 5)
			digits[i] = left % 5;
		for (unsigned i = 0; i < 7; i++)
			text[i] = alphabet[digits[i]];
		const char *end = memmem(in, sizeof in, "\r\n.\r\n", 5);
		struct outcome o = follow_cut(text, 7, 0, n % 8, 7);
		ck_assert_int_eq(o.event, end ? SMTP_DATA_END : SMTP_DATA_MORE);
		ck_assert_uint_eq(o.len, end ? (size_t)(end - text) + 5 : 7);
	}
}
END_TEST

UNIT(data)
{
	const TTest *facts[] = {
		crlf_dot_crlf_is_the_end,
		a_dot_at_once_is_the_end,
		stuffed_dots_are_counted_off,
		no_smuggling_sequence_is_an_end,
		each_smuggling_sequence_can_be_refused,
		a_refused_mail_is_followed_to_its_end,
		bare_ends_of_lines_are_reported,
		nul_is_told,
		a_long_line_is_told_at_its_end,
		the_end_is_where_a_search_finds_it,
	};
	return suite_run("data", facts, SUITE_LEN(facts));
}
