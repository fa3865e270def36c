/* test_milter_answers.c: facts of what a milter answers, and of one that breaks the protocol or its time limits. The
 * test is the milter. */
#include <stdio.h>
#include <string.h>

#include "milter_peer.h"
#include "smtpproxy/hooks/call.h"
#include "tests/unit/unit.h"

#define HEARS_END_ONLY                                                                                                 \
	(MILTER_NO_CONNECT | MILTER_NO_HELO | MILTER_NO_MAIL | MILTER_NO_RCPT | MILTER_NO_DATA | MILTER_NO_HEADER |    \
		MILTER_NO_END_OF_HEADER | MILTER_NO_BODY)

static void ends_with(enum filter_verdict expected, const char *beginning)
{
	ck_assert_int_eq(verdict(), expected);
	ck_assert_msg(strncmp(reply, beginning, strlen(beginning)) == 0, "reply: %s", reply);
}

/* And it is left alone from now on. */
static void fails(void)
{
	ends_with(FILTER_REFUSES, "451 4.3.0 A filter does not answer");
	ck_assert_int_eq(hooks_find(&hooks, "a")->state, HOOK_RESTS);
	wait_until(peer_fd(0) < 0 || read_to_end(peer_fd(0)) <= 0);
}

/* Verdicts */

static const struct {
	char letter;
	const char *content;
	enum filter_verdict verdict;
	const char *reply;
} answers[] = {
	{ 'a', "", FILTER_CONTINUES, "" },
	{ 'r', "", FILTER_REFUSES, "550 5.7.1 " },
	{ 't', "", FILTER_REFUSES, "451 4.7.1 " },
	{ 'd', "", FILTER_DISCARDS, "" },
	{ 'f', "", FILTER_REFUSES, "451 4.7.1 " },
	{ '4', "", FILTER_REFUSES, "451 4.7.1 " },
	{ 'q', "spam", FILTER_REFUSES, "451 4.7.1 " },
	{ 'y', "554 5.7.9 Not you", FILTER_REFUSES, "554 5.7.9 Not you\r\n" },
	{ 'y', "450-4.7.1 a\r\n450 4.7.1 b", FILTER_REFUSES, "450-4.7.1 a\r\n450 4.7.1 b\r\n" },
	{ 'y', "421 4.7.0 end", FILTER_REFUSES, "451 4.7.0 end\r\n" },
};

static void answers_with(enum milter_part part, size_t i)
{
	const size_t len = strlen(answers[i].content);

	begin_until(part);
	peer_says(0, answers[i].letter, answers[i].content, len + (len > 0));
	ends_with(answers[i].verdict, answers[i].reply);
	ck_assert_int_eq(hooks_find(&hooks, "a")->state, HOOK_GOOD);
}

START_TEST(each_answer_has_its_verdict)
{
	for (size_t i = 0; i < FACTS_LEN(answers); i++)
		answers_with(MILTER_PART_CONNECT, i);
}
END_TEST

START_TEST(a_verdict_counts_at_each_part)
{
	for (unsigned part = MILTER_PART_CONNECT; part < MILTER_PARTS; part++)
		answers_with((enum milter_part)part, part % 4);
	answers_with(MILTER_PART_RCPT, 1);
	answers_with(MILTER_PART_END, 3);
}
END_TEST

START_TEST(one_that_accepts_is_not_asked_again)
{
	begin_until(MILTER_PART_RCPT);
	ck_assert_int_eq(filter_holds(filter), 1);
	peer_says(0, 'a', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ck_assert_int_eq(filter_holds(filter), 0);
	peer_hears(0, 'Q');
	ck_assert_int_eq(read_to_end(peer_fd(0)), 0);
	ask_step(FILTER_DATA);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
}
END_TEST

START_TEST(a_refused_recipient_is_not_the_end_of_the_transaction)
{
	begin_until(MILTER_PART_RCPT);
	peer_says(0, 'r', NULL, 0);
	ends_with(FILTER_REFUSES, "550 ");
	ask_step(FILTER_RCPT);
	peer_hears(0, 'R');
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ask_step(FILTER_DATA);
	peer_hears(0, 'T');
}
END_TEST

START_TEST(a_reply_may_come_byte_by_byte)
{
	static const char in[] = "\0\0\0\20y550 5.7.1 slow";

	begin_until(MILTER_PART_MAIL);
	for (size_t i = 0; i < sizeof in - 1; i++) {
		write_all(peer_fd(0), in + i, 1);
		turns(3);
		ck_assert_uint_eq(verdicts, 0);
	}
	write_all(peer_fd(0), "", 1);
	ends_with(FILTER_REFUSES, "550 5.7.1 slow\r\n");
}
END_TEST

START_TEST(each_kind_of_verdict_is_counted)
{
	static const char letters[] = "rtyda";

	for (size_t i = 0; letters[i]; i++) {
		begin_until(MILTER_PART_MAIL);
		peer_says(0, letters[i], "550 no", letters[i] == 'y' ? 7 : 0);
		verdict();
	}
	ck_assert_uint_eq(counters.hooks_refused, 2);
	ck_assert_uint_eq(counters.hooks_deferred, 1);
	ck_assert_uint_eq(counters.hooks_discarded, 1);
	ck_assert_uint_eq(counters.hooks_failed, 0);
	ck_assert_uint_eq(hooks_find(&hooks, "a")->asked, 5);
	ck_assert_uint_eq(hooks_find(&hooks, "a")->refused, 2);
}
END_TEST

/* Changes */

static const struct {
	char letter;
	const char *content;
	size_t len;
	const char *after;
} changes[] = {
	{ 'h', "B\0002\0", 4, "A: 1\r\nB: 2\r\n\r\nbody\r\n" },
	{ 'h', "B\0002\n\t3\0", 7, "A: 1\r\nB: 2\r\n\t3\r\n\r\nbody\r\n" },
	{ 'i', "\0\0\0\0B\0002\0", 8, "B: 2\r\nA: 1\r\n\r\nbody\r\n" },
	{ 'i', "\0\0\0\5B\0002\0", 8, "A: 1\r\nB: 2\r\n\r\nbody\r\n" },
	{ 'm', "\0\0\0\1a\0002\0", 8, "A: 2\r\n\r\nbody\r\n" },
	{ 'm', "\0\0\0\1A\0\0", 7, "\r\nbody\r\n" },
	{ 'm', "\0\0\0\2A\0002\0", 8, "A: 1\r\nA: 2\r\n\r\nbody\r\n" },
};

START_TEST(its_changes_of_the_header_are_made_when_it_agrees)
{
	milter_flags = HEARS_END_ONLY;
	for (size_t i = 0; i < FACTS_LEN(changes) + 1; i++) {
		const size_t n = i % FACTS_LEN(changes);
		begin_until(MILTER_PART_END);
		peer_says(0, changes[n].letter, changes[n].content, changes[n].len);
		peer_says(0, i % 2 ? 'a' : 'c', NULL, 0);
		ck_assert_int_eq(verdict(), FILTER_CONTINUES);
		ck_assert_str_eq(message_text(), changes[n].after);
		ck_assert_uint_eq(counters.hooks_changed, i + 1);
	}
}
END_TEST

START_TEST(a_value_with_its_own_space_gets_no_other_one)
{
	milter_flags = MILTER_LEADING_SPACE;
	begin_until(MILTER_PART_END);
	peer_says(0, 'h', "B\0\t2\0", 5);
	peer_says(0, 'h', "C\0003\0", 4);
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	ck_assert_str_eq(message_text(), "A: 1\r\nB:\t2\r\nC:3\r\n\r\nbody\r\n");
}
END_TEST

START_TEST(no_change_is_made_by_one_that_fails_or_refuses)
{
	static const char *const before = "A: 1\r\n\r\nbody\r\n";

	begin_until(MILTER_PART_END);
	peer_says(0, 'h', "B\0002\0", 4);
	peer_close(0);
	fails();
	ck_assert_str_eq(message_text(), before);
	begin_until(MILTER_PART_END);
	peer_says(0, 'h', "B\0002\0", 4);
	peer_says(0, 't', NULL, 0);
	ends_with(FILTER_REFUSES, "451 4.7.1 ");
	ck_assert_str_eq(message_text(), before);
	ck_assert_uint_eq(counters.hooks_changed, 0);
}
END_TEST

START_TEST(a_change_that_would_add_a_line_to_the_message_is_a_failure)
{
	static const char *const values[] = { "2\nX: 3", "2\n\nbody", "2\n", "2\r3" };
	char content[64];

	milter_flags = HEARS_END_ONLY;
	for (size_t i = 0; i < FACTS_LEN(values); i++) {
		const size_t len = (size_t)sprintf(content, "B%c%s", 0, values[i]);
		begin_until(MILTER_PART_END);
		peer_says(0, 'h', content, len + 1);
		peer_says(0, 'c', NULL, 0);
		fails();
		ck_assert_str_eq(message_text(), "A: 1\r\n\r\nbody\r\n");
	}
	begin_until(MILTER_PART_END);
	peer_says(0, 'h', "B\r\nX\0002\0", 7);
	peer_says(0, 'c', NULL, 0);
	fails();
}
END_TEST

START_TEST(a_change_before_the_end_of_the_message_is_a_failure)
{
	for (unsigned part = MILTER_PART_CONNECT; part < MILTER_PART_END; part++) {
		begin_until((enum milter_part)part);
		peer_says(0, 'h', "B\0002\0", 4);
		fails();
	}
}
END_TEST

START_TEST(a_change_that_cannot_be_read_is_a_failure)
{
	static const struct {
		char letter;
		const char *content;
		size_t len;
	} bad[] = { { 'h', "", 0 }, { 'h', "B", 1 }, { 'h', "B\0002", 3 }, { 'i', "\0\0\0", 3 },
		{ 'i', "\0\0\0\0B\0002", 7 }, { 'm', "\0\0\0\1A\0", 6 } };

	milter_flags = HEARS_END_ONLY;
	for (size_t i = 0; i < FACTS_LEN(bad); i++) {
		begin_until(MILTER_PART_END);
		peer_says(0, bad[i].letter, bad[i].content, bad[i].len);
		fails();
	}
}
END_TEST

START_TEST(there_is_room_for_no_more_than_256_changes)
{
	milter_flags = HEARS_END_ONLY;
	for (unsigned count = MILTER_CHANGES_MAX; count <= MILTER_CHANGES_MAX + 1; count++) {
		begin_until(MILTER_PART_END);
		for (unsigned i = 0; i < count; i++)
			peer_says(0, 'h', "B\0002\0", 4);
		if (count > MILTER_CHANGES_MAX) {
			fails();
			return;
		}
		peer_says(0, 'c', NULL, 0);
		ck_assert_int_eq(verdict(), FILTER_CONTINUES);
		ck_assert_uint_eq(message.count, 1 + MILTER_CHANGES_MAX);
	}
}
END_TEST

/* Failures */

START_TEST(one_that_ends_the_connection_fails_at_each_part)
{
	for (unsigned part = 0; part < MILTER_PARTS; part++) {
		begin_until((enum milter_part)part);
		peer_close(0);
		fails();
	}
}
END_TEST

START_TEST(one_that_sends_nonsense_fails_at_each_part)
{
	static const struct {
		const char *bytes;
		size_t len;
	} nonsense[] = {
		{ "\0\0\0\0", 4 },                /* an empty packet */
		{ "\0\2\0\1c", 5 },               /* one that is too long */
		{ "\0\0\0\1Z", 5 },               /* a letter that means nothing */
		{ "HTTP/1.1 400 No\r\n\r\n", 19 } /* another protocol */
	};

	for (unsigned i = 0; i < MILTER_PARTS + FACTS_LEN(nonsense); i++) {
		const size_t n = i % FACTS_LEN(nonsense);
		begin_until(i < MILTER_PARTS ? (enum milter_part)i : MILTER_PART_OPTIONS);
		write_all(peer_fd(0), nonsense[n].bytes, nonsense[n].len);
		fails();
	}
}
END_TEST

START_TEST(its_options_have_to_be_of_a_known_version)
{
	static const uint32_t bad[][3] = { { 1, 0, 0 }, { 7, 0, 0 } };

	for (size_t i = 0; i < FACTS_LEN(bad); i++) {
		begin_until(MILTER_PART_OPTIONS);
		peer_says_options(0, bad[i][0], bad[i][1], bad[i][2]);
		fails();
	}
	begin_until(MILTER_PART_OPTIONS);
	peer_says(0, 'O', "\0\0\0\6", 4);
	fails();
}
END_TEST

/* It may wish for everything, and is judged by what it does. Another change before leaves nothing. */
START_TEST(a_change_that_is_not_possible_here_is_a_failure)
{
	static const char letters[] = { MILTER_REPLACE_BODY, MILTER_CHANGE_SENDER, MILTER_ADD_RECIPIENT,
		MILTER_ADD_RECIPIENT_PARAMS, MILTER_DELETE_RECIPIENT };

	milter_flags = HEARS_END_ONLY;
	for (size_t i = 0; i < sizeof letters; i++) {
		begin_until(MILTER_PART_END);
		peer_says(0, 'h', "B\0002\0", 4);
		peer_says(0, letters[i], "<x@y>\0", 6);
		fails();
		ck_assert_str_eq(message_text(), "A: 1\r\n\r\nbody\r\n");
	}
}
END_TEST

START_TEST(a_verdict_before_its_options_and_options_again_are_failures)
{
	begin_until(MILTER_PART_OPTIONS);
	peer_says(0, 'a', NULL, 0);
	fails();
	begin_until(MILTER_PART_MAIL);
	peer_says_options(0, 6, 0, 0);
	fails();
}
END_TEST

START_TEST(a_reply_that_nobody_asked_for_is_a_failure)
{
	begin_until(MILTER_PART_MAIL);
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	peer_says(0, 'a', NULL, 0);
	wait_until(hooks_find(&hooks, "a")->state == HOOK_RESTS);
	ask_step(FILTER_RCPT);
	fails();
}
END_TEST

START_TEST(a_reply_for_the_sender_has_to_refuse)
{
	static const char *const texts[] = { "250 2.0.0 fine", "354 go", "no", "" };

	for (size_t i = 0; i < FACTS_LEN(texts); i++) {
		begin_until(MILTER_PART_RCPT);
		peer_says(0, 'y', texts[i], strlen(texts[i]) + 1);
		fails();
	}
	begin_until(MILTER_PART_RCPT);
	peer_says(0, 'y', "550 no end", 10);
	fails();
}
END_TEST

/* Time */

START_TEST(one_that_hangs_fails_at_each_part)
{
	hook_confs[0].timeout_ms = 10000;
	for (unsigned part = 0; part < MILTER_PARTS; part++) {
		begin_until((enum milter_part)part);
		ck_assert_uint_le(limit_ms(0), worker_now_ms(w) + 10010);
		is_late(0);
		fails();
	}
	ck_assert_uint_eq(counters.hooks_failed, MILTER_PARTS);
}
END_TEST

/* Nothing else is said to it. */
static void is_asked_about_the_end(uint32_t timeout_ms, uint32_t most_ms)
{
	hook_confs[0].timeout_ms = timeout_ms;
	filter_facts.most_ms[FILTER_MESSAGE] = most_ms;
	milter_flags = HEARS_END_ONLY;
	begin_until(MILTER_PART_END);
}

START_TEST(one_that_is_still_working_gets_its_time_again)
{
	uint64_t before_ms;

	is_asked_about_the_end(10000, WAIT_LIMIT_MS);
	before_ms = limit_ms(0);
	wait_until(worker_now_ms(w) > before_ms - 10000 + 20);
	peer_says(0, 'p', NULL, 0);
	wait_until(limit_ms(0) > before_ms);
	ck_assert_uint_le(limit_ms(0), worker_now_ms(w) + 10010);
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
}
END_TEST

START_TEST(no_work_lasts_longer_than_the_question)
{
	uint64_t first_ms, last_ms;

	is_asked_about_the_end(WAIT_LIMIT_MS, 10000);
	first_ms = limit_ms(0);
	ck_assert_uint_le(first_ms, worker_now_ms(w) + 10010);
	wait_until(worker_now_ms(w) > first_ms - 10000 + 30);
	last_ms = first_ms;
	for (unsigned i = 0; i < 5; i++) {
		peer_says(0, 'p', NULL, 0);
		turns(3);
		last_ms = limit_ms(0);
	}
	ck_assert_uint_le(last_ms, first_ms + 10);
	is_late(0);
	fails();
}
END_TEST

START_TEST(one_that_takes_no_body_fails_in_time)
{
	static char big[16u << 20] = "\r\n";

	memset(big + 2, 'x', sizeof big - 7);
	memcpy(big + sizeof big - 5, "\r\n.\r\n", 5);
	milter_flags = MILTER_SILENT_BODY | MILTER_NO_HEADER | MILTER_NO_END_OF_HEADER;
	begin_until(MILTER_PART_DATA);
	shrink_buffers(peer_fd(0));
	hook_confs[0].timeout_ms = 50;
	peer_says(0, 'c', NULL, 0);
	ck_assert_int_eq(verdict(), FILTER_CONTINUES);
	message_is(big, sizeof big);
	asks(FILTER_MESSAGE, NULL, NULL);
	ck_assert_uint_le(stream_pending(&filter->calls[0].stream), 512 << 10);
	ends_with(FILTER_REFUSES, "451 4.3.0 ");
}
END_TEST

UNIT(milter_answers)
{
	const TTest *const facts[] = {
		each_answer_has_its_verdict,
		a_verdict_counts_at_each_part,
		one_that_accepts_is_not_asked_again,
		a_refused_recipient_is_not_the_end_of_the_transaction,
		a_reply_may_come_byte_by_byte,
		each_kind_of_verdict_is_counted,
		its_changes_of_the_header_are_made_when_it_agrees,
		a_value_with_its_own_space_gets_no_other_one,
		no_change_is_made_by_one_that_fails_or_refuses,
		a_change_that_would_add_a_line_to_the_message_is_a_failure,
		a_change_before_the_end_of_the_message_is_a_failure,
		a_change_that_cannot_be_read_is_a_failure,
		there_is_room_for_no_more_than_256_changes,
		one_that_ends_the_connection_fails_at_each_part,
		one_that_sends_nonsense_fails_at_each_part,
		its_options_have_to_be_of_a_known_version,
		a_change_that_is_not_possible_here_is_a_failure,
		a_verdict_before_its_options_and_options_again_are_failures,
		a_reply_that_nobody_asked_for_is_a_failure,
		a_reply_for_the_sender_has_to_refuse,
		one_that_hangs_fails_at_each_part,
		one_that_is_still_working_gets_its_time_again,
		no_work_lasts_longer_than_the_question,
		one_that_takes_no_body_fails_in_time,
	};
	TCase *all = tcase_create("milter_answers");

	tcase_add_checked_fixture(all, milter_setup, hooks_teardown);
	return suite_run_case("milter_answers", all, facts, FACTS_LEN(facts));
}
