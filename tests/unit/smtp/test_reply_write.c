/* test_reply_write.c: facts about the replies that we write. */
#include "smtp/reply_write.h"

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/written.h"
#include "tests/unit/unit.h"

START_TEST(one_line_has_a_space_behind_its_code)
{
	struct written out;
	smtp_reply_write(written_begin(&out), 250, "2.0.0", smtp_span_of("Ok"));
	ck_assert_str_eq(written_text(&out), "250 2.0.0 Ok\r\n");
	smtp_reply_write(written_begin(&out), 354, "", smtp_span_of("go"));
	ck_assert_str_eq(written_text(&out), "354 go\r\n");
	smtp_reply_write(written_begin(&out), 354, "", smtp_span_of(""));
	ck_assert_str_eq(written_text(&out), "354 \r\n");
}
END_TEST

START_TEST(more_lines_have_hyphens)
{
	struct written out;
	smtp_reply_write(written_begin(&out), 550, "5.7.1", smtp_span_of("one\n\nthree"));
	ck_assert_str_eq(written_text(&out), "550-5.7.1 one\r\n550-5.7.1 \r\n550 5.7.1 three\r\n");
}
END_TEST

START_TEST(a_text_in_a_reply_cannot_begin_another_line)
{
	struct written out;
	smtp_reply_write(written_begin(&out), 250, "", (struct smtp_span){ "a\r221 b\0c\x1b\x7f\xc3\xa4", 13 });
	ck_assert_str_eq(written_text(&out), "250 a?221 b?c??\xc3\xa4\r\n");
	smtp_text_write(written_begin(&out), smtp_span_of("host\r\nRCPT"));
	ck_assert_str_eq(written_text(&out), "host??RCPT");
}
END_TEST

START_TEST(a_line_is_cut_at_512_bytes)
{
	struct written out;
	char text[600];
	memset(text, 'a', sizeof text);
	smtp_reply_write(written_begin(&out), 250, "2.0.0", (struct smtp_span){ text, sizeof text });
	ck_assert_uint_eq(strlen(written_text(&out)), 512);
	ck_assert_str_eq(written_text(&out) + 510, "\r\n");
}
END_TEST

START_TEST(a_reply_that_does_not_fit_spends_the_writer)
{
	uint8_t room[5];
	struct wire_writer w = wire_writer(room, sizeof room);
	smtp_reply_write(&w, 250, "", smtp_span_of("Ok"));
	ck_assert_int_eq(wire_writer_len(&w), CSSL_E_TOO_LONG);
}
END_TEST

UNIT(reply_write)
{
	const TTest *facts[] = {
		one_line_has_a_space_behind_its_code,
		more_lines_have_hyphens,
		a_text_in_a_reply_cannot_begin_another_line,
		a_line_is_cut_at_512_bytes,
		a_reply_that_does_not_fit_spends_the_writer,
	};
	return suite_run("reply_write", facts, SUITE_LEN(facts));
}
