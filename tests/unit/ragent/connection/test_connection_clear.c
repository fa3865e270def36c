/* test_connection_clear.c: facts of the bytes that a client and an agent say in clear, and of bytes that were injected.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/talk.h"
#include "tests/unit/unit.h"

static const struct dispatcher_wish mail = { .listener = SLOW };

START_TEST(what_both_say_is_passed_on)
{
	dispatcher_start(&mail);
	talk_greeted();
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_PREAMBLE);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.preambles_under_way), 1);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.handshakes), 0);
	client_says("EHLO a\r\nNO");
	agent_hears("EHLO a\r\nNO");
	agent_says("250 mx.example\r\n", WHOLE);
	client_expect(t.fd, "250 mx.example\r\n", 16);
	client_says("OP\r\n");
	agent_hears("OP\r\n");
	close(t.fd);
	free(frame_at(t.agent, FRAME_FIN));
}
END_TEST

START_TEST(nothing_of_the_client_goes_before_the_banner)
{
	dispatcher_start(&mail);
	talk_begin();
	client_says("EHLO early\r\n");
	turns(20);
	ck_assert_uint_eq(fake_agent_data_len(d.agents[t.agent], t.stream), 0);
	agent_says(BANNER, WHOLE);
	agent_hears("EHLO early\r\n");
	close(t.fd);
}
END_TEST

START_TEST(bytes_that_the_agent_had_not_read_at_starttls_were_injected)
{
	dispatcher_start(&mail);
	talk_greeted();
	client_says(STARTTLS "EHLO inj\r\n");
	agent_hears(STARTTLS "EHLO inj\r\n");
	agent_took(strlen(STARTTLS));
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
	expect_injection();
}
END_TEST

START_TEST(bytes_that_the_kernel_still_has_were_injected_too)
{
	dispatcher_start(&mail);
	talk_greeted();
	client_says(STARTTLS);
	agent_hears(STARTTLS);
	agent_took(strlen(STARTTLS));
	client_says("EHLO inj\r\n"); /* RAgent reads it before or behind the frames */
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
	expect_injection();
}
END_TEST

START_TEST(bytes_in_clear_behind_starttls_are_reset)
{
	static const char *const texts[] = { "EHLO inj\r\n", "GET / HTTP/1.1\r\n\r\n",
		"PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n" };

	dispatcher_start(&mail);
	for (unsigned i = 0; i < 3; i++) {
		talk_greeted();
		starttls();
		client_expect(t.fd, READY, strlen(READY));
		client_says(texts[i]);
		client_expect_reset(t.fd);
		ck_assert_uint_eq(ended(END_INJECTION), i + 1);
		close(t.fd);
		wait_until(!d.rw->home.connections);
	}
}
END_TEST

static size_t heard_len(void)
{
	return fake_agent_data_len(d.agents[t.agent], t.stream);
}

START_TEST(an_agent_gets_a_window_and_no_more)
{
	static char words[3 * FRAME_PREAMBLE_WINDOW];

	dispatcher_start(&mail);
	talk_greeted();
	memset(words, 'a', sizeof words);
	write_all(t.fd, words, sizeof words);
	wait_until(heard_len() == FRAME_PREAMBLE_WINDOW);
	turns(20);
	ck_assert_uint_eq(heard_len(), FRAME_PREAMBLE_WINDOW);
	ck_assert_uint_eq(stream_kept(&connection_only()->busy->client), 0);
	agent_took(100);
	wait_until(heard_len() == FRAME_PREAMBLE_WINDOW + 100);
	agent_took(FRAME_PREAMBLE_WINDOW + 100);
	wait_until(heard_len() == 2 * FRAME_PREAMBLE_WINDOW + 100);
	close(t.fd);
}
END_TEST

START_TEST(the_end_of_the_client_is_told_behind_its_words)
{
	static char words[FRAME_PREAMBLE_WINDOW + 10];

	dispatcher_start(&mail);
	talk_greeted();
	memset(words, 'a', sizeof words);
	write_all(t.fd, words, sizeof words);
	shutdown(t.fd, SHUT_WR);
	wait_until(heard_len() == FRAME_PREAMBLE_WINDOW);
	no_frame(FRAME_FIN);
	agent_took(FRAME_PREAMBLE_WINDOW);
	wait_until(heard_len() == sizeof words);
	free(frame_at(t.agent, FRAME_FIN));
	agent_says("221 2.0.0 Bye\r\n", WHOLE);
	fake_agent_end(d.agents[t.agent], t.stream, END_DONE, 0);
	client_expect(t.fd, "221 2.0.0 Bye\r\n", 15);
	client_expect_fin(t.fd);
	ck_assert_uint_eq(ended(END_DONE), 1);
	close(t.fd);
}
END_TEST

START_TEST(a_client_that_goes_before_the_banner_is_gone)
{
	dispatcher_start(&mail);
	talk_begin();
	close(t.fd);
	wait_until(ended(END_CLIENT_CLOSED) == 1);
	free(frame_at(t.agent, FRAME_CLOSE));
}
END_TEST

static void breach(enum frame_type type, uint8_t flags, const void *payload, size_t len)
{
	dispatcher_start(&mail);
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, type, flags, payload, len);
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	close(t.fd);
}

START_TEST(an_agent_cannot_have_taken_what_it_did_not_get)
{
	breach(FRAME_TAKEN, 0, "\0\0\0\0\0\0\0\1", 8);
}
END_TEST

START_TEST(an_agent_sends_no_records_before_starttls)
{
	breach(FRAME_DATA, 0, "\x16\3\3\0\1x", 6);
}
END_TEST

START_TEST(the_reply_to_starttls_is_whole)
{
	breach(FRAME_DATA, FRAME_PLAINTEXT | FRAME_RECORDS_FOLLOW, "220", 3);
}
END_TEST

START_TEST(nobody_owns_what_is_said_in_clear)
{
	breach(FRAME_KEPT, 0, "", 0);
}
END_TEST

START_TEST(mail_in_clear_goes_on_without_the_preambles_limits)
{
	static char words[2 * FRAME_PREAMBLE_WINDOW];

	dispatcher_start(&(struct dispatcher_wish){ .listener = MAIL });
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	wait_until(connection_only()->now.state == CONNECTION_RELAYED);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 0);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_relayed), 1);
	memset(words, 'a', sizeof words);
	write_all(t.fd, words, sizeof words);
	wait_until(heard_len() == sizeof words);
	const uint64_t until_ms = connection_now_ms(connection_only()) + 200; /* twice the preamble's time */
	wait_until(connection_now_ms(connection_only()) >= until_ms);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_RELAYED);
	close(t.fd);
}
END_TEST

UNIT(connection_clear)
{
	const TTest *const facts[] = {
		what_both_say_is_passed_on,
		nothing_of_the_client_goes_before_the_banner,
		bytes_that_the_agent_had_not_read_at_starttls_were_injected,
		bytes_that_the_kernel_still_has_were_injected_too,
		bytes_in_clear_behind_starttls_are_reset,
		an_agent_gets_a_window_and_no_more,
		the_end_of_the_client_is_told_behind_its_words,
		a_client_that_goes_before_the_banner_is_gone,
		an_agent_cannot_have_taken_what_it_did_not_get,
		an_agent_sends_no_records_before_starttls,
		the_reply_to_starttls_is_whole,
		nobody_owns_what_is_said_in_clear,
		mail_in_clear_goes_on_without_the_preambles_limits,
	};

	return dispatcher_suite_run("connection_clear", facts, sizeof facts / sizeof facts[0]);
}
