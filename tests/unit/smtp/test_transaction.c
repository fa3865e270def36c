/* test_transaction.c: facts of following a session; pieces of every size give the same. */
#include "smtp/transaction.h"

#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/session.h"
#include "tests/unit/unit.h"

static const struct smtp_tx_rules rules = { .client_max = 512, .reply_max = 512 };

static struct session *says_deciding(
	const char *script, const char *trace, enum smtp_own (*decide)(const struct smtp_client_event *event))
{
	static struct session s, other;
	session_begin(&s, &rules, SMTP_TX_BEHIND_BANNER);
	s.decide = decide;
	session_say(&s, script, 1000);
	ck_assert_str_eq(s.trace, trace);
	for (size_t step = 1; step < 40; step++) {
		session_begin(&other, &rules, SMTP_TX_BEHIND_BANNER);
		other.decide = decide;
		session_say(&other, script, step);
		ck_assert_str_eq(other.trace, s.trace);
		ck_assert_uint_eq(other.to_server_len, s.to_server_len);
		ck_assert_mem_eq(other.to_server, s.to_server, s.to_server_len);
		ck_assert_mem_eq(other.to_client, s.to_client, s.to_client_len);
	}
	return &s;
}

static struct session *says(const char *script, const char *trace)
{
	return says_deciding(script, trace, NULL);
}

START_TEST(a_mail_goes_through_its_states)
{
	struct session *s = says(
		"C: EHLO a.example\nS: 250-b\nS: 250-SIZE 5\nS: 250 DSN\n?\n"
		"C: MAIL FROM:<a@b>\n?\nS: 250 ok\nC: RCPT TO:<c@d>\nS: 250 ok\nC: RCPT TO:<e@d>\nS: 550 no\n"
		"C: DATA\n?\nS: 354 go\nC: hello\nC: ..x\n?\nC: .\n?\nS: 250 ok\n?\nC: QUIT\nS: 221 bye\n",
		"passed:EHLO answered:EHLO checkpoint:none passed:MAIL busy:mail answered:MAIL passed:RCPT "
		"answered:RCPT "
		"passed:RCPT answered:RCPT passed:DATA busy:data answered:DATA busy:content content-end busy:dot "
		"answered:end of data checkpoint:none passed:QUIT answered:QUIT ");
	ck_assert_uint_eq(s->t.done, 1);
	ck_assert_uint_eq(s->t.accepted, 1);
	ck_assert_uint_eq(s->t.rcpts_accepted, 1);
	ck_assert_uint_eq(s->t.rcpts_refused, 1);
	ck_assert_uint_eq(s->t.message_len, 7 + 4);
	ck_assert_uint_eq(s->t.closing, 1);
	ck_assert_str_eq(s->t.name, "a.example");
	ck_assert_uint_eq(smtp_ehlo_size(&s->ehlo), 5);
	ck_assert(smtp_ehlo_has(&s->ehlo, SMTP_CAP_DSN));
	ck_assert_uint_eq(s->t.classes_len, 5);
	ck_assert_mem_eq(s->t.classes, "22532", 5);
}
END_TEST

START_TEST(content_waits_for_354)
{
	says("C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nC: DATA\nC: QUIT\nC: .\nS: 250 ok\nS: 250 ok\nS: 354 go\n?\nS: 250 "
	     "ok\n?\n",
		"passed:MAIL passed:RCPT passed:DATA answered:MAIL answered:RCPT answered:DATA content-end busy:dot "
		"answered:end of data checkpoint:none ");
}
END_TEST

START_TEST(behind_a_refused_data_come_commands)
{
	says("C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nC: DATA\nC: RSET\nC: QUIT\nS: 250 ok\nS: 550 no\nS: 554 no\n?\nS: "
	     "250 ok\n?\n"
	     "S: 221 bye\n",
		"passed:MAIL passed:RCPT passed:DATA answered:MAIL answered:RCPT answered:DATA passed:RSET busy:mail "
		"answered:RSET passed:QUIT busy:none answered:QUIT ");
}
END_TEST

START_TEST(a_refused_mail_opens_nothing)
{
	says("C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nC: DATA\nS: 451 no\nS: 503 no\nS: 503 no\n?\n",
		"passed:MAIL passed:RCPT passed:DATA answered:MAIL answered:RCPT answered:DATA checkpoint:none ");
	says("C: MAIL FROM:<a@b>\nS: 451 no\n?\n", "passed:MAIL answered:MAIL checkpoint:none ");
}
END_TEST

START_TEST(a_mail_may_begin_before_the_one_before_was_answered)
{
	struct session *s = says(
		"C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nC: DATA\nS: 250 ok\nS: 250 ok\nS: 354 go\nC: x\nC: .\n"
		"C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nC: DATA\n?\nS: 250 queued\n?\nS: 250 ok\nS: 250 ok\nS: 354 "
		"go\nC: "
		".\nS: 550 no\n?\n",
		"passed:MAIL passed:RCPT passed:DATA answered:MAIL answered:RCPT answered:DATA content-end passed:MAIL "
		"passed:RCPT passed:DATA busy:data answered:end of data busy:data answered:MAIL answered:RCPT "
		"answered:DATA content-end answered:end of data checkpoint:none ");
	ck_assert_uint_eq(s->t.number, 2);
	ck_assert_uint_eq(s->t.done, 2);
	ck_assert_uint_eq(s->t.accepted, 1);
}
END_TEST

/* The follower does not read commands that it holds, at whatever byte they are cut. */
START_TEST(a_mail_that_is_held_waits_for_the_reply_to_the_one_before)
{
	static struct session s;

	for (size_t step = 1; step < 40; step++) {
		session_begin(&s, &rules, SMTP_TX_BEHIND_BANNER);
		smtp_tx_hold(&s.t, SMTP_TX_HOLDS_MAIL);
		session_say(&s,
			"C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nC: DATA\nS: 250 ok\nS: 250 ok\nS: 354 go\nC: hi\nC: .\n"
			"C: NOOP\nC: MAIL FROM:<e@f>\nC: NOOP\n",
			step);
		ck_assert_uint_eq(s.t.number, 1);
		ck_assert_uint_eq(s.t.queue_len, 2);
		s.trace_len = 0;
		session_say(&s, "S: 250 taken\nS: 250 noop\nS: 250 mail\nS: 250 noop\n?\n", step);
		ck_assert_str_eq(s.trace, "answered:end of data passed:MAIL passed:NOOP answered:NOOP answered:MAIL "
					  "answered:NOOP busy:mail ");
	}
}
END_TEST

START_TEST(the_server_decides_about_a_second_mail)
{
	says("C: MAIL FROM:<a@b>\nC: MAIL FROM:<a@b>\nC: NOOP\nS: 250 ok\nS: 503 nested\n?\nS: 250 ok\n?\n",
		"passed:MAIL passed:MAIL answered:MAIL answered:MAIL passed:NOOP busy:mail answered:NOOP busy:mail ");
	struct session *s = says("C: MAIL FROM:<a@b>\nC: MAIL FROM:<c@b>\nS: 451 no\nS: 250 ok\n?\n",
		"passed:MAIL passed:MAIL answered:MAIL answered:MAIL busy:mail ");
	ck_assert_uint_eq(s->t.number, 2);
}
END_TEST

START_TEST(rset_and_greetings_end_a_transaction_when_they_are_accepted)
{
	says("C: MAIL FROM:<a@b>\nS: 250 ok\nC: RSET\n?\nS: 250 ok\n?\n",
		"passed:MAIL answered:MAIL passed:RSET busy:mail answered:RSET checkpoint:none ");
	says("C: MAIL FROM:<a@b>\nS: 250 ok\nC: EHLO x\nS: 501 no\n?\nC: HELO x\nS: 250 ok\n?\n",
		"passed:MAIL answered:MAIL passed:EHLO answered:EHLO busy:mail passed:HELO answered:HELO "
		"checkpoint:none ");
	says("C: EHLO x\nC: MAIL FROM:<a@b>\nS: 250 ok\n?\nS: 250 ok\n?\n",
		"passed:EHLO answered:EHLO passed:MAIL busy:mail answered:MAIL busy:mail ");
}
END_TEST

START_TEST(auth_is_followed_through_its_lines)
{
	struct session *s =
		says("C: AUTH LOGIN\nC: dXNlcg==\nC: c2VjcmV0\nC: NOOP\nS: 334 VXNlcm5hbWU6\n?\nS: 334 UGFzc3dvcmQ6\n"
		     "S: 235 ok\n?\nS: 250 ok\n?\n",
			"passed:AUTH answered:AUTH auth-line busy:none answered:AUTH line auth-line answered:AUTH line "
			"passed:NOOP "
			"busy:none answered:NOOP checkpoint:none ");
	ck_assert_uint_eq(s->t.authenticated, 1);
	s = says("C: AUTH PLAIN x\nS: 535 no\n?\n", "passed:AUTH answered:AUTH checkpoint:none ");
	ck_assert_uint_eq(s->t.authenticated, 0);
}
END_TEST

START_TEST(starttls_is_told)
{
	struct session *s = says("C: STARTTLS\nC: NOOP\nS: 454 not now\nS: 250 ok\n",
		"passed:STARTTLS answered:STARTTLS passed:NOOP answered:NOOP ");
	ck_assert_uint_eq(s->t.tls, 0);
	s = says("C: STARTTLS\nS: 220 go\n", "passed:STARTTLS answered:STARTTLS ");
	ck_assert_uint_eq(s->t.tls, 1);
}
END_TEST

static enum smtp_own no_xclient(const struct smtp_client_event *event)
{
	return event->refusal                             ? event->refusal
	       : event->command.verb == SMTP_VERB_XCLIENT ? SMTP_OWN_NOT_TRUSTED
							  : SMTP_OWN_NONE;
}

START_TEST(our_own_replies_come_in_their_turn)
{
	struct session *s = says_deciding("C: NOOP\nC: XCLIENT NAME=a\nC: NOOP\nC: FOO\nS: 250 one\nS: 250 two\n?\n",
		"passed:NOOP refused:XCLIENT passed:NOOP refused:? answered:NOOP own:NOT_TRUSTED answered:NOOP "
		"own:UNKNOWN_COMMAND checkpoint:none ",
		no_xclient);
	ck_assert_uint_eq(s->to_server_len, 12);
}
END_TEST

START_TEST(an_answer_without_a_question_is_bad)
{
	says("S: 250 ok\n", "bad ");
	struct session *s = says("S: 421 bye\n", "answered:nothing ");
	ck_assert_uint_eq(s->t.closing, 1);
	says("C: NOOP\nS: 250-a\nS: b\n", "passed:NOOP bad ");
}
END_TEST

START_TEST(the_banner_is_the_first_reply)
{
	struct session s;
	session_begin(&s, &rules, SMTP_TX_BEFORE_BANNER);
	ck_assert(!smtp_tx_is_checkpoint(&s.t));
	session_say(&s, "C: EHLO a\nS: 220-b\nS: 220 ESMTP\nS: 250 b\n", 7);
	ck_assert_str_eq(s.trace, "passed:EHLO answered:banner answered:EHLO ");
	ck_assert(smtp_tx_is_checkpoint(&s.t));
}
END_TEST

START_TEST(half_a_line_is_no_checkpoint)
{
	struct session s;
	session_begin(&s, &rules, SMTP_TX_BEHIND_BANNER);
	session_client(&s, "NOO", 3);
	ck_assert(!smtp_tx_is_checkpoint(&s.t));
	session_client(&s, "P\r\n", 3);
	session_server(&s, "250 o", 5);
	ck_assert(!smtp_tx_is_checkpoint(&s.t));
	session_server(&s, "k\r\n", 3);
	ck_assert(smtp_tx_is_checkpoint(&s.t));
}
END_TEST

START_TEST(a_session_that_cannot_be_followed_has_no_checkpoint)
{
	says("C: RCPT TO:<a@b>\nS: 503 no\n?\nC: RCPT TO:<a@b>\nS: 250 ok\n?\nC: NOOP\nS: 250 ok\n?\n",
		"passed:RCPT answered:RCPT checkpoint:none passed:RCPT answered:RCPT busy:none passed:NOOP "
		"answered:NOOP busy:none ");
}
END_TEST

START_TEST(an_unknown_command_that_was_accepted_counts_as_auth)
{
	struct session *s = says("C: XWHAT\nC: NOOP\nS: 500 no\nS: 250 ok\n?\n",
		"passed:? answered:? passed:NOOP answered:NOOP checkpoint:none ");
	ck_assert_uint_eq(s->t.authenticated, 0);
	s = says("C: XWHAT\nS: 250 ok\n?\n", "passed:? answered:? checkpoint:none ");
	ck_assert_uint_eq(s->t.authenticated, 1);
	says("C: XWHAT\nS: 354 go on\n", "passed:? bad ");
}
END_TEST

START_TEST(the_queue_is_bounded)
{
	struct session s;
	session_begin(&s, &rules, SMTP_TX_BEHIND_BANNER);
	for (unsigned i = 0; i < SMTP_TX_QUEUE_MAX + 10; i++)
		session_client(&s, "NOOP\r\n", 6);
	ck_assert_uint_eq(s.t.queue_len, SMTP_TX_QUEUE_MAX);
	ck_assert_uint_eq(s.waiting_len, 60);
	for (unsigned i = 0; i < SMTP_TX_QUEUE_MAX + 10; i++)
		ck_assert(session_server(&s, "250 ok\r\n", 8));
	ck_assert(smtp_tx_is_checkpoint(&s.t));
	ck_assert_uint_eq(s.to_server_len, 6 * (SMTP_TX_QUEUE_MAX + 10));
}
END_TEST

START_TEST(smuggling_is_told_before_the_end)
{
	struct session s;
	struct smtp_tx_rules strict = rules;
	strict.data_refuse = SMTP_DATA_SMUGGLING;
	session_begin(&s, &strict, SMTP_TX_BEHIND_BANNER);
	session_say(&s, "C: MAIL FROM:<>\nC: RCPT TO:<a@b>\nC: DATA\nS: 250 ok\nS: 250 ok\nS: 354 go\n", 1000);
	session_client(&s, "a\n.\r\nMAIL FROM:<>\r\n.\r\n", 22);
	ck_assert(strstr(s.trace, "flaw content-end "));
	ck_assert_uint_eq(s.t.data.flaws & SMTP_DATA_SMUGGLING, SMTP_DATA_BIT(SMTP_DATA_LF_DOT_CRLF));
}
END_TEST

UNIT(transaction)
{
	const TTest *facts[] = {
		a_mail_goes_through_its_states,
		content_waits_for_354,
		behind_a_refused_data_come_commands,
		a_refused_mail_opens_nothing,
		a_mail_may_begin_before_the_one_before_was_answered,
		a_mail_that_is_held_waits_for_the_reply_to_the_one_before,
		the_server_decides_about_a_second_mail,
		rset_and_greetings_end_a_transaction_when_they_are_accepted,
		auth_is_followed_through_its_lines,
		starttls_is_told,
		our_own_replies_come_in_their_turn,
		an_answer_without_a_question_is_bad,
		the_banner_is_the_first_reply,
		half_a_line_is_no_checkpoint,
		a_session_that_cannot_be_followed_has_no_checkpoint,
		an_unknown_command_that_was_accepted_counts_as_auth,
		the_queue_is_bounded,
		smuggling_is_told_before_the_end,
	};
	return suite_run("transaction", facts, SUITE_LEN(facts));
}
