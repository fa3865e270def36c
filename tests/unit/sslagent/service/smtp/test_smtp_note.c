/* test_smtp_note.c: facts of the note on a mail session, of the numbers of transactions, and of what a client was told.
 */
#include <stdio.h>
#include <string.h>

#include <sodium.h>

#include "proto/error.h"
#include "smtp/command.h"
#include "sslagent/service/smtp/smtp_note.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static struct smtp_note full(void)
{
	struct smtp_note n = { .tx = { 77, 3 },
		.end_reply = 4,
		.offers = 5,
		.epoch = 9,
		.greeting = SMTP_VERB_EHLO,
		.authenticated = 1,
		.banner = SMTP_BANNER_HAD,
		.replies = SMTP_REPLIES_COUNTLESS,
		.classes_len = SMTP_CLASSES_MAX,
		.entry = "5f3c" };

	memset(n.told, 0xa5, sizeof n.told);
	memset(n.classes, '5', sizeof n.classes);
	memset(n.client, 'a', SMTP_DOMAIN_MAX);
	return n;
}

START_TEST(a_note_is_read_as_it_was_written)
{
	uint8_t bytes[SMTP_NOTE_MAX], again[SMTP_NOTE_MAX];
	const struct smtp_note n = full();
	struct smtp_note back;
	const size_t len = smtp_note_write(&n, bytes);

	ck_assert_uint_le(len, SMTP_NOTE_MAX);
	ck_assert_int_eq(smtp_note_read(bytes, len, &back), 0);
	ck_assert_uint_eq(back.tx.record, 77);
	ck_assert_uint_eq(back.tx.at, 3);
	ck_assert_uint_eq(back.end_reply, 4);
	ck_assert_uint_eq(back.epoch, 9);
	ck_assert_str_eq(back.client, n.client);
	ck_assert_str_eq(back.entry, "5f3c");
	ck_assert_uint_eq(smtp_note_write(&back, again), len);
	ck_assert_mem_eq(again, bytes, len);
}
END_TEST

START_TEST(a_part_of_a_note_or_more_is_none)
{
	uint8_t bytes[SMTP_NOTE_MAX + 1] = { 0 };
	const struct smtp_note n = full();
	struct smtp_note back = { .epoch = 1 };
	const size_t len = smtp_note_write(&n, bytes);

	for (size_t i = 0; i < len; i++)
		ck_assert_int_lt(smtp_note_read(bytes, i, &back), 0);
	ck_assert_int_eq(smtp_note_read(bytes, len + 1, &back), CSSL_E_TRAILING);
	ck_assert_uint_eq(back.epoch, 1);
}
END_TEST

/* Offsets of smtp_note.c. */
START_TEST(a_note_that_makes_no_sense_is_refused)
{
	static const struct {
		size_t at;
		uint8_t value;
		int error;
	} rows[] = {
		{ 0, 2, CSSL_E_VERSION }, { 1, SMTP_VERB_QUIT, CSSL_E_RANGE },
		{ 1, SMTP_VERB_UNKNOWN, CSSL_E_RANGE },          /* with a name */
		{ 2, 8, CSSL_E_RANGE }, { 40, 0, CSSL_E_RANGE }, /* a name with an end in its midst */
		{ 40, '\r', CSSL_E_RANGE }                       /* it goes to the server */
	};
	uint8_t bytes[SMTP_NOTE_MAX];
	const struct smtp_note n = full();
	struct smtp_note back;
	const size_t len = smtp_note_write(&n, bytes);

	bytes[rows[_i].at] = rows[_i].value;
	ck_assert_int_eq(smtp_note_read(bytes, len, &back), rows[_i].error);
}
END_TEST

/* Else no successor could read the note. */
START_TEST(a_name_that_a_session_takes_is_read_from_a_note)
{
	static const char *const names[] = { "%s", "a%sb.example", "a.%s.example", "[%s]" };
	const char ascii[] = { (char)_i, '\0' }, wide[] = { '\xc3', (char)_i, '\0' }; /* UTF-8 up to 0xbf */

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		uint8_t bytes[SMTP_NOTE_MAX];
		char line[64] = "EHLO ";
		struct smtp_note n = { .greeting = SMTP_VERB_EHLO }, back;
		struct smtp_command c;

		snprintf(line + strlen(line), sizeof line - strlen(line), names[i], _i < 128 ? ascii : wide);
		if (smtp_command_parse(smtp_span_of(line), SMTP_PARSE_LENIENT | SMTP_PARSE_UTF8, &c) != SMTP_OWN_NONE)
			continue;
		smtp_span_copy(c.argument, n.client, sizeof n.client);
		ck_assert_msg(smtp_note_read(bytes, smtp_note_write(&n, bytes), &back) == 0, "%s", line);
	}
}
END_TEST

START_TEST(numbers_rise_with_the_epoch_and_then_with_the_records)
{
	const uint64_t first = smtp_mark_number((struct smtp_mark){ 5, 1 }, 1);

	ck_assert_uint_gt(first, 0);
	ck_assert_uint_gt(smtp_mark_number((struct smtp_mark){ 5, 2 }, 1), first);
	ck_assert_uint_gt(
		smtp_mark_number((struct smtp_mark){ 6, 1 }, 1), smtp_mark_number((struct smtp_mark){ 5, 2 }, 1));
	ck_assert_uint_gt(
		smtp_mark_number((struct smtp_mark){ 5, 1 }, 2), smtp_mark_number((struct smtp_mark){ 900, 9 }, 1));
	ck_assert_uint_eq(smtp_mark_number((struct smtp_mark){ 0, 1 }, 1), 0);
	ck_assert_uint_eq(smtp_mark_number((struct smtp_mark){ UINT64_C(1) << 34, 1 }, 1), 0);
	ck_assert_uint_eq(smtp_mark_number((struct smtp_mark){ 5, 0 }, 1), 0);
	ck_assert_uint_gt(
		smtp_mark_number((struct smtp_mark){ 6, 1 }, 1), smtp_mark_number((struct smtp_mark){ 5, 16384 }, 1));
	ck_assert_uint_eq(smtp_mark_number((struct smtp_mark){ 5, 16385 }, 1), 0);
}
END_TEST

static void told(const char *const *lines, uint8_t out[static SMTP_TOLD_LEN])
{
	struct smtp_ehlo set;

	smtp_ehlo_clear(&set);
	for (; *lines; lines++)
		ck_assert_int_eq(smtp_ehlo_add(&set, smtp_span_of(*lines)), 0);
	smtp_told(&set, out);
}

START_TEST(what_was_told_is_the_same_in_another_order_only)
{
	uint8_t a[SMTP_TOLD_LEN], b[SMTP_TOLD_LEN];

	told((const char *const[]){ "SIZE 1000", "PIPELINING", NULL }, a);
	told((const char *const[]){ "pipelining", "SIZE 1000", NULL }, b);
	ck_assert_mem_eq(a, b, sizeof a);
	told((const char *const[]){ "PIPELINING", "SIZE 1001", NULL }, b);
	ck_assert_mem_ne(a, b, sizeof a);
	told((const char *const[]){ "PIPELINING", NULL }, b);
	ck_assert_mem_ne(a, b, sizeof a);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, a_note_is_read_as_it_was_written);
	tcase_add_test(t, a_part_of_a_note_or_more_is_none);
	tcase_add_loop_test(t, a_note_that_makes_no_sense_is_refused, 0, 6);
	tcase_add_loop_test(t, a_name_that_a_session_takes_is_read_from_a_note, 1, 192);
	tcase_add_test(t, numbers_rise_with_the_epoch_and_then_with_the_records);
	tcase_add_test(t, what_was_told_is_the_same_in_another_order_only);
}

UNIT(smtp_note)
{
	return sodium_init() < 0 ? 1 : run_suite("smtp_note", add);
}
