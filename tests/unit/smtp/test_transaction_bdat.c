/* test_transaction_bdat.c: facts of following a session that sends chunks (RFC 3030). */
#include "smtp/transaction.h"

#include "tests/unit/proto/suite.h"
#include "tests/unit/smtp/session.h"
#include "tests/unit/unit.h"

static const struct smtp_tx_rules rules = { .client_max = 512, .reply_max = 512 };

static struct session s;

static void begin(void)
{
	session_begin(&s, &rules, SMTP_TX_BEHIND_BANNER);
}

static void open_mail(void)
{
	session_say(&s, "C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nS: 250 ok\nS: 250 ok\n", 1000);
	s.trace_len = 0;
	s.trace[0] = 0;
}

static void client(const char *text)
{
	session_client(&s, text, strlen(text));
}

START_TEST(chunks_are_a_message)
{
	open_mail();
	client("BDAT 5\r\nQUIT\rBDAT 3 LAST\r\n\r\n.");
	ck_assert_int_eq(s.t.state, SMTP_TX_DOT);
	ck_assert_str_eq(s.trace, "passed:BDAT content-end passed:BDAT content-end ");
	session_say(&s, "S: 250 ok\nS: 250 ok\n?\n", 1000);
	ck_assert(smtp_tx_is_checkpoint(&s.t));
	ck_assert_uint_eq(s.t.accepted, 1);
	ck_assert_uint_eq(s.t.message_len, 8);
}
END_TEST

START_TEST(chunks_are_the_same_byte_by_byte)
{
	const char *all = "BDAT 5\r\nQUIT\rBDAT 0\r\nBDAT 3 LAST\r\n\r\n.NOOP\r\n";
	open_mail();
	for (const char *at = all; *at; at++)
		session_client(&s, at, 1);
	ck_assert_uint_eq(s.t.queue_len, 3); /* commands behind the last chunk wait for its reply */
	session_say(&s, "S: 250 ok\nS: 250 ok\nS: 250 ok\nS: 250 ok\n", 1);
	ck_assert(smtp_tx_is_checkpoint(&s.t));
	ck_assert_uint_eq(s.to_server_len, strlen("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\n") + strlen(all));
}
END_TEST

START_TEST(an_empty_last_chunk_ends_the_message)
{
	open_mail();
	client("BDAT 2\r\nhiBDAT 0 LAST\r\n");
	ck_assert_int_eq(s.t.state, SMTP_TX_DOT);
	session_say(&s, "S: 250 ok\nS: 250 ok\n", 1000);
	ck_assert(smtp_tx_is_checkpoint(&s.t));
}
END_TEST

START_TEST(a_chunk_that_is_held_waits_for_all_replies)
{
	for (size_t step = 1; step < 20; step++) {
		begin();
		smtp_tx_hold(&s.t, SMTP_TX_HOLDS_CHUNKS);
		session_say(&s,
			"C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nC: BDAT 4\nC: hi\nC: BDAT 4 LAST\nC: ho\nS: 250 ok\n",
			step);
		ck_assert_ptr_null(strstr(s.to_server, "BDAT"));
		session_say(&s, "S: 250 ok\n", step);
		ck_assert_ptr_nonnull(strstr(s.to_server, "BDAT"));
		ck_assert_ptr_null(strstr(s.to_server, "LAST"));
		session_say(&s, "S: 250 chunk\n", step);
		ck_assert_int_eq(s.t.state, SMTP_TX_DOT);
	}
}
END_TEST

START_TEST(a_last_chunk_that_is_held_waits_for_all_replies)
{
	for (size_t step = 1; step < 20; step++) {
		begin();
		smtp_tx_hold(&s.t, SMTP_TX_HOLDS_LAST);
		session_say(&s,
			"C: MAIL FROM:<a@b>\nC: RCPT TO:<c@d>\nC: BDAT 4\nC: hi\nC: BDAT 4 LAST\nC: ho\n"
			"S: 250 ok\nS: 250 ok\n",
			step);
		ck_assert_ptr_nonnull(strstr(s.to_server, "BDAT"));
		ck_assert_ptr_null(strstr(s.to_server, "LAST"));
		session_say(&s, "S: 250 chunk\n", step);
		ck_assert_int_eq(s.t.state, SMTP_TX_DOT);
	}
}
END_TEST

START_TEST(a_chunk_without_a_transaction_is_consumed)
{
	client("BDAT 6 LAST\r\nQUIT\r\nNOOP\r\n");
	session_say(&s, "S: 503 no\nS: 250 ok\n", 1000);
	ck_assert_str_eq(s.trace, "passed:BDAT content-end passed:NOOP answered:BDAT LAST answered:NOOP ");
	ck_assert(smtp_tx_is_checkpoint(&s.t));
	ck_assert_uint_eq(s.t.done, 0);
}
END_TEST

START_TEST(a_chunk_behind_a_refused_mail_is_consumed)
{
	client("MAIL FROM:<a@b>\r\nBDAT 6\r\nQUIT\r\nNOOP\r\n");
	session_say(&s, "S: 550 no\nS: 503 no\nS: 250 ok\n", 1000);
	ck_assert(smtp_tx_is_checkpoint(&s.t));
}
END_TEST

static enum smtp_own no_bdat(const struct smtp_client_event *event)
{
	return event->command.verb == SMTP_VERB_BDAT ? SMTP_OWN_NOT_IMPLEMENTED : SMTP_OWN_NONE;
}

START_TEST(a_chunk_that_we_refuse_is_consumed_and_kept_back)
{
	s.decide = no_bdat;
	client("BDAT 6 LAST\r\nQUIT\r\nBDAT 0\r\nNOOP\r\n");
	session_say(&s, "S: 250 ok\n?\n", 1000);
	ck_assert_str_eq(s.trace, "refused:BDAT content-end:discarded refused:BDAT passed:NOOP own:NOT_IMPLEMENTED "
				  "own:NOT_IMPLEMENTED answered:NOOP checkpoint:none ");
	ck_assert_uint_eq(s.to_server_len, 6);
}
END_TEST

START_TEST(a_last_chunk_may_be_refused_before_it_is_complete)
{
	open_mail();
	client("BDAT 10 LAST\r\n12345");
	session_say(&s, "S: 552 too big\n", 1000);
	ck_assert(!smtp_tx_is_checkpoint(&s.t));
	client("67890");
	ck_assert(smtp_tx_is_checkpoint(&s.t));
	ck_assert_uint_eq(s.t.done, 1);
}
END_TEST

START_TEST(data_behind_chunks_is_for_the_server_to_refuse)
{
	open_mail();
	client("BDAT 2\r\nhiDATA\r\nRSET\r\n");
	session_say(&s, "S: 250 ok\nS: 503 no\n", 1000);
	ck_assert_int_eq(s.t.state, SMTP_TX_CONTENT);
	session_say(&s, "S: 250 ok\n", 1000);
	ck_assert(smtp_tx_is_checkpoint(&s.t));
}
END_TEST

START_TEST(without_pipelining_each_command_waits_for_the_reply_before)
{
	s.t.rules.one_by_one = 1;
	client("MAIL FROM:<a@b>\r\nRCPT TO:<c@d>\r\nBDAT 2\r\nhiBDAT 0 LAST\r\n");
	ck_assert_str_eq(s.trace, "passed:MAIL ");
	session_say(&s, "S: 250 ok\n", 1000);
	ck_assert_str_eq(s.trace, "passed:MAIL answered:MAIL passed:RCPT ");
	session_say(&s, "S: 250 ok\nS: 250 ok\nS: 250 ok\n?\n", 1000);
	ck_assert(smtp_tx_is_checkpoint(&s.t));
	ck_assert_uint_eq(s.t.accepted, 1);
}
END_TEST

START_TEST(chunks_behind_the_last_change_nothing)
{
	open_mail();
	client("BDAT 0 LAST\r\nBDAT 4 LAST\r\nabcdNOOP\r\n");
	session_say(&s, "S: 250 ok\nS: 503 no\nS: 250 ok\n", 1000);
	ck_assert(smtp_tx_is_checkpoint(&s.t));
	ck_assert_uint_eq(s.t.done, 1);
}
END_TEST

UNIT(transaction_bdat)
{
	const TTest *facts[] = {
		chunks_are_a_message,
		chunks_are_the_same_byte_by_byte,
		an_empty_last_chunk_ends_the_message,
		a_chunk_that_is_held_waits_for_all_replies,
		a_last_chunk_that_is_held_waits_for_all_replies,
		a_chunk_without_a_transaction_is_consumed,
		a_chunk_behind_a_refused_mail_is_consumed,
		a_chunk_that_we_refuse_is_consumed_and_kept_back,
		a_last_chunk_may_be_refused_before_it_is_complete,
		data_behind_chunks_is_for_the_server_to_refuse,
		without_pipelining_each_command_waits_for_the_reply_before,
		chunks_behind_the_last_change_nothing,
	};
	return suite_run_with("transaction_bdat", begin, facts, SUITE_LEN(facts));
}
