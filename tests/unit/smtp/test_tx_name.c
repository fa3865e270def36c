/* test_tx_name.c: facts of transactions' names. */
#include "smtp/tx_name.h"

#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/written.h"
#include "tests/unit/unit.h"

START_TEST(a_name_is_read_back_as_it_was_written)
{
	struct smtp_tx_name name, again;
	struct written out;
	ck_assert_int_eq(smtp_tx_name_parse(smtp_span_of("00ffA/18446744073709551615"), &name), 0);
	ck_assert_str_eq(name.id, "00ffA");
	ck_assert_uint_eq(name.number, UINT64_MAX);
	smtp_tx_name_write(written_begin(&out), &name);
	ck_assert_int_eq(smtp_tx_name_parse(smtp_span_of(written_text(&out)), &again), 0);
	ck_assert_uint_eq(again.number, name.number);
}
END_TEST

START_TEST(a_bad_name_is_refused)
{
	struct smtp_tx_name name;
	char text[80];
	const char *bad[] = { "", "/1", "a/", "a", "a/0", "a/01", "a/-1", "a/1/2", "a b/1", "\xc3\xa4/1", "a+/1" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(smtp_tx_name_parse(smtp_span_of(bad[i]), &name) == CSSL_E_RANGE, "%s", bad[i]);
	memset(text, 'a', 64);
	strcpy(text + 64, "/1");
	ck_assert_int_eq(smtp_tx_name_parse(smtp_span_of(text), &name), 0);
	strcpy(text + 64, "a/1");
	ck_assert_int_eq(smtp_tx_name_parse(smtp_span_of(text), &name), CSSL_E_RANGE);
	ck_assert_int_eq(smtp_tx_name_parse((struct smtp_span){ "a\0b/1", 5 }, &name), CSSL_E_RANGE);
}
END_TEST

START_TEST(a_transaction_name_is_added_behind_the_parameters)
{
	struct written out;
	struct smtp_tx_name name = { "abc", 3 };
	smtp_tx_name_add(written_begin(&out), smtp_span_of("MAIL FROM:<a@b> SIZE=1 "), &name);
	ck_assert_str_eq(written_text(&out), "MAIL FROM:<a@b> SIZE=1 XCSSLTX=abc/3\r\n");
}
END_TEST

START_TEST(a_transaction_name_is_removed_from_any_place)
{
	static const char *const lines[][2] = {
		{ "MAIL FROM:<a@b> XCSSLTX=abc/3\r\n", "MAIL FROM:<a@b>\r\n" },
		{ "MAIL FROM:<a@b> SIZE=1 xcssltx=abc/3 BODY=8BITMIME\r\n",
			"MAIL FROM:<a@b> SIZE=1 BODY=8BITMIME\r\n" },
	};
	for (unsigned i = 0; i < 2; i++) {
		struct written out;
		const struct smtp_span line = smtp_span_of(lines[i][0]);
		const struct smtp_span value = { strstr(lines[i][0], "abc/3"), strlen("abc/3") };
		smtp_tx_name_remove(written_begin(&out), line, value);
		ck_assert_str_eq(written_text(&out), lines[i][1]);
	}
}
END_TEST

UNIT(tx_name)
{
	const TTest *facts[] = {
		a_name_is_read_back_as_it_was_written,
		a_bad_name_is_refused,
		a_transaction_name_is_added_behind_the_parameters,
		a_transaction_name_is_removed_from_any_place,
	};
	return suite_run("tx_name", facts, SUITE_LEN(facts));
}
