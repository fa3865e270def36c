/* test_tx_fate.c: facts of the question about a transaction and of its answer. */
#include "smtp/tx_name.h"

#include <string.h>

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/written.h"
#include "tests/unit/unit.h"

START_TEST(a_question_is_read_back_as_it_was_written)
{
	struct smtp_tx_question question, again;
	struct written out;
	ck_assert_int_eq(smtp_tx_question_parse(smtp_span_of("00ff/12 5F3c"), &question), 0);
	ck_assert_str_eq(question.name.id, "00ff");
	ck_assert_uint_eq(question.name.number, 12);
	ck_assert_str_eq(question.entry, "5F3c");
	smtp_tx_question_write(written_begin(&out), &question);
	const char *line = written_text(&out);
	ck_assert_str_eq(line, "XCSSLTX 00ff/12 5F3c\r\n");
	ck_assert_int_eq(smtp_tx_question_parse((struct smtp_span){ line + 8, strlen(line) - 10 }, &again), 0);
	ck_assert_uint_eq(again.name.number, 12);
}
END_TEST

START_TEST(bad_questions_are_refused)
{
	struct smtp_tx_question question;
	const char *bad[] = { "", "a/1", "a/1 ", "a/0 b", "/1 b", "a b", "a/1 b c", "a/1 b-c", "a/1 \xc3\xa4",
		"a/1 012345678901234567890123456789012" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(smtp_tx_question_parse(smtp_span_of(bad[i]), &question) == CSSL_E_RANGE, "%s", bad[i]);
}
END_TEST

static int parse(const char *text, struct smtp_reply_line *decided)
{
	struct smtp_reply_line line;
	ck_assert_int_eq(smtp_reply_line_parse(smtp_span_of(text), &line), 0);
	return smtp_fate_parse(&line, decided);
}

START_TEST(an_answer_carries_the_reply)
{
	struct smtp_reply_line decided;
	ck_assert_int_eq(parse("250 never", &decided), SMTP_FATE_NEVER);
	ck_assert_int_eq(parse("250 unknown", &decided), SMTP_FATE_UNKNOWN);
	ck_assert_int_eq(parse("250 decided 550 5.7.1 No", &decided), SMTP_FATE_DECIDED);
	ck_assert_uint_eq(decided.code, 550);
	ck_assert_uint_eq(decided.enhanced.subject, 7);
	ck_assert(smtp_span_is(decided.text, "5.7.1 No"));
	ck_assert_int_eq(parse("250-decided 250-first", &decided), SMTP_FATE_DECIDED);
	ck_assert(!decided.is_last);
}
END_TEST

START_TEST(other_answers_decide_nothing)
{
	struct smtp_reply_line decided;
	const char *bad[] = { "250 Ok", "250", "550 never", "250 never mind", "250-never", "250 decided",
		"250 decided yes", "250 decided 354 Go", "250-decided 250 last", "250 decided 250-more" };
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		ck_assert_msg(parse(bad[i], &decided) == CSSL_E_RANGE, "%s", bad[i]);
}
END_TEST

START_TEST(an_answer_is_written_on_one_line)
{
	struct written out;
	smtp_fate_write(written_begin(&out), SMTP_FATE_NEVER, smtp_span_of(NULL));
	ck_assert_str_eq(written_text(&out), "250 never\r\n");
	smtp_fate_write(written_begin(&out), SMTP_FATE_DECIDED, smtp_span_of("250 2.0.0 Ok\r\n250 x"));
	ck_assert_str_eq(written_text(&out), "250 decided 250 2.0.0 Ok\?\?250 x\r\n");
	smtp_fate_write(written_begin(&out), SMTP_FATE_DECIDED, smtp_span_of("451-4.3.0 first"));
	ck_assert_str_eq(written_text(&out), "250-decided 451-4.3.0 first\r\n");
}
END_TEST

UNIT(tx_fate)
{
	const TTest *facts[] = {
		a_question_is_read_back_as_it_was_written,
		bad_questions_are_refused,
		an_answer_carries_the_reply,
		other_answers_decide_nothing,
		an_answer_is_written_on_one_line,
	};
	return suite_run("tx_fate", facts, SUITE_LEN(facts));
}
