/* test_xtext.c: facts of RFC 3461 4. */
#include "smtp/xtext.h"

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/written.h"
#include "tests/unit/unit.h"

START_TEST(only_plain_bytes_go_as_they_are)
{
	struct written out;
	smtp_xtext_write(written_begin(&out), (struct smtp_span){ "a+b=c d\r\n\0\xff~!", 13 });
	ck_assert_str_eq(written_text(&out), "a+2Bb+3Dc+20d+0D+0A+00+FF~!");
}
END_TEST

START_TEST(every_byte_comes_back)
{
	char all[256];
	struct written out, back;
	for (unsigned i = 0; i < sizeof all; i++)
		all[i] = (char)i;
	smtp_xtext_write(written_begin(&out), (struct smtp_span){ all, sizeof all });
	ck_assert_int_eq(smtp_xtext_read(written_begin(&back), smtp_span_of(written_text(&out))), 0);
	ck_assert_int_eq(wire_writer_len(&back.w), sizeof all);
	ck_assert_mem_eq(back.bytes, all, sizeof all);
}
END_TEST

START_TEST(bad_xtext_is_refused)
{
	const char *bad[] = { "a b", "a=b", "+", "+2", "+2g", "a+", "\x80", "a\r" };
	struct written out;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_int_eq(smtp_xtext_read(written_begin(&out), smtp_span_of(bad[i])), CSSL_E_RANGE);
	ck_assert_int_eq(smtp_xtext_read(written_begin(&out), smtp_span_of("+2b")), 0);
	ck_assert_str_eq(written_text(&out), "+");
}
END_TEST

UNIT(xtext)
{
	const TTest *facts[] = { only_plain_bytes_go_as_they_are, every_byte_comes_back, bad_xtext_is_refused };
	return suite_run("xtext", facts, SUITE_LEN(facts));
}
