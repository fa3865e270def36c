/* test_session_lease.c: facts of the turns of several senders at one receiver, of what a receiver may do to a session,
 * and of senders that let others wait. */
#include <string.h>

#include "session_peers.h"
#include "tests/unit/unit.h"

#define PIPELINING "250 PIPELINING\r\n"
#define MAIL       "MAIL FROM:<s@a.example>\r\n"
#define RCPT       "RCPT TO:<r@b.example>\r\n"

/* The receiver takes one connection, and two senders have heard what it offers. */
static void two_senders_and_one_connection(void)
{
	session_conf->limits.connections = 1;
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_comes_from(1, DOOR_RELAYS, "192.0.2.2");
	sender_greets(1, NULL);
}

static void ends_message(unsigned n, unsigned receiver)
{
	sender_says(n, "A: 1\r\n.\r\n");
	receiver_hears(receiver, "A: 1\r\n");
	receiver_hears(receiver, ".\r\n");
	receiver_says(receiver, "250 taken\r\n");
	sender_hears(n, "250 taken\r\n");
}

/* Sender 0 has a connection that has carried a message. */
static void a_message_is_taken(void)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_begins_message(0, 0);
	ends_message(0, 0);
}

static void is_late(unsigned n)
{
	struct session *s = session_of(n);

	ck_assert_int_eq(deadline_is_set(&s->deadline), 1);
	deadline_set(w, &s->deadline, 1);
}

/* Turns */

START_TEST(mail_waits_until_the_connection_is_free)
{
	two_senders_and_one_connection();
	sender_begins_message(0, 0);
	sender_says(1, "MAIL FROM:<t@a.example>\r\n");
	sender_hears_nothing(1);
	receiver_hears_nothing(0);
	ck_assert_int_eq(session_of(1)->state, SESSION_WAITS);
	ends_message(0, 0);
	receiver_hears(0, "MAIL FROM:<t@a.example>\r\n");
	receiver_says(0, "250 ok\r\n");
	sender_hears(1, "250 ok\r\n");
	ck_assert_int_eq(receiver_is_asked(), 0);
}
END_TEST

START_TEST(mail_that_waits_too_long_is_put_off_and_the_session_goes_on)
{
	two_senders_and_one_connection();
	sender_begins_message(0, 0);
	sender_says(1, MAIL);
	wait_until(session_of(1)->state == SESSION_WAITS);
	ck_assert_uint_le(session_of(1)->deadline.at_ms, worker_now_ms(w) + session_conf->limits.turn_ms + 10);
	is_late(1);
	sender_hears(1, "451 4.4.5 ");
	ck_assert_uint_eq(session_counters->turns_expired, 1);
	ck_assert_int_eq(session_of(1)->state, SESSION_TALKS);
	sender_says(1, "NOOP\r\n");
	sender_hears(1, "250 ");
}
END_TEST

START_TEST(who_leaves_while_waiting_gets_no_turn)
{
	two_senders_and_one_connection();
	sender_begins_message(0, 0);
	sender_says(1, MAIL);
	wait_until(session_of(1)->state == SESSION_WAITS);
	sender_resets(1);
	wait_until(!session_of(1));
	ends_message(0, 0);
	receiver_hears_nothing(0);
	sender_begins_message(0, 0);
}
END_TEST

/* The end of a connection that others have used is nothing that this sender did. */
static void goes_over_another_connection(void)
{
	receiver_greets(1, PIPELINING);
	receiver_hears(1, MAIL);
	sender_hears_nothing(0);
	receiver_says(1, "250 2.1.0 here\r\n");
	sender_hears(0, "250 2.1.0 here\r\n");
	ck_assert_uint_eq(session_counters->turns_repeated, 1);
}

START_TEST(mail_that_a_used_connection_refuses_by_421_goes_over_another_one)
{
	a_message_is_taken();
	sender_says(0, MAIL RCPT);
	receiver_hears(0, MAIL);
	receiver_hears_nothing(0);
	receiver_says(0, "421 4.7.0 enough of you\r\n");
	goes_over_another_connection();
	receiver_hears(1, RCPT);
}
END_TEST

START_TEST(mail_on_a_used_connection_that_ends_goes_over_another_one)
{
	a_message_is_taken();
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	receiver_closes(0);
	goes_over_another_connection();
}
END_TEST

START_TEST(another_refusal_of_a_used_connection_is_the_reply)
{
	a_message_is_taken();
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	receiver_says(0, "450 4.7.1 not now\r\n");
	sender_hears(0, "450 4.7.1 not now\r\n");
	ck_assert_uint_eq(session_counters->turns_repeated, 0);
}
END_TEST

START_TEST(at_a_stop_mail_is_not_tried_again)
{
	a_message_is_taken();
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	session_drain(session_of(0));
	receiver_says(0, "421 4.7.0 enough of you\r\n");
	sender_hears(0, "421 4.3.2 Service is shutting down");
	sender_hears_end(0);
	ck_assert_int_eq(receiver_is_asked(), 0);
}
END_TEST

START_TEST(without_fairness_a_sender_keeps_its_connection)
{
	session_conf->fairness = CONF_OFF;
	a_message_is_taken();
	ck_assert_ptr_nonnull(session_of(0)->onward);
	sender_begins_message(0, 0);
	ends_message(0, 0);
	sender_says(0, "QUIT\r\n");
	sender_hears(0, "221 ");
	ck_assert_ptr_null(session_of(0)->onward);
	ck_assert_uint_eq(session_counters->aborted, 0);
}
END_TEST

/* The receiver */

START_TEST(a_receiver_that_takes_no_mail_is_not_the_end_of_the_mail)
{
	sender_comes(0, DOOR_RELAYS);
	sender_says(0, "EHLO sender.example\r\n");
	receiver_accepts(0);
	receiver_says(0, "554 5.3.2 no mail here\r\n");
	sender_hears(0, "421 4.3.2 The receiver takes no mail now");
	sender_hears_end(0);
}
END_TEST

START_TEST(an_extension_that_was_offered_and_is_gone_ends_the_session)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, "250 SMTPUTF8\r\n");
	receiver_closes(0);
	turns(5);
	sender_says(0, "MAIL FROM:<\303\244@a.example> SMTPUTF8\r\n");
	receiver_greets(1, PIPELINING);
	sender_hears(0, "421 4.3.2 The mail server behind has changed");
	sender_hears_end(0);
	receiver_hears_nothing(1);
}
END_TEST

/* The receiver offers no TLS. */
static void mail_comes_with_tls(enum smtpproxy_tls tls)
{
	session_conf->outward.tls = tls;
	sender_comes(0, DOOR_RELAYS);
	strcpy(session_of(0)->record.sender_tls.version, "TLSv1.3");
	sender_greets(0, PIPELINING);
	sender_says(0, MAIL);
}

START_TEST(mail_that_came_with_tls_does_not_go_on_in_clear)
{
	session_conf->outward.keep_tls = CONF_ON;
	mail_comes_with_tls(SMTPPROXY_TLS_MAY);
	sender_hears(0, "421 4.7.4 ");
	sender_hears_end(0);
	receiver_hears_nothing(0);
	ck_assert_uint_eq(session_counters->sent_in_clear, 0);
}
END_TEST

START_TEST(mail_that_came_with_tls_goes_on_in_clear_where_the_file_says_so)
{
	session_conf->outward.keep_tls = CONF_ON;
	mail_comes_with_tls(SMTPPROXY_TLS_NONE);
	receiver_hears(0, MAIL);
	ck_assert_uint_eq(session_counters->sent_in_clear, 1);
}
END_TEST

START_TEST(mail_that_came_with_tls_and_went_on_in_clear_is_counted)
{
	mail_comes_with_tls(SMTPPROXY_TLS_MAY);
	receiver_hears(0, MAIL);
	ck_assert_uint_eq(session_counters->sent_in_clear, 1);
}
END_TEST

START_TEST(mail_that_came_in_clear_goes_on_in_clear)
{
	session_conf->outward.keep_tls = CONF_ON;
	session_conf->outward.tls = SMTPPROXY_TLS_MAY;
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	ck_assert_uint_eq(session_counters->sent_in_clear, 0);
}
END_TEST

/* Senders in a loop have used the records of this second. */
START_TEST(mail_that_is_not_served_has_a_record_whatever_others_do)
{
	two_senders_and_one_connection();
	sender_begins_message(0, 0);
	sender_says(1, MAIL);
	wait_until(session_of(1)->state == SESSION_WAITS);
	home.empty.second = (worker_now_ms(w) + 1) / 1000;
	home.empty.told = 100;
	is_late(1);
	sender_hears(1, "451 4.4.5 ");
	ck_assert_uint_eq(session_counters->events_left_out, 0);
}
END_TEST

/* So many transactions of the sender had no content. */
static void has_sent_none(uint16_t count, const char *offers)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, offers);
	session_of(0)->record.empty = count;
}

START_TEST(a_part_of_a_message_is_no_message)
{
	static const char *const lines[] = { MAIL, RCPT, "BDAT 3\r\n", "RSET\r\n" };

	has_sent_none(99, "250-PIPELINING\r\n250 CHUNKING\r\n");
	for (unsigned i = 0; i < FACTS_LEN(lines); i++) {
		sender_says(0, lines[i]);
		receiver_hears(0, lines[i]);
		if (i == 2) {
			sender_says(0, "x\r\n");
			receiver_hears(0, "x\r\n");
		}
		receiver_says(0, "250 ok\r\n");
		sender_hears(0, "250 ok\r\n");
	}
	sender_says(0, MAIL);
	sender_hears(0, "421 4.7.0 Too many commands without mail");
}
END_TEST

START_TEST(a_message_that_is_refused_is_one)
{
	has_sent_none(99, PIPELINING);
	sender_begins_message(0, 0);
	sender_says(0, "A: 1\r\n.\r\n");
	receiver_hears(0, "A: 1\r\n");
	receiver_hears(0, ".\r\n");
	receiver_says(0, "554 no\r\n");
	sender_hears(0, "554 no\r\n");
	sender_begins_message(0, 0);
}
END_TEST

START_TEST(a_reply_that_is_none_ends_the_session)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	receiver_says(0, "hello\r\n");
	sender_hears(0, "421 4.5.0 ");
	sender_hears_end(0);
	ck_assert_int_eq(receiver_hears_end(0), -1);
}
END_TEST

START_TEST(a_receiver_that_says_421_ends_the_session_in_its_own_words)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_begins_message(0, 0);
	receiver_says(0, "421 4.3.2 going down\r\n");
	sender_hears(0, "421 4.3.2 going down\r\n");
	sender_hears_end(0);
	ck_assert_int_eq(receiver_hears_end(0), -1);
}
END_TEST

START_TEST(no_word_of_ours_follows_a_part_of_a_reply)
{
	char word[64] = "";
	int end;

	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	receiver_says(0, "250-2.1.0 first\r\n");
	read_exactly(sender_fd(0), word, 17);
	ck_assert_str_eq(word, "250-2.1.0 first\r\n");
	receiver_closes(0);
	wait_until(read_some(sender_fd(0), word, sizeof word, &end) < 0);
}
END_TEST

START_TEST(a_receiver_that_does_not_reply_is_given_up)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	ck_assert_int_eq(deadline_is_set(&session_of(0)->onward->deadline), 1);
	ck_assert_uint_le(
		session_of(0)->onward->deadline.at_ms, worker_now_ms(w) + session_conf->outward.command_ms + 10);
	deadline_set(w, &session_of(0)->onward->deadline, 1);
	sender_hears(0, "421 4.4.");
	sender_hears_end(0);
	ck_assert_int_eq(receiver_hears_end(0), -1);
}
END_TEST

START_TEST(a_receiver_that_waits_for_its_sender_has_no_time_limit)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_begins_message(0, 0);
	turns(3);
	ck_assert_int_eq(deadline_is_set(&session_of(0)->onward->deadline), 0);
}
END_TEST

START_TEST(a_reply_without_an_end_ends_the_session)
{
	static const char line[] = "250-2.1.0 and more\r\n";
	char word[64];
	int end = 0;
	unsigned lines = 0;

	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	for (; session_of(0) && lines < 5000; lines++) {
		receiver_says(0, line);
		turns(2);
		read_some(sender_fd(0), word, sizeof word, &end);
	}
	ck_assert_uint_lt(lines, 5000);
	ck_assert_uint_eq(home.count, 0);
	ck_assert_int_eq(receiver_hears_end(0), -1);
}
END_TEST

/* Senders that let others wait */

START_TEST(a_sender_that_is_slow_while_another_waits_ends)
{
	session_conf->limits.lease_ms = 30;
	two_senders_and_one_connection();
	sender_begins_message(0, 0);
	sender_says(1, MAIL);
	sender_hears(0, "421 4.4.2 Too slow, and others wait\r\n");
	ck_assert_int_eq(receiver_hears_end(0), -1);
	receiver_greets(1, PIPELINING);
	receiver_hears(1, MAIL);
	ck_assert_uint_eq(session_counters->too_slow, 1);
}
END_TEST

START_TEST(a_slow_sender_goes_on_while_nobody_waits)
{
	session_conf->limits.lease_ms = 1;
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, PIPELINING);
	sender_begins_message(0, 0);
	for (unsigned i = 0; i < 3; i++) {
		is_late(0);
		sender_hears_nothing(0);
	}
	ends_message(0, 0);
}
END_TEST

START_TEST(a_sender_does_not_pay_for_the_time_of_its_receiver)
{
	uint64_t began_ms;

	session_conf->limits.lease_ms = 300;
	two_senders_and_one_connection();
	sender_says(0, MAIL);
	receiver_hears(0, MAIL);
	sender_says(1, MAIL);
	began_ms = now_ms();
	wait_until(now_ms() - began_ms > 330);
	is_late(0);
	sender_hears_nothing(0);
	receiver_says(0, "250 ok\r\n");
	sender_hears(0, "250 ok\r\n");
	ck_assert_uint_eq(session_counters->too_slow, 0);
}
END_TEST

UNIT(session_lease)
{
	const TTest *const facts[] = {
		mail_waits_until_the_connection_is_free,
		mail_that_waits_too_long_is_put_off_and_the_session_goes_on,
		who_leaves_while_waiting_gets_no_turn,
		mail_that_a_used_connection_refuses_by_421_goes_over_another_one,
		mail_on_a_used_connection_that_ends_goes_over_another_one,
		another_refusal_of_a_used_connection_is_the_reply,
		at_a_stop_mail_is_not_tried_again,
		without_fairness_a_sender_keeps_its_connection,
		a_receiver_that_takes_no_mail_is_not_the_end_of_the_mail,
		an_extension_that_was_offered_and_is_gone_ends_the_session,
		mail_that_came_with_tls_does_not_go_on_in_clear,
		mail_that_came_with_tls_goes_on_in_clear_where_the_file_says_so,
		mail_that_came_with_tls_and_went_on_in_clear_is_counted,
		mail_that_came_in_clear_goes_on_in_clear,
		mail_that_is_not_served_has_a_record_whatever_others_do,
		a_part_of_a_message_is_no_message,
		a_message_that_is_refused_is_one,
		a_reply_that_is_none_ends_the_session,
		a_receiver_that_says_421_ends_the_session_in_its_own_words,
		no_word_of_ours_follows_a_part_of_a_reply,
		a_receiver_that_does_not_reply_is_given_up,
		a_receiver_that_waits_for_its_sender_has_no_time_limit,
		a_reply_without_an_end_ends_the_session,
		a_sender_that_is_slow_while_another_waits_ends,
		a_slow_sender_goes_on_while_nobody_waits,
		a_sender_does_not_pay_for_the_time_of_its_receiver,
	};
	TCase *all = tcase_create("session_lease");

	tcase_add_checked_fixture(all, sessions_setup, sessions_teardown);
	return suite_run_case("session_lease", all, facts, FACTS_LEN(facts));
}
