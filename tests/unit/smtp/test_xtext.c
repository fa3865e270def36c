/* test_xtext.c: facts of RFC 3461 4. */
#include "smtp/params.h"

#include <stdio.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/written.h"
#include "tests/unit/unit.h"

START_TEST(every_byte_can_come)
{
	char all[256], text[3 * sizeof all + 1];
	struct written back;
	for (unsigned i = 0; i < sizeof all; i++) {
		all[i] = (char)i;
		snprintf(text + 3 * i, 4, "+%02X", i);
	}
	ck_assert_int_eq(smtp_xtext_read(written_begin(&back), smtp_span_of(text)), 0);
	ck_assert_int_eq(wire_writer_len(&back.w), sizeof all);
	ck_assert_mem_eq(back.bytes, all, sizeof all);
	ck_assert_int_eq(smtp_xtext_read(written_begin(&back), smtp_span_of("a+2Bb+3Dc~!")), 0);
	ck_assert_str_eq(written_text(&back), "a+b=c~!");
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
	const TTest *facts[] = { every_byte_can_come, bad_xtext_is_refused };
	return suite_run("xtext", facts, SUITE_LEN(facts));
}
