/* test_relay.c: facts of the relay between a client and a server: the bytes that each of them gets. Every session is
 * sent at once and byte by byte. */
#include "tests/unit/smtp/relay_talk.h"
#include "tests/unit/unit.h"

static int name(void *ctx, size_t at, struct smtp_tx_name *out)
{
	*out = (struct smtp_tx_name){ .id = "0a1b", .number = 6 + at };
	return 1;
}

static const struct smtp_relay_ops naming = { .to_client = to_client, .to_server = to_server, .name = name };

START_TEST(the_banner_of_the_server_is_swallowed_or_renamed)
{
	begin(SMTP_BANNER_SWALLOWED, NULL);
	server_says("220-backend ESMTP\r\n220 hello\r\n");
	client_heard("");
	begin(SMTP_BANNER_RENAMED, NULL);
	server_says("220 backend ESMTP Postfix\r\n");
	client_heard("220 mx.example ESMTP Postfix\r\n");
	begin(SMTP_BANNER_RENAMED, NULL);
	server_says("220 backend\r\n");
	client_heard("220 mx.example\r\n");
}
END_TEST

START_TEST(nothing_of_the_client_goes_before_the_banner)
{
	begin(SMTP_BANNER_SWALLOWED, NULL);
	ck_assert_uint_eq(smtp_relay_client(&s.relay, "NOOP\r\n", 6), 0);
	server_heard("");
}
END_TEST

START_TEST(a_repeated_greeting_is_not_answered_to_the_client)
{
	begin(SMTP_BANNER_SWALLOWED, "EHLO client.example\r\n");
	server_says("220 backend\r\n");
	server_heard("EHLO client.example\r\n");
	ck_assert_uint_eq(smtp_relay_client(&s.relay, "NOOP\r\n", 6), 0);
	server_says("250-backend\r\n250 SIZE 1000\r\n");
	client_heard("");
	client_says("MAIL FROM:<a@x.example>\r\n");
	server_heard("MAIL FROM:<a@x.example>\r\n");
	server_says("250 ok\r\n");
	client_heard("250 ok\r\n");
}
END_TEST

/* The client sends a group at once, as far as the relay uses it. */
static void client_sends_a_group(
	enum smtp_relay_greeted by, const char *greeting, const char *offers, size_t used_at_once)
{
	static const char group[] = "MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\n";

	begin(SMTP_BANNER_SWALLOWED, greeting);
	rules.greeted = by;
	server_says("220 b\r\n");
	server_says(offers);
	const size_t used = smtp_relay_client(&s.relay, group, sizeof group - 1);
	ck_assert_uint_eq(used, used_at_once ? used_at_once : sizeof group - 1);
	server_says("250 m\r\n");
	client_says(group + used);
	server_says("250 r\r\n");
	client_heard("250 m\r\n250 r\r\n");
}

START_TEST(a_group_in_clear_goes_one_by_one_to_a_server_without_pipelining)
{
	enum { MAIL_LEN = sizeof "MAIL FROM:<a@x.example>\r\n" - 1 };

	client_sends_a_group(SMTP_GREETED_BY_US, "EHLO c\r\n", "250-b\r\n250 SIZE 9\r\n", MAIL_LEN);
	client_sends_a_group(SMTP_GREETED_BY_US, "HELO c\r\n", "250 b\r\n", MAIL_LEN);
	client_sends_a_group(SMTP_GREETED_BY_US, "EHLO c\r\n", "250-b\r\n250 PIPELINING\r\n", 0);
	client_sends_a_group(SMTP_GREETED_BY_SERVER, "EHLO c\r\n", "250-b\r\n250 SIZE 9\r\n", 0);
}
END_TEST

/* RFC 2920 3.1: a group may begin with the end of a mail. */
START_TEST(a_group_in_clear_behind_a_mail_waits_for_its_reply)
{
	static const char group[] = "hello\r\n.\r\nMAIL FROM:<b@x.example>\r\n", mail[] = "hello\r\n.\r\n";

	begin(SMTP_BANNER_SWALLOWED, "EHLO c\r\n");
	rules.greeted = SMTP_GREETED_BY_US;
	server_says("220 b\r\n250 b\r\n");
	client_says("MAIL FROM:<a@x.example>\r\n");
	server_says("250 m\r\n");
	client_says("RCPT TO:<b@x.example>\r\n");
	server_says("250 r\r\n");
	client_says("DATA\r\n");
	server_says("354 go\r\n");
	server_heard("EHLO c\r\nMAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
	ck_assert_uint_eq(smtp_relay_client(&s.relay, group, sizeof group - 1), sizeof mail - 1);
	server_heard(mail);
	server_says("250 queued\r\n");
	client_says(group + sizeof mail - 1);
	server_heard("MAIL FROM:<b@x.example>\r\n");
}
END_TEST

START_TEST(a_refused_greeting_that_the_client_takes_for_accepted_answers_its_mail)
{
	begin(SMTP_BANNER_SWALLOWED, "EHLO pc\r\n");
	rules.greeted = SMTP_GREETED_BY_US;
	server_says("220 b\r\n");
	server_heard("EHLO pc\r\n");
	server_says("501-not so\r\n501 5.5.2 no such host\r\n");
	client_heard("");
	client_says("MAIL FROM:<a@x.example>\r\nMAIL FROM:<b@x.example>\r\n");
	client_heard("501 5.5.2 no such host\r\n501 5.5.2 no such host\r\n");
	server_heard("");
	client_says("EHLO mypc\r\n");
	server_heard("EHLO mypc\r\n");
	server_says("250 b\r\n");
	client_heard("250 mx.example\r\n");
	client_says("MAIL FROM:<a@x.example>\r\n");
	server_heard("MAIL FROM:<a@x.example>\r\n");
}
END_TEST

START_TEST(a_greeting_that_is_refused_for_now_answers_a_mail_too)
{
	begin(SMTP_BANNER_SWALLOWED, "HELO c\r\n");
	rules.greeted = SMTP_GREETED_BY_US;
	server_says("220 b\r\n450 4.7.1 wait\r\n");
	client_says("MAIL FROM:<a@x.example>\r\n");
	client_heard("450 4.7.1 wait\r\n");
	begin(SMTP_BANNER_SWALLOWED, "HELO c\r\n");
	rules.greeted = SMTP_GREETED_BY_US;
	server_says("220 b\r\n421 4.3.2 closing\r\n");
	client_heard("421 4.4.1 The mail server behind does not answer, try again later\r\n");
}
END_TEST

/* RFC 5321 3.2. */
START_TEST(a_server_that_does_not_know_ehlo_is_greeted_by_helo)
{
	static const char *const unknown[] = { "500 5.5.1 what?\r\n", "502-no\r\n502 such command\r\n" };

	for (unsigned i = 0; i < 2; i++) {
		begin(SMTP_BANNER_SWALLOWED, "EHLO client.example\r\n");
		rules.greeted = SMTP_GREETED_BY_US;
		server_says("220 b\r\n");
		server_says(unknown[i]);
		server_heard("EHLO client.example\r\nHELO client.example\r\n");
		ck_assert_uint_eq(smtp_relay_client(&s.relay, "NOOP\r\n", 6), 0);
		server_says("250-b\r\n250 PIPELINING\r\n"); /* no offer: the reply to HELO has none */
		ck_assert_int_eq(s.relay.tx.rules.one_by_one, 1);
		client_heard("");
		client_says("MAIL FROM:<a@x.example>\r\n");
		server_heard("MAIL FROM:<a@x.example>\r\n");
	}
	begin(SMTP_BANNER_SWALLOWED, "EHLO client.example\r\n");
	rules.greeted = SMTP_GREETED_BY_US;
	server_says("220 b\r\n500 what?\r\n500 what now?\r\n");
	client_says("MAIL FROM:<a@x.example>\r\n");
	client_heard("500 what now?\r\n");
}
END_TEST

START_TEST(a_server_that_refuses_to_begin_is_out_of_reach)
{
	static const char *const banners[] = { "554 no\r\n", "421 later\r\n", "354 hello\r\n" };

	for (unsigned i = 0; i < 3; i++) {
		begin(SMTP_BANNER_SWALLOWED, NULL);
		server_says(banners[i]);
		client_heard("421 4.4.1 The mail server behind does not answer, try again later\r\n");
		ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
	}
	begin(SMTP_BANNER_SWALLOWED, "EHLO a\r\n");
	server_says("220 b\r\n502 what\r\n");
	client_heard("421 4.4.1 The mail server behind does not answer, try again later\r\n");
}
END_TEST

START_TEST(a_server_that_knows_its_client_and_refuses_it_is_quoted)
{
	static const struct {
		const char *banner, *told;
	} rows[] = {
		{ "554 5.7.1 blocked\r\n", "554 5.7.1 blocked\r\n" },
		{ "450 4.7.1 slowly\r\n", "450 4.7.1 slowly\r\n" },
		{ "554-a\r\n554 b\r\n", "554 b\r\n" },
		{ "220-teaser\r\n521 5.7.1 blocked\r\n", "521 5.7.1 blocked\r\n" },
		{ "421 later\r\n", "421 4.4.1 The mail server behind does not answer, try again later\r\n" },
		{ "220-teaser\r\n354 x\r\n", "421 4.4.1 The mail server behind does not answer, try again later\r\n" },
	};

	for (size_t i = 0; i < 2 * SUITE_LEN(rows); i++) {
		const size_t row = i / 2;
		begin(i % 2 ? SMTP_BANNER_RENAMED : SMTP_BANNER_SWALLOWED, i % 2 ? NULL : "EHLO a\r\n");
		rules.seen = SMTP_CLIENT_IS_SEEN;
		server_says(rows[row].banner);
		client_heard(rows[row].told);
		ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
		ck_assert_int_eq(s.relay.over_for == SMTP_OWN_RECEIVER_REFUSES, row < 4);
	}
}
END_TEST

START_TEST(the_reply_to_ehlo_has_our_name_and_not_what_is_hidden)
{
	opened();
	client_says("EHLO client.example\r\n");
	server_says("250-backend\r\n250-STARTTLS\r\n250-AUTH PLAIN\r\n250-SIZE 1000\r\n250 XCLIENT NAME\r\n");
	client_heard("250-mx.example\r\n250 SIZE 1000\r\n");
	ck_assert_int_eq(s.last, SMTP_WORDS_WHOLE);
	client_says("EHLO\r\n");
	client_heard("501 5.5.4 A host name or an address literal is needed\r\n");
}
END_TEST

START_TEST(a_forbidden_command_is_answered_in_its_turn)
{
	opened();
	client_says("NOOP\r\nXCLIENT NAME=x\r\nRSET\r\n");
	server_heard("NOOP\r\nRSET\r\n");
	client_heard("");
	server_says("250 noop\r\n");
	client_heard("250 noop\r\n550 5.7.0 Not authorized\r\n");
	ck_assert_int_eq(s.last, SMTP_WORDS_REPLY);
	server_says("250 rset\r\n");
	client_heard("250 rset\r\n");
	ck_assert_int_eq(s.last, SMTP_WORDS_WHOLE);
}
END_TEST

START_TEST(mail_goes_byte_for_byte)
{
	static const char content[] = "Subject: x\r\n\r\n..dot\r\nbare\nlf\r\n\xc3\xa4\r\n.\r\n";

	opened();
	client_says("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
	server_says("250 m\r\n250 r\r\n354 go\r\n");
	client_heard("250 m\r\n250 r\r\n354 go\r\n");
	server_heard("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
	client_says(content);
	server_heard(content);
	ck_assert(!smtp_tx_is_checkpoint(&s.relay.tx));
	server_says("250 queued\r\n");
	client_heard("250 queued\r\n");
	ck_assert(smtp_tx_is_checkpoint(&s.relay.tx));
}
END_TEST

START_TEST(commands_behind_data_wait_for_its_reply)
{
	opened();
	client_says("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
	ck_assert_uint_eq(smtp_relay_client(&s.relay, "NOOP\r\n", 6), 0);
	server_says("250 m\r\n550 r\r\n554 no\r\n");
	client_says("NOOP\r\n");
}
END_TEST

START_TEST(a_second_mail_is_not_smuggled)
{
	opened();
	client_says("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
	server_says("250 m\r\n250 r\r\n354 go\r\n");
	client_heard("250 m\r\n250 r\r\n354 go\r\n");
	smtp_relay_client(&s.relay, "x\n.\r\nMAIL FROM:<evil@x.example>\r\n", 33);
	client_heard("550 5.6.0 Message has line ends that are not allowed\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
	ck_assert_ptr_null(strstr(s.server, "evil"));
}
END_TEST

/* Cut anywhere: a careless server takes a lone dot for an end, and perhaps one without the end of its line. A mail with
 * such a dot is refused, so it never has one. An end that is none, and dots that were added, pass as they are. */
START_TEST(a_server_never_has_a_dot_that_may_be_refused)
{
	static const struct {
		const char *content, *heard;
	} rows[] = {
		{ "hi\n.\n.\r\n", "hi\n" },
		{ "hi\r\n.\rx\r\n.\r\n", "hi\r\n" },
		{ "hi\r.\r.\r\n", "hi\r" },
		{ ".\n", "" },
		{ "..\r\n.x\r\n.\r\n", "..\r\n.x\r\n.\r\n" },
		{ ".\r\n", ".\r\n" },
	};

	for (unsigned i = 0; i < SUITE_LEN(rows); i++) {
		opened();
		client_says("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
		server_says("250 m\r\n250 r\r\n354 go\r\n");
		server_heard("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
		for (const char *at = rows[i].content; *at && s.relay.state == SMTP_RELAY_OPEN; at++)
			ck_assert_uint_eq(smtp_relay_client(&s.relay, at, 1), 1);
		server_heard(rows[i].heard);
	}
}
END_TEST

/* As mail servers of the world write it: the first digit decides, and the client hears it once, as RFC 5321 has it. */
START_TEST(a_reply_is_understood_however_it_is_written)
{
	static const struct {
		const char *said, *heard;
	} rows[] = {
		{ "250 taken\n", "250 taken\r\n" },
		{ "250 taken\r\r\n", "250 taken\r\n" },
		{ "250 as\r1\r\n", "250 as?1\r\n" },
		{ "250OK\r\n", "250 OK\r\n" },
		{ "299 ok\r\n", "299 ok\r\n" },
		{ "250-taken\r\n251 passed on\r\n", "250-taken\r\n251 passed on\r\n" },
	};

	for (size_t i = 0; i < SUITE_LEN(rows); i++) {
		opened();
		client_says("EHLO a\r\n");
		server_says("250 b\n");
		client_says("MAIL FROM:<a@x.example>\r\nRCPT TO:<b@x.example>\r\nDATA\r\n");
		server_says("250 m\n250 r\n354 go\n");
		s.client_len = 0;
		client_says("x\r\n.\r\n");
		server_says(rows[i].said);
		client_heard(rows[i].heard);
		ck_assert_uint_eq(s.relay.tx.accepted, 1);
		ck_assert(smtp_tx_is_checkpoint(&s.relay.tx));
	}
}
END_TEST

START_TEST(a_line_that_is_too_long_is_cut)
{
	static char line[4096 + 1];

	memset(line, 'x', sizeof line - 1);
	opened();
	client_says("EHLO a\r\n");
	server_says("250-b\r\n250-XLONG ");
	server_says(line);
	server_says("\r\n250 SIZE 5\r\n");
	client_heard("250-mx.example\r\n250 SIZE 5\r\n");
	client_says("RCPT TO:<b@x.example>\r\n");
	server_says("550 ");
	server_says(line);
	ck_assert_uint_eq(s.client_len, 0);
	server_says("\r\n");
	ck_assert_uint_eq(s.client_len, SMTP_RELAY_REPLY_MAX);
	ck_assert_str_eq(s.client + s.client_len - 3, "x\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OPEN);
}
END_TEST

START_TEST(quit_ends_the_dialogue_behind_its_reply)
{
	opened();
	client_says("QUIT\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OPEN);
	server_says("221 bye\r\n");
	client_heard("221 bye\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
	ck_assert_int_eq(s.relay.over_for, SMTP_OWN_NONE);
}
END_TEST

START_TEST(a_421_of_the_server_ends_the_session)
{
	opened();
	server_says("421 going\r\n");
	client_heard("421 going\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
}
END_TEST

START_TEST(a_server_that_is_lost_is_excused_where_a_reply_may_stand)
{
	opened();
	client_says("NOOP\r\n");
	smtp_relay_server_ended(&s.relay);
	client_heard("421 4.4.2 The mail server behind was lost, try again\r\n");
	opened();
	client_says("HELP\r\n");
	server_says("214-one\r\n");
	ck_assert(s.relay.within);
	smtp_relay_server_ended(&s.relay);
	client_heard("214-one\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
}
END_TEST

START_TEST(a_server_that_breaks_the_protocol_is_left)
{
	static const char *const replies[] = { "hello\r\n", "250 nobody asked\r\n", "25\r\n" };

	for (unsigned i = 0; i < 3; i++) {
		opened();
		server_says(replies[i]);
		client_heard("421 4.5.0 The mail server behind broke the protocol, try again later\r\n");
	}
}
END_TEST

START_TEST(other_protocols_end_the_dialogue)
{
	opened();
	client_says("GET / HTTP/1.1\r\n");
	client_heard("421 4.7.0 This is a mail server\r\n");
	ck_assert_int_eq(s.relay.state, SMTP_RELAY_OVER);
	server_heard("");
}
END_TEST

START_TEST(a_chunk_for_a_server_without_chunking_is_read_and_dropped)
{
	opened();
	client_says("BDAT 6\r\nNOOP\r\nRSET\r\n");
	client_heard("502 5.5.1 Command is not implemented\r\n");
	server_heard("RSET\r\n");
	opened();
	client_says("EHLO a\r\n");
	server_says("250-b\r\n250 CHUNKING\r\n");
	client_says("BDAT 6\r\nNOOP\r\nRSET\r\n");
	server_heard("EHLO a\r\nBDAT 6\r\nNOOP\r\nRSET\r\n");
}
END_TEST

START_TEST(a_transaction_is_named_where_the_server_asks_for_names)
{
	opened();
	s.relay.ops = &naming;
	client_says("EHLO a\r\n");
	server_says("250-b\r\n250 XCSSLTX 5f\r\n");
	client_says("MAIL FROM:<a@x.example> SIZE=9\r\nMAIL FROM:<b@x.example>\r\n");
	server_heard("EHLO a\r\nMAIL FROM:<a@x.example> SIZE=9 XCSSLTX=0a1b/7\r\nMAIL FROM:<b@x.example>\r\n");
	opened();
	s.relay.ops = &naming;
	client_says("EHLO a\r\n");
	server_says("250 b\r\n");
	client_says("MAIL FROM:<a@x.example>\r\n");
	server_heard("EHLO a\r\nMAIL FROM:<a@x.example>\r\n");
}
END_TEST

START_TEST(a_name_may_tell_where_its_mail_ended)
{
	static const char group[] = "NOOP\r\nMAIL FROM:<a@x.example>\r\nNOOP\r\n";

	opened();
	s.relay.ops = &naming;
	client_says("EHLO a\r\n");
	server_says("250-b\r\n250 XCSSLTX 5f\r\n");
	server_heard("EHLO a\r\n");
	ck_assert_uint_eq(smtp_relay_client(&s.relay, group, strlen(group)), strlen(group));
	server_heard("NOOP\r\nMAIL FROM:<a@x.example> XCSSLTX=0a1b/37\r\nNOOP\r\n");
}
END_TEST

START_TEST(another_relay_goes_on_at_a_checkpoint)
{
	const struct smtp_relay_past past = {
		.greeting = SMTP_VERB_EHLO, .client = "a", .offers = SMTP_CAP_BIT(SMTP_CAP_CHUNKING), .authenticated = 1
	};

	begin(SMTP_BANNER_SWALLOWED, NULL);
	smtp_relay_continue(&s.relay, &rules, &ops, &s, &past);
	ck_assert(smtp_tx_is_checkpoint(&s.relay.tx));
	ck_assert_str_eq(s.relay.tx.name, "a");
	client_says("BDAT 2\r\nhi");
	server_heard("BDAT 2\r\nhi");
	server_says("503 no\r\n");
	client_heard("503 no\r\n");
	ck_assert_int_eq(s.relay.turn, SMTP_VERB_BDAT);
}
END_TEST

/* Where a password comes in two records, a copy of it is in the relay. */
START_TEST(a_wiped_relay_has_forgotten_everything)
{
	static const struct smtp_relay clean;

	memset(&s.relay, 0, sizeof s.relay);
	opened();
	client_says("AUTH PLAIN AGEAc2VjcmV0");
	client_says("\r\n");
	server_says("235 wel");
	server_says("come\r\n");
	ck_assert_mem_ne(&s.relay.client_line, &clean.client_line, sizeof clean.client_line);
	smtp_relay_wipe(&s.relay);
	ck_assert_mem_eq(&s.relay, &clean, sizeof clean);
}
END_TEST

START_TEST(a_command_of_ours_is_answered_like_any)
{
	opened();
	ck_assert_int_eq(smtp_relay_say(&s.relay, "XCSSLTX 0a1b/7 5f\r\n"), 0);
	server_heard("XCSSLTX 0a1b/7 5f\r\n");
	server_says("250 never\r\n");
	client_heard("250 never\r\n");
	ck_assert_int_eq(s.relay.turn, SMTP_VERB_XCSSLTX);
	ck_assert_int_lt(smtp_relay_say(&s.relay, "XCSSLTX"), 0);
}
END_TEST

UNIT(relay)
{
	const TTest *const facts[] = {
		the_banner_of_the_server_is_swallowed_or_renamed,
		nothing_of_the_client_goes_before_the_banner,
		a_repeated_greeting_is_not_answered_to_the_client,
		a_group_in_clear_goes_one_by_one_to_a_server_without_pipelining,
		a_group_in_clear_behind_a_mail_waits_for_its_reply,
		a_refused_greeting_that_the_client_takes_for_accepted_answers_its_mail,
		a_greeting_that_is_refused_for_now_answers_a_mail_too,
		a_server_that_does_not_know_ehlo_is_greeted_by_helo,
		a_server_that_refuses_to_begin_is_out_of_reach,
		a_server_that_knows_its_client_and_refuses_it_is_quoted,
		the_reply_to_ehlo_has_our_name_and_not_what_is_hidden,
		a_forbidden_command_is_answered_in_its_turn,
		mail_goes_byte_for_byte,
		commands_behind_data_wait_for_its_reply,
		a_second_mail_is_not_smuggled,
		a_server_never_has_a_dot_that_may_be_refused,
		a_reply_is_understood_however_it_is_written,
		a_line_that_is_too_long_is_cut,
		quit_ends_the_dialogue_behind_its_reply,
		a_421_of_the_server_ends_the_session,
		a_server_that_is_lost_is_excused_where_a_reply_may_stand,
		a_server_that_breaks_the_protocol_is_left,
		other_protocols_end_the_dialogue,
		a_chunk_for_a_server_without_chunking_is_read_and_dropped,
		a_transaction_is_named_where_the_server_asks_for_names,
		a_name_may_tell_where_its_mail_ended,
		another_relay_goes_on_at_a_checkpoint,
		a_wiped_relay_has_forgotten_everything,
		a_command_of_ours_is_answered_like_any,
	};

	return suite_run("relay", facts, SUITE_LEN(facts));
}
