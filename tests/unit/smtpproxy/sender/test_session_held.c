/* test_session_held.c: facts of a session whose mail a milter judges: nothing of it is at the receiver before the
 * milter has agreed. The milter wants to hear MAIL, RCPT, fields and the end. */
#include <string.h>

#include "session_peers.h"
#include "tests/unit/smtpproxy/hooks/milter_peer.h"
#include "tests/unit/unit.h"

#define OFFERS "250-SIZE 99999999\r\n250-CHUNKING\r\n250-BINARYMIME\r\n250 PIPELINING\r\n"
#define MAIL   "MAIL FROM:<s@a.example>\r\n"
#define RCPT   "RCPT TO:<r@b.example>\r\n"
#define WISHES                                                                                                         \
	(MILTER_NO_CONNECT | MILTER_NO_HELO | MILTER_NO_DATA | MILTER_NO_END_OF_HEADER | MILTER_NO_BODY |              \
		MILTER_SILENT_HEADER)

static void greets(void)
{
	sender_comes(0, DOOR_FILTERS);
	sender_greets(0, OFFERS);
}

/* The milter hears the first command of a transaction. */
static void milter_comes(void)
{
	peer_accept(0);
	peer_hears(0, 'O');
	peer_says_options(0, 6, MILTER_ACTIONS, WISHES);
	peer_hears(0, 'M');
}

static void agrees(void)
{
	peer_says(0, 'c', NULL, 0);
}

static void mail_is_taken(void)
{
	greets();
	sender_says(0, MAIL);
	milter_comes();
	agrees();
	receiver_hears(0, MAIL);
	receiver_says(0, "250 2.1.0 mail ok\r\n");
	sender_hears(0, "250 2.1.0 mail ok\r\n");
}

static void rcpt_is_taken(void)
{
	sender_says(0, RCPT);
	peer_hears(0, 'R');
	agrees();
	receiver_hears(0, RCPT);
	receiver_says(0, "250 2.1.5 rcpt ok\r\n");
	sender_hears(0, "250 2.1.5 rcpt ok\r\n");
}

/* The sender may send its message. */
static void data_is_taken(void)
{
	mail_is_taken();
	rcpt_is_taken();
	sender_says(0, "DATA\r\n");
	sender_hears(0, "354 ");
}

/* The milter has heard all of it. */
static void message_is_judged(void)
{
	data_is_taken();
	sender_says(0, "A: 1\r\n\r\nbody\r\n..\r\n.\r\n");
	peer_hears(0, 'L');
	peer_hears(0, 'E');
}

/* The same, and the receiver hears DATA. */
static void message_is_agreed(void)
{
	message_is_judged();
	agrees();
	receiver_hears(0, "DATA\r\n");
}

static void receiver_hears_all(const char *const *lines, size_t count)
{
	for (size_t i = 0; i < count; i++)
		receiver_hears(0, lines[i]);
}

static void is_over(void)
{
	wait_until(!session_of(0));
	ck_assert_uint_eq(home.held.used, 0);
}

START_TEST(the_receiver_hears_no_command_before_the_milter_has_agreed)
{
	greets();
	sender_says(0, MAIL RCPT);
	milter_comes();
	receiver_hears_nothing(0);
	agrees();
	receiver_hears(0, MAIL);
	receiver_says(0, "250 ok\r\n");
	peer_hears(0, 'R');
	receiver_hears_nothing(0);
	agrees();
	receiver_hears(0, RCPT);
}
END_TEST

START_TEST(a_refused_sender_is_not_shown_to_the_receiver)
{
	greets();
	sender_says(0, MAIL);
	milter_comes();
	peer_says(0, 'y', "554 5.7.9 not you", 18);
	sender_hears(0, "554 5.7.9 not you\r\n");
	receiver_hears_nothing(0);
	sender_says(0, RCPT);
	sender_hears(0, "503 ");
	ck_assert_int_eq(session_of(0)->state, SESSION_TALKS);
}
END_TEST

START_TEST(a_refused_recipient_leaves_the_transaction_open)
{
	mail_is_taken();
	sender_says(0, RCPT);
	peer_hears(0, 'R');
	peer_says(0, 'r', NULL, 0);
	sender_hears(0, "550 5.7.1 ");
	receiver_hears_nothing(0);
	rcpt_is_taken();
}
END_TEST

START_TEST(data_without_a_recipient_is_refused_here)
{
	mail_is_taken();
	sender_says(0, "DATA\r\n");
	sender_hears(0, "554 5.5.1 No valid recipients");
	receiver_hears_nothing(0);
}
END_TEST

START_TEST(a_message_goes_on_as_the_milter_has_changed_it)
{
	static const char *const lines[] = { "N: 2\r\n", "A: 1\r\n", "\r\n", "body\r\n", "..\r\n", ".\r\n" };

	message_is_judged();
	receiver_hears_nothing(0);
	sender_hears_nothing(0);
	peer_says(0, 'i', "\0\0\0\0N\0002\0", 8);
	agrees();
	receiver_hears(0, "DATA\r\n");
	receiver_hears_nothing(0);
	receiver_says(0, "354 go\r\n");
	receiver_hears_all(lines, FACTS_LEN(lines));
	sender_hears_nothing(0);
	receiver_says(0, "250 2.0.0 as 9\r\n");
	sender_hears(0, "250 2.0.0 as 9\r\n");
	ck_assert_uint_eq(home.held.used, 0);
	ck_assert_uint_eq(session_counters->accepted, 1);
	ck_assert_uint_eq(session_counters->hooks_changed, 1);
}
END_TEST

START_TEST(a_refused_message_does_not_go_to_the_receiver)
{
	message_is_judged();
	peer_says(0, 'r', NULL, 0);
	sender_hears(0, "550 5.7.1 Rejected by a filter\r\n");
	receiver_hears_nothing(0);
	ck_assert_uint_eq(session_counters->refused, 1);
	ck_assert_uint_eq(home.held.used, 0);
	sender_says(0, MAIL); /* the connection has an open transaction, which a greeting ends */
	peer_close(0);
	milter_comes();
	agrees();
	receiver_hears(0, "EHLO sender.example\r\n");
	receiver_says(0, "250-receiver.example\r\n" OFFERS);
	receiver_hears(0, MAIL);
}
END_TEST

START_TEST(a_discarded_message_is_taken_and_goes_to_nobody)
{
	message_is_judged();
	peer_says(0, 'd', NULL, 0);
	sender_hears(0, "250 2.0.0 Ok\r\n");
	receiver_hears_nothing(0);
	ck_assert_uint_eq(home.held.used, 0);
}
END_TEST

START_TEST(mail_that_is_discarded_at_a_command_is_taken_and_goes_to_nobody)
{
	mail_is_taken();
	sender_says(0, RCPT);
	peer_hears(0, 'R');
	peer_says(0, 'd', NULL, 0);
	receiver_hears(0, RCPT); /* the sender gets the receiver's replies to its commands */
	receiver_says(0, "250 ok\r\n");
	sender_hears(0, "250 ok\r\n");
	sender_says(0, "DATA\r\n");
	sender_hears(0, "354 ");
	sender_says(0, "A: 1\r\n.\r\n");
	sender_hears(0, "250 2.0.0 Ok\r\n");
	receiver_hears_nothing(0);
}
END_TEST

START_TEST(a_receiver_that_refuses_data_refuses_the_message)
{
	message_is_agreed();
	receiver_says(0, "452 4.3.1 ");
	turns(3);
	receiver_says(0, "full\r\n");
	sender_hears(0, "452 4.3.1 full\r\n");
	receiver_hears_nothing(0);
	ck_assert_uint_eq(session_counters->refused, 1);
}
END_TEST

START_TEST(a_receiver_that_takes_the_message_before_it_comes_has_broken_the_protocol)
{
	message_is_agreed();
	receiver_says(0, "250 2.0.0 taken\r\n");
	sender_hears(0, "421 4.5.0 ");
	sender_hears_end(0);
	ck_assert_int_eq(receiver_hears_end(0), -1);
	ck_assert_uint_eq(session_counters->accepted, 0);
	ck_assert_uint_eq(session_counters->in_doubt, 0);
}
END_TEST

START_TEST(a_receiver_that_is_lost_during_the_judgement_has_nothing_of_the_message)
{
	message_is_judged();
	receiver_closes(0);
	sender_hears(0, "421 4.4.2 ");
	sender_hears_end(0);
	ck_assert_uint_eq(session_counters->in_doubt, 0);
	ck_assert_uint_eq(session_counters->aborted, 1);
	ck_assert_uint_eq(home.held.used, 0);
}
END_TEST

START_TEST(a_receiver_that_is_lost_behind_the_message_leaves_doubt)
{
	message_is_agreed();
	receiver_says(0, "354 go\r\n");
	for (unsigned i = 0; i < 5; i++)
		receiver_hears(0, NULL);
	ck_assert_str_eq(heard, ".\r\n");
	receiver_closes(0);
	sender_hears(0, "421 4.4.2 ");
	ck_assert_uint_eq(session_counters->in_doubt, 1);
}
END_TEST

START_TEST(the_loss_of_the_sender_during_the_judgement_is_the_end_of_its_message)
{
	message_is_judged();
	sender_resets(0);
	ck_assert_int_eq(receiver_hears_end(0), -1);
	ck_assert_str_eq(heard, "");
	is_over();
	ck_assert_int_le(read_to_end(peer_fd(0)), 0);
	ck_assert_uint_eq(session_counters->aborted, 1);
}
END_TEST

START_TEST(a_message_that_the_receiver_has_is_decided_without_its_sender)
{
	message_is_agreed();
	receiver_says(0, "354 go\r\n");
	for (unsigned i = 0; i < 5; i++)
		receiver_hears(0, NULL);
	sender_resets(0);
	wait_until(session_of(0)->state == SESSION_ALONE);
	receiver_says(0, "250 taken\r\n");
	is_over();
	ck_assert_uint_eq(session_counters->decided_alone, 1);
}
END_TEST

START_TEST(a_milter_that_fails_at_the_message_puts_it_off)
{
	message_is_judged();
	peer_close(0);
	sender_hears(0, "451 4.3.0 A filter does not answer");
	receiver_hears_nothing(0);
	ck_assert_int_eq(session_of(0)->state, SESSION_TALKS);
}
END_TEST

/* Room */

static void sends_much(size_t len)
{
	static char text[4096];

	memset(text, 'x', sizeof text - 1);
	memcpy(text + sizeof text - 3, "\r\n", 3);
	for (size_t sent = 0; sent < len; sent += sizeof text - 1)
		sender_says(0, text);
	sender_says(0, ".\r\n");
}

START_TEST(a_message_for_which_there_is_no_room_is_put_off)
{
	body_room_begin(&home.held, 65536, NULL, NULL);
	data_is_taken();
	sends_much(100000);
	sender_hears(0, "452 4.3.1 No memory for the message");
	receiver_hears_nothing(0);
	ck_assert_uint_eq(home.held.used, 0);
}
END_TEST

START_TEST(a_message_above_the_limit_is_refused_for_good)
{
	session_conf->limits.held_message = 50000;
	data_is_taken();
	sends_much(100000);
	sender_hears(0, "552 5.3.4 Message is too big");
	receiver_hears_nothing(0);
	ck_assert_uint_eq(home.held.used, 0);
}
END_TEST

START_TEST(the_limit_is_offered_as_size_and_chunks_are_not_offered)
{
	session_conf->limits.held_message = 50000;
	greets();
	ck_assert_str_eq(heard, "250-mx.example\r\n250-PIPELINING\r\n250 SIZE 50000\r\n");
	sender_says(0, "MAIL FROM:<s@a.example> SIZE=50001\r\n");
	sender_hears(0, "552 5.3.4 ");
	ck_assert_int_eq(peer_is_connected(0), 0);
}
END_TEST

/* Stops */

START_TEST(a_stop_waits_for_the_verdict_about_mail)
{
	greets();
	sender_says(0, MAIL);
	milter_comes();
	session_drain(session_of(0));
	sender_hears_nothing(0);
	agrees();
	sender_hears(0, "421 4.3.2 ");
	sender_hears_end(0);
	receiver_hears_nothing(0);
}
END_TEST

START_TEST(a_stop_that_cannot_wait_ends_a_message_that_is_judged)
{
	message_is_judged();
	session_cut_open(session_of(0));
	sender_hears(0, "421 4.3.2 ");
	ck_assert_int_eq(receiver_hears_end(0), -1);
	ck_assert_uint_eq(session_counters->in_doubt, 0);
}
END_TEST

UNIT(session_held)
{
	const TTest *const facts[] = {
		the_receiver_hears_no_command_before_the_milter_has_agreed,
		a_refused_sender_is_not_shown_to_the_receiver,
		a_refused_recipient_leaves_the_transaction_open,
		data_without_a_recipient_is_refused_here,
		a_message_goes_on_as_the_milter_has_changed_it,
		a_refused_message_does_not_go_to_the_receiver,
		a_discarded_message_is_taken_and_goes_to_nobody,
		mail_that_is_discarded_at_a_command_is_taken_and_goes_to_nobody,
		a_receiver_that_refuses_data_refuses_the_message,
		a_receiver_that_takes_the_message_before_it_comes_has_broken_the_protocol,
		a_receiver_that_is_lost_during_the_judgement_has_nothing_of_the_message,
		a_receiver_that_is_lost_behind_the_message_leaves_doubt,
		the_loss_of_the_sender_during_the_judgement_is_the_end_of_its_message,
		a_message_that_the_receiver_has_is_decided_without_its_sender,
		a_milter_that_fails_at_the_message_puts_it_off,
		a_message_for_which_there_is_no_room_is_put_off,
		a_message_above_the_limit_is_refused_for_good,
		the_limit_is_offered_as_size_and_chunks_are_not_offered,
		a_stop_waits_for_the_verdict_about_mail,
		a_stop_that_cannot_wait_ends_a_message_that_is_judged,
	};
	TCase *all = tcase_create("session_held");

	tcase_add_checked_fixture(all, sessions_setup, sessions_teardown);
	return suite_run_case("session_held", all, facts, FACTS_LEN(facts));
}
