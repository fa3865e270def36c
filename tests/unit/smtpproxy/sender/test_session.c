/* test_session.c: facts of a sender's connection: how it begins, its limits, and all ways in which it ends. */
#include "smtpproxy/sender/session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "session_peers.h"
#include "smtpproxy/policy/destination_rules.h"
#include "tests/unit/unit.h"

#define OFFERS "250-PIPELINING\r\n250 ENHANCEDSTATUSCODES\r\n"

static void is_over(unsigned n)
{
	wait_until(!session_of(n));
	ck_assert_uint_eq(home.count, 0);
	ck_assert_uint_eq(admission_total(home.admission), 0);
}

/* The deadline of sender @n is due now. */
static void is_late(unsigned n)
{
	struct session *s = session_of(n);

	ck_assert_int_eq(deadline_is_set(&s->deadline), 1);
	deadline_set(w, &s->deadline, 1);
}

static void deadline_is_in(unsigned n, uint64_t ms)
{
	struct session *s = session_of(n);

	ck_assert_int_eq(deadline_is_set(&s->deadline), 1);
	ck_assert_uint_le(s->deadline.at_ms, worker_now_ms(w) + ms + 10);
	ck_assert_uint_ge(s->deadline.at_ms + 2000, worker_now_ms(w) + ms);
}

static void comes_and_begins_message(void)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, OFFERS);
	sender_begins_message(0, 0);
}

/* The whole message is at the receiver, which has not replied. */
static void comes_and_sends_message(void)
{
	comes_and_begins_message();
	sender_says(0, "A: 1\r\n\r\nbody\r\n.\r\n");
	for (unsigned i = 0; i < 4; i++)
		receiver_hears(0, NULL);
	ck_assert_str_eq(heard, ".\r\n");
}

/* The beginning */

START_TEST(the_banner_comes_behind_the_header_only)
{
	static const char header[] = "PROXY TCP4 192.0.2.1 198.51.100.25 1234 25\r\n";

	sender_connects(0, DOOR_RELAYS);
	sender_hears_nothing(0);
	for (size_t i = 0; i < sizeof header - 1; i++) {
		write_all(sender_fd(0), header + i, 1);
		turns(2);
		ck_assert_int_eq(session_of(0)->state, i < sizeof header - 2 ? SESSION_HEADER : SESSION_TALKS);
	}
	sender_hears(0, "220 mx.example ESMTP\r\n");
}
END_TEST

START_TEST(who_is_not_trusted_or_sends_no_header_gets_no_word)
{
	sender_connects(0, DOOR_RELAYS);
	sender_says(0, "EHLO sender.example\r\n");
	ck_assert_int_le(read_to_end(sender_fd(0)), 0);
	is_over(0);
	session_conf->listeners[DOOR_RELAYS].trusted_count = 0;
	sender_connects(1, DOOR_RELAYS);
	ck_assert_int_eq(session_of(1)->state, SESSION_OVER);
	is_over(1);
	ck_assert_uint_eq(session_counters->not_captured, 2);
}
END_TEST

START_TEST(who_sends_no_header_in_time_is_closed_without_a_word)
{
	sender_connects(0, DOOR_RELAYS);
	sender_says(0, "PROXY TCP4 ");
	turns(3);
	deadline_is_in(0, 5000);
	is_late(0);
	sender_hears_end(0);
	is_over(0);
}
END_TEST

START_TEST(a_destination_that_is_not_allowed_is_refused)
{
	static const char *const headers[] = {
		"PROXY TCP4 192.0.2.1 127.0.0.1 1234 3\r\n",  /* our own listener */
		"PROXY TCP4 192.0.2.1 0.0.0.0 1234 25\r\n",   /* nobody */
		"PROXY TCP4 192.0.2.1 224.0.0.1 1234 25\r\n", /* not one host */
		"PROXY UNKNOWN\r\n",                          /* the header names none */
	};

	for (unsigned i = 0; i < FACTS_LEN(headers); i++) {
		sender_connects(i, DOOR_CHOOSES);
		sender_says(i, headers[i]);
		sender_hears(i, "421 4.3.5 ");
		sender_hears_end(i);
		is_over(i);
	}
	ck_assert_uint_eq(session_counters->not_captured, FACTS_LEN(headers));
	ck_assert_uint_eq(session_counters->loops, 1);
	ck_assert_int_eq(receiver_is_asked(), 0);
}
END_TEST

START_TEST(who_was_not_captured_is_refused_also_where_all_mail_goes_to_one_receiver)
{
	session_conf->listeners[DOOR_RELAYS].capture = CAPTURE_REDIRECT;
	sender_connects(0, DOOR_RELAYS);
	sender_hears(0, "421 4.3.5 ");
	sender_hears_end(0);
	is_over(0);
	ck_assert_uint_eq(session_counters->not_captured, 1);
	ck_assert_int_eq(receiver_is_asked(), 0);
}
END_TEST

START_TEST(the_clients_are_those_that_the_header_names)
{
	struct address_net clients[2];

	ck_assert_int_eq(address_net_parse("192.0.2.0/24", &clients[0]), 0);
	ck_assert_int_eq(address_net_parse("127.0.0.0/8", &clients[1]), 0);
	session_conf->listeners[DOOR_RELAYS].clients = clients;
	session_conf->listeners[DOOR_RELAYS].client_count = 2;
	sender_comes_from(0, DOOR_RELAYS, "192.0.2.1");
	ck_assert_int_eq(session_of(0)->sends_as, RECIPIENT_OF_CLIENT);
	sender_comes_from(1, DOOR_RELAYS, "198.51.100.1");
	ck_assert_int_eq(session_of(1)->sends_as, RECIPIENT_OF_STRANGER);
	sender_connects(2, DOOR_RELAYS); /* the cluster's own address is none of theirs */
	sender_says(2, "PROXY UNKNOWN\r\n");
	sender_hears(2, "220 ");
	ck_assert_int_eq(session_of(2)->sends_as, RECIPIENT_OF_STRANGER);
	session_conf->listeners[DOOR_RELAYS].clients = NULL;
	session_conf->listeners[DOOR_RELAYS].client_count = 0;
}
END_TEST

START_TEST(one_source_cannot_have_all_places)
{
	for (unsigned i = 0; i < 3; i++)
		sender_comes_from(i, DOOR_RELAYS, "192.0.2.1");
	sender_connects(3, DOOR_RELAYS);
	sender_says(3, "PROXY TCP4 192.0.2.1 198.51.100.25 1234 25\r\n");
	sender_hears(3, "421 4.7.0 Too many connections\r\n");
	wait_until(!session_of(3));
	ck_assert_uint_eq(session_counters->sessions_refused, 1);
	sender_closes(3);
	sender_comes_from(3, DOOR_RELAYS, "192.0.2.2");
	sender_closes(0);
	wait_until(!session_of(0));
	sender_comes_from(0, DOOR_RELAYS, "192.0.2.1");
}
END_TEST

START_TEST(a_full_proxy_refuses_in_words)
{
	admission_set_limits(home.admission, 1, 1);
	sender_comes(0, DOOR_RELAYS);
	sender_connects(1, DOOR_RELAYS);
	sender_hears(1, "421 4.7.0 Too many connections\r\n");
	sender_hears_end(1);
	ck_assert_uint_eq(home.count, 1);
	sender_closes(0);
	is_over(0);
	sender_comes(0, DOOR_RELAYS);
}
END_TEST

/* Its ends */

START_TEST(quit_gets_its_reply_and_then_fin)
{
	sender_comes(0, DOOR_RELAYS);
	sender_says(0, "QUIT\r\nNOOP\r\n");
	sender_hears(0, "221 2.0.0 ");
	sender_hears_end(0);
	ck_assert_int_eq(session_of(0)->state, SESSION_LEAVES);
	sender_closes(0);
	is_over(0);
}
END_TEST

START_TEST(a_sender_that_does_not_end_after_our_last_word_is_cut)
{
	sender_comes(0, DOOR_RELAYS);
	sender_says(0, "QUIT\r\n");
	sender_hears(0, "221 ");
	deadline_is_in(0, 5000);
	is_late(0);
	is_over(0);
}
END_TEST

START_TEST(fin_behind_commands_leaves_them_their_replies)
{
	sender_comes(0, DOOR_RELAYS);
	sender_says(0, "NOOP\r\nEHLO sender.example\r\nVRFY x\r\n");
	shutdown(sender_fd(0), SHUT_WR);
	sender_hears(0, "250 2.0.0 ");
	receiver_greets(0, OFFERS);
	sender_hears(0, "250-mx.example");
	sender_hears(0, "252 ");
	sender_hears_end(0);
	is_over(0);
}
END_TEST

START_TEST(fin_in_the_middle_of_a_command_is_the_end)
{
	sender_comes(0, DOOR_RELAYS);
	sender_says(0, "NOOP\r\nNOO");
	shutdown(sender_fd(0), SHUT_WR);
	sender_hears(0, "250 ");
	sender_hears_end(0);
	is_over(0);
}
END_TEST

START_TEST(a_silent_sender_is_told_that_its_time_is_over)
{
	sender_comes(0, DOOR_RELAYS);
	deadline_is_in(0, session_conf->limits.sender_ms);
	is_late(0);
	sender_hears(0, "421 4.4.2 Timed out\r\n");
	sender_hears_end(0);
}
END_TEST

START_TEST(a_sender_that_is_silent_within_its_message_ends_without_it)
{
	session_conf->limits.sender_ms = 400; /* a busy machine gets to the message in less */
	session_conf->limits.lease_ms = 1000;
	comes_and_begins_message();
	sender_says(0, "A: 1\r\n");
	receiver_hears(0, "A: 1\r\n");
	sender_hears(0, "421 4.4.2 Timed out\r\n");
	ck_assert_int_eq(receiver_hears_end(0), -1);
	ck_assert_str_eq(heard, "");
}
END_TEST

START_TEST(the_loss_of_a_sender_within_its_message_is_no_end_of_the_message)
{
	for (unsigned how = 0; how < 2; how++) {
		sender_comes(0, DOOR_RELAYS);
		sender_greets(0, how == 0 ? OFFERS : NULL);
		if (how > 0)
			sender_says(0, "MAIL FROM:<s@a.example>\r\n");
		if (how > 0)
			receiver_greets(how, OFFERS);
		if (how > 0)
			receiver_hears(how, "MAIL FROM:<s@a.example>\r\n");
		else
			sender_begins_message(0, 0);
		if (how == 0)
			sender_says(0, "A: 1\r\n\r\nbody\r\n");
		turns(5);
		if (how == 0)
			sender_closes(0);
		else
			sender_resets(0);
		ck_assert_int_eq(receiver_hears_end(how), -1);
		ck_assert_ptr_null(strstr(heard, "\r\n.\r\n"));
		is_over(0);
		ck_assert_uint_eq(session_counters->aborted, how + 1);
	}
}
END_TEST

START_TEST(a_message_that_the_receiver_has_is_decided_without_its_sender)
{
	comes_and_sends_message();
	sender_resets(0);
	wait_until(session_of(0)->state == SESSION_ALONE);
	receiver_says(0, "250 2.0.0 taken\r\n");
	is_over(0);
	ck_assert_uint_eq(session_counters->accepted, 1);
	ck_assert_uint_eq(session_counters->decided_alone, 1);
	ck_assert_uint_eq(session_counters->aborted, 0);
}
END_TEST

START_TEST(the_loss_of_a_receiver_that_has_the_message_is_no_answer)
{
	comes_and_sends_message();
	receiver_closes(0);
	sender_hears(0, "421 4.4.2 The mail server behind was lost");
	sender_hears_end(0);
	ck_assert_uint_eq(session_counters->in_doubt, 1);
	ck_assert_uint_eq(session_counters->accepted, 0);
}
END_TEST

/* The process stops */

START_TEST(a_stop_ends_sessions_between_transactions)
{
	sender_comes(0, DOOR_RELAYS);
	sender_connects(1, DOOR_RELAYS);
	session_drain(session_of(0));
	session_drain(session_of(1));
	sender_hears(0, "421 4.3.2 Service is shutting down");
	sender_hears_end(0);
	sender_hears_end(1); /* its header has not come, so it gets no word */
}
END_TEST

START_TEST(a_stop_lets_a_transaction_end)
{
	comes_and_begins_message();
	session_drain(session_of(0));
	sender_hears_nothing(0);
	sender_says(0, "A: 1\r\n.\r\n");
	receiver_hears(0, "A: 1\r\n");
	receiver_hears(0, ".\r\n");
	receiver_says(0, "250 2.0.0 taken\r\n");
	sender_hears(0, "250 2.0.0 taken\r\n");
	sender_hears(0, "421 4.3.2 ");
	sender_hears_end(0);
	ck_assert_uint_eq(session_counters->accepted, 1);
}
END_TEST

START_TEST(a_stop_that_cannot_wait_cuts_open_messages_only)
{
	comes_and_sends_message();
	sender_comes(1, DOOR_RELAYS);
	sender_says(1, "EHLO sender.example\r\n");
	sender_hears(1, "250-");
	sender_says(1, "MAIL FROM:<s@a.example>\r\n");
	receiver_greets(1, OFFERS);
	receiver_hears(1, "MAIL FROM:<s@a.example>\r\n");
	session_cut_open(session_of(0));
	session_cut_open(session_of(1));
	sender_hears(1, "421 4.3.2 Service is shutting down");
	ck_assert_int_eq(receiver_hears_end(1), -1);
	receiver_says(0, "250 2.0.0 taken\r\n");
	sender_hears(0, "250 2.0.0 taken\r\n");
}
END_TEST

START_TEST(the_last_step_of_a_stop_asks_the_sender_to_come_again)
{
	comes_and_sends_message();
	session_cut_decided(session_of(0));
	sender_hears(0, "421 4.3.2 Service is shutting down");
	sender_hears_end(0);
	ck_assert_uint_eq(session_counters->in_doubt, 1);
}
END_TEST

/* Memory */

static char noops[6 * 200000];

static void fill(void)
{
	for (size_t i = 0; i < sizeof noops; i += 6)
		memcpy(noops + i, "NOOP\r\n", 6);
}

static size_t send_all_that_is_taken(const char *bytes, size_t len)
{
	size_t sent = 0;
	ssize_t n;

	for (unsigned idle = 0; idle < 20 && sent < len; turn()) {
		n = write(sender_fd(0), bytes + sent, len - sent);
		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
	}
	return sent;
}

START_TEST(a_sender_that_does_not_read_its_replies_is_not_read)
{
	fill();
	sender_comes(0, DOOR_RELAYS);
	shrink_buffers(sender_fd(0));
	shrink_buffers(stream_fd(&session_of(0)->stream));
	ck_assert_uint_lt(send_all_that_is_taken(noops, sizeof noops), sizeof noops);
	ck_assert_uint_le(stream_pending(&session_of(0)->stream), 65536 + 100);
	ck_assert_uint_le(stream_kept(&session_of(0)->stream), 32768);
}
END_TEST

START_TEST(a_sender_that_waits_is_read_no_further_and_loses_nothing)
{
	static char all[1 << 20];
	size_t sent;

	fill();
	sender_comes(0, DOOR_RELAYS);
	sender_says(0, "EHLO sender.example\r\n");
	sent = send_all_that_is_taken(noops, 60000);
	turns(30);
	ck_assert_uint_le(stream_kept(&session_of(0)->stream), 8192 + 16384);
	receiver_greets(0, OFFERS);
	sender_hears(0, "250-mx.example");
	sent += send_all_that_is_taken(noops + sent, 60000 - sent);
	ck_assert_uint_eq(sent, 60000);
	read_exactly(sender_fd(0), all, 10000 * strlen("250 2.0.0 Ok\r\n"));
	sender_hears_nothing(0);
}
END_TEST

UNIT(session)
{
	const TTest *const facts[] = {
		the_banner_comes_behind_the_header_only,
		who_is_not_trusted_or_sends_no_header_gets_no_word,
		who_sends_no_header_in_time_is_closed_without_a_word,
		a_destination_that_is_not_allowed_is_refused,
		who_was_not_captured_is_refused_also_where_all_mail_goes_to_one_receiver,
		the_clients_are_those_that_the_header_names,
		one_source_cannot_have_all_places,
		a_full_proxy_refuses_in_words,
		quit_gets_its_reply_and_then_fin,
		a_sender_that_does_not_end_after_our_last_word_is_cut,
		fin_behind_commands_leaves_them_their_replies,
		fin_in_the_middle_of_a_command_is_the_end,
		a_silent_sender_is_told_that_its_time_is_over,
		a_sender_that_is_silent_within_its_message_ends_without_it,
		the_loss_of_a_sender_within_its_message_is_no_end_of_the_message,
		a_message_that_the_receiver_has_is_decided_without_its_sender,
		the_loss_of_a_receiver_that_has_the_message_is_no_answer,
		a_stop_ends_sessions_between_transactions,
		a_stop_lets_a_transaction_end,
		a_stop_that_cannot_wait_cuts_open_messages_only,
		the_last_step_of_a_stop_asks_the_sender_to_come_again,
		a_sender_that_does_not_read_its_replies_is_not_read,
		a_sender_that_waits_is_read_no_further_and_loses_nothing,
	};
	TCase *all = tcase_create("session");

	tcase_add_checked_fixture(all, sessions_setup, sessions_teardown);
	return suite_run_case("session", all, facts, FACTS_LEN(facts));
}
