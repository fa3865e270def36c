/* test_own_reply.c: facts of the table of our own replies. */
#include "smtp/reply_write.h"

#include "smtp/reply.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/written.h"
#include "tests/unit/unit.h"

START_TEST(every_row_is_a_reply_whose_codes_agree)
{
	for (unsigned i = SMTP_OWN_NONE + 1; i < SMTP_OWN_COUNT; i++) {
		const struct smtp_own_reply *row = smtp_own_reply((enum smtp_own)i);
		struct written out;
		struct smtp_reply_line line;
		smtp_own_write(written_begin(&out), (enum smtp_own)i);
		const char *text = written_text(&out);
		size_t len = strlen(text);
		ck_assert_msg(len > 2 && strcmp(text + len - 2, "\r\n") == 0, "%s", row->name);
		ck_assert_msg(smtp_reply_line_parse((struct smtp_span){ text, len - 2 }, &line) == 0 && line.is_last,
			"%s", row->name);
		ck_assert_uint_eq(line.code, row->code);
		ck_assert_msg(line.enhanced.status == (row->code / 100 == 3 ? 0 : row->code / 100), "%s", row->name);
	}
}
END_TEST

START_TEST(no_reply_writes_nothing)
{
	struct written out;
	smtp_own_write(written_begin(&out), SMTP_OWN_NONE);
	ck_assert_str_eq(written_text(&out), "");
	ck_assert_uint_eq(smtp_own_reply(SMTP_OWN_COUNT)->code, 0);
}
END_TEST

START_TEST(a_refusal_for_want_of_tls_is_that_of_the_rfc)
{
	struct written out;
	smtp_own_write(written_begin(&out), SMTP_OWN_TLS_REQUIRED);
	ck_assert_str_eq(written_text(&out), "530 5.7.0 Must issue a STARTTLS command first\r\n");
}
END_TEST

UNIT(own_reply)
{
	const TTest *facts[] = {
		every_row_is_a_reply_whose_codes_agree,
		no_reply_writes_nothing,
		a_refusal_for_want_of_tls_is_that_of_the_rfc,
	};
	return suite_run("own_reply", facts, SUITE_LEN(facts));
}
