/* test_session_commands.c: facts of a sender's commands: what is answered here, what goes to the receiver, and in which
 * order. */
#include <stdio.h>
#include <string.h>

#include "session_peers.h"
#include "tests/unit/unit.h"

#define PIPELINING "250 PIPELINING\r\n"
#define MAIL       "MAIL FROM:<s@a.example>\r\n"
#define RCPT       "RCPT TO:<r@b.example>\r\n"

struct dialogue {
	const char *command, *reply;
};

static void talk(const struct dialogue *rows, size_t count)
{
	char command[128];

	for (size_t i = 0; i < count; i++) {
		snprintf(command, sizeof command, "%s\r\n", rows[i].command);
		sender_says(0, command);
		sender_hears(0, rows[i].reply);
	}
}

/* The sender has its own connection to the receiver next. */
static void greets_with(const char *offers)
{
	sender_comes(0, DOOR_RELAYS);
	sender_greets(0, offers);
}

static void asks(unsigned receiver, const char *command, const char *answer)
{
	sender_says(0, command);
	receiver_hears(receiver, command);
	receiver_says(receiver, answer);
	sender_hears(0, answer);
}

/* Answered here */

START_TEST(without_a_greeting_no_transaction_begins)
{
	static const struct dialogue rows[] = {
		{ "MAIL FROM:<s@a.example>", "503 5.5.1 Send EHLO first" },
		{ "RCPT TO:<r@b.example>", "503 " },
		{ "DATA", "503 " },
		{ "EHLO", "501 " },
		{ "RSET", "250 2.0.0 " },
		{ "NOOP", "250 2.0.0 " },
	};

	sender_comes(0, DOOR_RELAYS);
	talk(rows, FACTS_LEN(rows));
	ck_assert_int_eq(receiver_is_asked(), 0);
}
END_TEST

START_TEST(commands_outside_of_transactions_are_answered_here)
{
	static const struct dialogue rows[] = {
		{ "NOOP", "250 2.0.0 " },
		{ "HELP", "214 " },
		{ "VRFY r", "252 " },
		{ "EXPN list", "502 " },
		{ "STARTTLS", "502 " },
		{ "AUTH PLAIN AGEAYg==", "502 " },
		{ "ETRN b.example", "502 " },
		{ "XCLIENT ADDR=192.0.2.9", "550 " },
		{ "XFORWARD ADDR=192.0.2.9", "550 " },
		{ "BOGUS", "500 " },
		{ "RCPT TO:<r@b.example>", "503 " },
		{ "DATA", "503 " },
	};

	greets_with(PIPELINING);
	talk(rows, FACTS_LEN(rows));
	receiver_hears_nothing(0);
}
END_TEST

START_TEST(a_foreign_protocol_ends_at_once)
{
	sender_comes(0, DOOR_RELAYS);
	sender_says(0, "POST / HTTP/1.1\r\nHost: x\r\n\r\n");
	sender_hears(0, "421 4.7.0 This is a mail server");
	sender_hears_end(0);
}
END_TEST

START_TEST(helo_does_not_wait_for_the_receiver)
{
	sender_comes(0, DOOR_RELAYS);
	sender_says(0, "HELO sender.example\r\n");
	sender_hears(0, "250 mx.example\r\n");
	ck_assert_int_eq(receiver_is_asked(), 0);
}
END_TEST

START_TEST(a_sender_hears_only_of_extensions_that_it_can_use_here)
{
	greets_with("250-SIZE 1000\r\n250-STARTTLS\r\n250-AUTH PLAIN\r\n250-REQUIRETLS\r\n250-XCLIENT NAME\r\n"
		    "250-PRDR\r\n250-VRFY\r\n250-XNEW\r\n250-8BITMIME\r\n250 PIPELINING\r\n");
	ck_assert_str_eq(heard, "250-mx.example\r\n250-SIZE 1000\r\n250-8BITMIME\r\n250 PIPELINING\r\n");
}
END_TEST

START_TEST(a_second_greeting_is_answered_from_memory)
{
	greets_with(PIPELINING);
	sender_says(0, "EHLO other.example\r\n");
	sender_hears(0, "250-mx.example\r\n250 PIPELINING\r\n");
	ck_assert_int_eq(receiver_is_asked(), 0);
	receiver_hears_nothing(0);
}
END_TEST

START_TEST(too_many_errors_end_the_session)
{
	session_conf->limits.errors = 3;
	sender_comes(0, DOOR_RELAYS);
	for (unsigned i = 0; i < 3; i++) {
		sender_says(0, "BOGUS\r\n");
		sender_hears(0, "500 ");
	}
	sender_says(0, "BOGUS\r\n");
	sender_hears(0, "421 4.7.0 Too many errors");
	sender_hears_end(0);
}
END_TEST

START_TEST(a_message_that_is_taken_settles_the_errors_before)
{
	session_conf->limits.errors = 3;
	greets_with(PIPELINING);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 3; i++) {
			sender_says(0, "BOGUS\r\n");
			sender_hears(0, "500 ");
		}
		if (round == 0) {
			sender_begins_message(0, 0);
			sender_says(0, ".\r\n");
			receiver_hears(0, ".\r\n");
			receiver_says(0, "250 taken\r\n");
			sender_hears(0, "250 taken\r\n");
		}
	}
	sender_says(0, "BOGUS\r\n");
	sender_hears(0, "421 4.7.0 Too many errors");
}
END_TEST

START_TEST(a_line_that_is_too_long_is_no_command)
{
	char line[3000];

	sender_comes(0, DOOR_RELAYS);
	memset(line, 'x', sizeof line);
	memcpy(line, "NOOP ", 5);
	memcpy(line + sizeof line - 3, "\r\n", 3);
	sender_says(0, line);
	sender_hears(0, "500 5.5.2 Line is too long");
	sender_says(0, "NOOP\r\n");
	sender_hears(0, "250 ");
}
END_TEST

START_TEST(parameters_that_cannot_be_kept_are_refused)
{
	static const struct dialogue rows[] = {
		{ "MAIL FROM:<s@a.example> REQUIRETLS", "530 5.7.30 " },
		{ "MAIL FROM:<s@a.example> PRDR", "555 5.5.4 " },
		{ "MAIL FROM:<s@a.example> XCSSLTX", "501 5.5.4 " },
		{ "MAIL FROM:<s@a.example> XCSSLTX=1 XCSSLTX=2", "501 5.5.4 " },
	};

	greets_with(PIPELINING);
	talk(rows, FACTS_LEN(rows));
	receiver_hears_nothing(0);
}
END_TEST

/* To the receiver */

START_TEST(commands_and_replies_of_a_transaction_pass_unchanged)
{
	greets_with("250-SIZE\r\n250-DSN\r\n250 PIPELINING\r\n");
	asks(0, "mail from:<S@a.example>  SIZE=10 RET=HDRS XFOO=1\r\n", "250-2.1.0 a\r\n250 2.1.0 b\r\n");
	asks(0, "RCPT TO:<@x,@y:r@b.example> NOTIFY=NEVER\r\n", "251 2.1.5 elsewhere\r\n");
	asks(0, "RCPT TO:<q@b.example>\r\n", "550-5.1.1 who\r\n550 5.1.1 is that\r\n");
	asks(0, "DATA\r\n", "354 go\r\n");
	sender_says(0, "A: 1\r\n\r\n..\r\n.x\r\n.\r\n");
	for (unsigned i = 0; i < 5; i++)
		receiver_hears(0, NULL);
	ck_assert_str_eq(heard, ".\r\n");
	receiver_says(0, "250 2.0.0 taken as 7\r\n");
	sender_hears(0, "250 2.0.0 taken as 7\r\n");
	ck_assert_uint_eq(session_counters->accepted, 1);
	ck_assert_uint_eq(session_counters->bytes, 19);
}
END_TEST

START_TEST(content_passes_byte_by_byte)
{
	static const char content[] = "A: 1\r\n\r\n..\r\n.x\r\n", end[] = ".\r\n";
	char got[sizeof content - 1];

	greets_with(PIPELINING);
	sender_begins_message(0, 0);
	for (size_t i = 0; i < sizeof content - 1; i++) {
		write_all(sender_fd(0), content + i, 1);
		turns(1);
	}
	for (size_t i = 0, len; i < sizeof got; i += len) {
		receiver_hears(0, NULL);
		len = strlen(heard);
		memcpy(got + i, heard, len);
	}
	ck_assert_mem_eq(got, content, sizeof got);
	sender_says(0, end);
	receiver_hears(0, end);
}
END_TEST

START_TEST(a_refused_mail_is_no_transaction)
{
	greets_with(PIPELINING);
	asks(0, MAIL, "550 5.7.1 not you\r\n");
	sender_says(0, "DATA\r\n");
	sender_hears(0, "503 ");
	receiver_hears_nothing(0);
	asks(0, MAIL, "250 2.1.0 now\r\n");
}
END_TEST

START_TEST(a_receiver_without_pipelining_gets_one_command_at_a_time)
{
	greets_with("250 SIZE\r\n");
	sender_says(0, MAIL RCPT "DATA\r\n");
	receiver_hears(0, MAIL);
	receiver_hears_nothing(0);
	receiver_says(0, "250 ok\r\n");
	receiver_hears(0, RCPT);
	receiver_hears_nothing(0);
	receiver_says(0, "250 ok\r\n");
	receiver_hears(0, "DATA\r\n");
}
END_TEST

START_TEST(replies_of_ours_keep_their_place_among_the_receivers)
{
	greets_with(PIPELINING);
	sender_says(0, MAIL "VRFY x\r\n" RCPT "NOOP\r\n");
	receiver_hears(0, MAIL);
	receiver_hears(0, RCPT);
	sender_hears_nothing(0);
	receiver_says(0, "250 2.1.0 first\r\n250 2.1.5 third\r\n");
	sender_hears(0, "250 2.1.0 first");
	sender_hears(0, "252 ");
	sender_hears(0, "250 2.1.5 third");
	sender_hears(0, "250 2.0.0 Ok");
}
END_TEST

START_TEST(rset_ends_a_transaction_and_a_greeting_does_so_too)
{
	static const char *const ends[] = { "RSET\r\n", "EHLO sender.example\r\n" };

	greets_with(PIPELINING);
	for (size_t i = 0; i < FACTS_LEN(ends); i++) {
		asks(0, MAIL, "250 ok\r\n");
		sender_says(0, ends[i]);
		receiver_hears(0, ends[i]);
		receiver_says(0, i == 0 ? "250 reset\r\n" : "250-receiver.example\r\n250 PIPELINING\r\n");
		sender_hears(0, i == 0 ? "250 reset\r\n" : "250-mx.example\r\n250 PIPELINING\r\n");
		sender_says(0, "DATA\r\n");
		sender_hears(0, "503 ");
	}
}
END_TEST

START_TEST(chunks_that_were_not_offered_are_not_passed)
{
	greets_with(PIPELINING);
	asks(0, MAIL, "250 ok\r\n");
	asks(0, RCPT, "250 ok\r\n");
	sender_says(0, "BDAT 4 LAST\r\nabcd");
	sender_hears(0, "502 ");
	receiver_hears_nothing(0);
}
END_TEST

/* Messages that are stopped */

START_TEST(a_message_with_a_line_end_that_could_hide_another_is_stopped)
{
	static const char *const contents[] = { "a\r\n.\n", "a\n.\r\n", "a\n.\n", "a\r.\r\n" };

	for (unsigned i = 0; i < 4; i++) {
		sender_comes(i, DOOR_RELAYS);
		sender_says(i, "EHLO sender.example\r\n");
		if (i == 0)
			receiver_greets(0, PIPELINING);
		sender_hears(i, "250-");
		sender_says(i, MAIL);
		if (i > 0)
			receiver_greets(i, PIPELINING);
		receiver_hears(i, MAIL);
		receiver_says(i, "250 ok\r\n");
		sender_hears(i, "250 ok\r\n");
		sender_says(i, RCPT "DATA\r\n");
		receiver_says(i, "250 ok\r\n354 go\r\n");
		sender_hears(i, "250 ok\r\n");
		sender_hears(i, "354 go\r\n");
		sender_says(i, contents[i]);
		sender_says(i, "MAIL FROM:<hidden@a.example>\r\n");
		sender_hears(i, "550 5.6.0 ");
		sender_hears_end(i);
		ck_assert_int_eq(receiver_hears_end(i), -1);
		ck_assert_ptr_null(strstr(heard, "hidden"));
		sender_closes(i);
		receiver_closes(i);
	}
	ck_assert_uint_eq(session_counters->smuggling, 4);
}
END_TEST

START_TEST(a_message_that_goes_in_a_circle_is_stopped)
{
	session_conf->limits.hops = 3;
	greets_with(PIPELINING);
	sender_begins_message(0, 0);
	for (unsigned i = 0; i < 3; i++)
		sender_says(0, "Received: from x\r\n");
	sender_hears_nothing(0);
	sender_says(0, "Received: from x\r\n\r\n.\r\n");
	sender_hears(0, "554 5.4.6 Mail loops");
	ck_assert_int_eq(receiver_hears_end(0), -1);
	ck_assert_ptr_null(strstr(heard, "\r\n.\r\n"));
	ck_assert_uint_eq(session_counters->loops, 1);
}
END_TEST

UNIT(session_commands)
{
	const TTest *const facts[] = {
		without_a_greeting_no_transaction_begins,
		commands_outside_of_transactions_are_answered_here,
		a_foreign_protocol_ends_at_once,
		helo_does_not_wait_for_the_receiver,
		a_sender_hears_only_of_extensions_that_it_can_use_here,
		a_second_greeting_is_answered_from_memory,
		too_many_errors_end_the_session,
		a_message_that_is_taken_settles_the_errors_before,
		a_line_that_is_too_long_is_no_command,
		parameters_that_cannot_be_kept_are_refused,
		commands_and_replies_of_a_transaction_pass_unchanged,
		content_passes_byte_by_byte,
		a_refused_mail_is_no_transaction,
		a_receiver_without_pipelining_gets_one_command_at_a_time,
		replies_of_ours_keep_their_place_among_the_receivers,
		rset_ends_a_transaction_and_a_greeting_does_so_too,
		chunks_that_were_not_offered_are_not_passed,
		a_message_with_a_line_end_that_could_hide_another_is_stopped,
		a_message_that_goes_in_a_circle_is_stopped,
	};
	TCase *all = tcase_create("session_commands");

	tcase_add_checked_fixture(all, sessions_setup, sessions_teardown);
	return suite_run_case("session_commands", all, facts, FACTS_LEN(facts));
}
