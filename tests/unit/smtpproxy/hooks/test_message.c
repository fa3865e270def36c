/* test_message.c: facts of a message that is held for hooks. */
#include "smtpproxy/hooks/message.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct message message;

static struct smtp_span span(const char *text)
{
	return smtp_span_of(text);
}

static void read_text(const char *text)
{
	message = (struct message){ 0 };
	ck_assert_int_eq(message_add(&message, text, strlen(text), 1 << 20), 0);
	ck_assert_int_eq(message_read(&message), 0);
}

/* Compares all bytes that DATA carries with @expected. They come in pieces of at most @cap bytes. */
static void writes(const char *expected, size_t cap)
{
	char out[4096], all[4096];
	size_t len, all_len = 0;

	while ((len = message_next(&message, out, cap)) > 0) {
		memcpy(all + all_len, out, len);
		all_len += len;
	}
	all[all_len] = '\0';
	ck_assert_str_eq(all, expected);
	message_free(&message);
}

static const char *const texts[] = {
	"A: 1\r\nB: 2\r\n\t3\r\n\r\n..x\r\n.\r\n",
	"\r\nbody\r\n.\r\n",
	"no field\r\n.\r\n",
	"A: 1\r\nno field\r\n.\r\n",
	" A: 1\r\n.\r\n",
	"A: 1\r\n.\r\n",
	".\r\n",
	"A: 1\r\n\r\n.\r\n",
	"A:\r\nB :x\r\n..: y\r\n.\r\n",
	"A: 1\nB: 2\n\nx\r\n.\r\n",
	" From a\r\n.\r\n",
	"A: 1\r\nFrom a\r\n.\r\n",
};

START_TEST(without_a_change_the_message_stays_as_it_is)
{
	for (size_t cap = 64; cap < 80; cap++) {
		read_text(texts[_i]);
		writes(texts[_i], cap);
	}
}
END_TEST

START_TEST(its_pieces_have_the_changes_and_no_added_dots)
{
	static const char *const expected[] = { "N: v\r\n", "A: 1\r\n", "\r\n", ".x\r\n" };
	struct smtp_span piece;

	read_text("A: 1\r\n\r\n..x\r\n.\r\n");
	ck_assert_int_eq(message_insert(&message, 0, span("N"), span(" v")), 0);
	for (size_t i = 0; i < 4; i++) {
		ck_assert_int_eq(message_piece(&message, i, &piece), 1);
		ck_assert(smtp_span_equal(piece, span(expected[i])));
	}
	ck_assert_int_eq(message_piece(&message, 4, &piece), 0);
	message_free(&message);
}
END_TEST

static const struct {
	const char *text;
	size_t at;
	const char *after;
} insertions[] = {
	{ "A: 1\r\n\r\nx\r\n.\r\n", 0, "N: v\r\nA: 1\r\n\r\nx\r\n.\r\n" },
	{ "A: 1\r\n\r\nx\r\n.\r\n", 1, "A: 1\r\nN: v\r\n\r\nx\r\n.\r\n" },
	{ "A: 1\r\n\r\nx\r\n.\r\n", 99, "A: 1\r\nN: v\r\n\r\nx\r\n.\r\n" },
	{ "x\r\n.\r\n", 0, "N: v\r\n\r\nx\r\n.\r\n" },
	{ "\r\nx\r\n.\r\n", 0, "N: v\r\n\r\nx\r\n.\r\n" },
	{ ".\r\n", 0, "N: v\r\n\r\n.\r\n" },
	{ "A: 1\nB: 2\n\nx\r\n.\r\n", 0, "N: v\r\nA: 1\nB: 2\n\nx\r\n.\r\n" },
	{ "A: 1\nB: 2\n\nx\r\n.\r\n", 2, "A: 1\nB: 2\nN: v\r\n\nx\r\n.\r\n" },
	{ "A: 1\r\r\n\r\r\nx\r\n.\r\n", 0, "N: v\r\nA: 1\r\r\n\r\r\nx\r\n.\r\n" },
	{ "From a b\r\nA: 1\r\n\r\n.\r\n", 0, "N: v\r\nX-Mailbox-Line: From a b\r\nA: 1\r\n\r\n.\r\n" },
	{ "From a\r\n b\r\nA: 1\r\n\r\n.\r\n", 0, "N: v\r\nX-Mailbox-Line: From a\r\n b\r\nA: 1\r\n\r\n.\r\n" },
	{ "From a\r\n b\r\n.\r\n", 9, "X-Mailbox-Line: From a\r\n b\r\nN: v\r\n\r\n.\r\n" },
	{ ">>From a\r\nA: 1\r\n\r\n.\r\n", 9, "X-Mailbox-Line: >>From a\r\nA: 1\r\nN: v\r\n\r\n.\r\n" },
	{ " A: 1\r\n.\r\n", 0, "N: v\r\n\r\n A: 1\r\n.\r\n" },
};

START_TEST(a_field_is_inserted_at_its_place)
{
	read_text(insertions[_i].text);
	ck_assert_int_eq(message_insert(&message, insertions[_i].at, span("N"), span(" v")), 0);
	writes(insertions[_i].after, 64);
}
END_TEST

static const struct {
	size_t nth;
	const char *name, *value, *after;
} changes[] = {
	{ 1, "a", " x", "A: x\r\nB: 2\r\nA: 3\r\n\r\n.\r\n" },
	{ 0, "a", " x", "A: x\r\nB: 2\r\nA: 3\r\n\r\n.\r\n" },
	{ 0, "A", "", "B: 2\r\nA: 3\r\n\r\n.\r\n" },
	{ 0, "C", " x", "A: 1\r\nB: 2\r\nA: 3\r\nC: x\r\n\r\n.\r\n" },
	{ 2, "A", " x\n\ty", "A: 1\r\nB: 2\r\nA: x\r\n\ty\r\n\r\n.\r\n" },
	{ 2, "A", " x\r\n\ty", "A: 1\r\nB: 2\r\nA: x\r\n\ty\r\n\r\n.\r\n" },
	{ 3, "A", " x", "A: 1\r\nB: 2\r\nA: 3\r\nA: x\r\n\r\n.\r\n" },
	{ 1, "C", " x", "A: 1\r\nB: 2\r\nA: 3\r\nC: x\r\n\r\n.\r\n" },
	{ 1, "A", "", "B: 2\r\nA: 3\r\n\r\n.\r\n" },
	{ 2, "A", "", "A: 1\r\nB: 2\r\n\r\n.\r\n" },
	{ 3, "A", "", "A: 1\r\nB: 2\r\nA: 3\r\n\r\n.\r\n" },
};

START_TEST(the_nth_field_of_a_name_is_changed_or_deleted)
{
	read_text("A: 1\r\nB: 2\r\nA: 3\r\n\r\n.\r\n");
	ck_assert_int_eq(message_change(&message, changes[_i].nth, span(changes[_i].name), span(changes[_i].value)), 0);
	writes(changes[_i].after, 64);
}
END_TEST

static const struct {
	const char *name, *value;
} bad[] = { { "", "x" }, { "A:", "x" }, { "A B", "x" }, { "A\r\nB", "x" }, { "A", "x\nB: y" }, { "A", "x\r\rB" },
	{ "A", "x\n" }, { "A", "x\n \n y" }, { "A", "x\n\r\n y" }, { "A", "\rx" } };

START_TEST(a_change_that_would_break_the_header_is_refused)
{
	const char *text = "A: 1\r\n\r\n.\r\n";

	read_text(text);
	ck_assert_int_eq(message_insert(&message, 0, span(bad[_i].name), span(bad[_i].value)), CSSL_E_RANGE);
	ck_assert_int_eq(message_change(&message, 1, span(bad[_i].name), span(bad[_i].value)), CSSL_E_RANGE);
	writes(text, 64);
}
END_TEST

START_TEST(fields_come_and_go_in_any_number)
{
	char all[4096] = "";

	read_text(".\r\n");
	for (unsigned i = 0; i < 100; i++)
		ck_assert_int_eq(message_insert(&message, i, span("N"), span(" v")), 0);
	for (unsigned i = 0; i < 70; i++)
		ck_assert_int_eq(message_change(&message, 1, span("N"), span("")), 0);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_int_eq(message_insert(&message, 0, span("N"), span(" v")), 0);
	for (unsigned i = 0; i < 130; i++)
		strcat(all, "N: v\r\n");
	strcat(all, "\r\n.\r\n");
	writes(all, 64);
}
END_TEST

START_TEST(a_message_above_its_bound_is_refused)
{
	message = (struct message){ 0 };
	ck_assert_int_eq(message_add(&message, "12345", 5, 10), 0);
	ck_assert_int_eq(message_add(&message, "123456", 6, 10), CSSL_E_TOO_LONG);
	ck_assert_int_eq(message_add(&message, "12345", 5, 10), 0);
	message_free(&message);
}
END_TEST

START_TEST(a_header_of_too_many_fields_is_refused)
{
	message = (struct message){ 0 };
	for (unsigned i = 0; i <= MESSAGE_FIELDS_MAX; i++)
		ck_assert_int_eq(message_add(&message, "a:\r\n", 4, 1 << 20), 0);
	ck_assert_int_eq(message_add(&message, ".\r\n", 3, 1 << 20), 0);
	ck_assert_int_eq(message_read(&message), CSSL_E_TOO_LONG);
	message_free(&message);
}
END_TEST

UNIT(message)
{
	TCase *facts = tcase_create("message");
	Suite *s = suite_create("message");
	SRunner *runner;
	int failed;

	tcase_add_loop_test(facts, without_a_change_the_message_stays_as_it_is, 0, (int)(sizeof texts / sizeof *texts));
	tcase_add_test(facts, its_pieces_have_the_changes_and_no_added_dots);
	tcase_add_loop_test(facts, a_field_is_inserted_at_its_place, 0, (int)(sizeof insertions / sizeof *insertions));
	tcase_add_loop_test(
		facts, the_nth_field_of_a_name_is_changed_or_deleted, 0, (int)(sizeof changes / sizeof *changes));
	tcase_add_loop_test(facts, a_change_that_would_break_the_header_is_refused, 0, (int)(sizeof bad / sizeof *bad));
	tcase_add_test(facts, fields_come_and_go_in_any_number);
	tcase_add_test(facts, a_message_above_its_bound_is_refused);
	tcase_add_test(facts, a_header_of_too_many_fields_is_refused);
	suite_add_tcase(s, facts);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
