/* test_connection_preamble.c: facts of clients that begin in clear, up to STARTTLS and the handshake behind it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/wire.h"
#include "ragent/connection/connection_preamble.h"
#include "tests/unit/ragent/successor.h"

#define MAIL     "    affinity_bound: off\n    service: smtp\n    smtp: { hostname: mx.example, preamble_timeout: 100ms }\n"
#define SLOW     "    affinity_bound: off\n    service: smtp\n    smtp: { hostname: mx.example }\n"
#define BANNER   "220 mx.example ESMTP\r\n"
#define STARTTLS "STARTTLS\r\n"
#define READY    "220 2.0.0 Ready to start TLS\r\n"
#define LEAVING  "421 4.3.2 Service is shutting down, try again\r\n"
#define WHOLE    (FRAME_PLAINTEXT | FRAME_REPLY_COMPLETE)

static const struct dispatcher_wish mail = { .listener = SLOW };

static struct talk {
	int fd, agent;
	uint32_t stream;
} t;

static uint64_t ended(enum end_reason reason)
{
	return counter_get(&d.rw->home.counters.ended[reason]);
}

static void talk_taken_by(struct fake_frame *f, int agent)
{
	Cssl__LinkPreamble *m = cssl__link_preamble__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(m);
	ck_assert_str_eq(m->listener, "sf");
	ck_assert_uint_eq(m->connection_id.len, CONNECTION_ID_LEN);
	ck_assert_uint_eq(m->endpoints->client_address.len, 4);
	cssl__link_preamble__free_unpacked(m, NULL);
	t.agent = agent;
	t.stream = f->stream;
	free(f);
}

/* A client that an agent heard of. */
static void talk_begin(void)
{
	int agent;

	t.fd = client_connect("sf");
	struct fake_frame *f = frame_anywhere(FRAME_PREAMBLE, &agent);
	talk_taken_by(f, agent);
}

static void agent_says(const char *words, uint8_t flags)
{
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_DATA, flags, words, strlen(words));
}

static void talk_greeted(void)
{
	talk_begin();
	agent_says(BANNER, WHOLE);
	client_expect(t.fd, BANNER, strlen(BANNER));
}

static void client_says(const char *words)
{
	write_all(t.fd, words, strlen(words));
}

static void agent_hears(const char *words)
{
	char heard[256];

	wait_until(fake_agent_data_len(d.agents[t.agent], t.stream) >= strlen(words));
	size_t len = fake_agent_take_data(d.agents[t.agent], t.stream, (uint8_t *)heard, sizeof heard);
	ck_assert_uint_eq(len, strlen(words));
	ck_assert_mem_eq(heard, words, len);
}

static void agent_took(uint64_t bytes)
{
	uint8_t payload[8];

	wire_store_u64(payload, bytes);
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_TAKEN, 0, payload, sizeof payload);
}

static void starttls(void)
{
	client_says(STARTTLS);
	agent_hears(STARTTLS);
	agent_took(strlen(STARTTLS));
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
}

START_TEST(what_both_say_is_passed_on)
{
	dispatcher_start(&mail);
	talk_greeted();
	ck_assert_int_eq(connection_only()->state, CONNECTION_PREAMBLE);
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

START_TEST(behind_starttls_a_handshake_begins)
{
	int agent;

	dispatcher_start(&mail);
	talk_greeted();
	starttls();
	client_expect(t.fd, READY, strlen(READY));
	ck_assert_int_eq(connection_only()->state, CONNECTION_HELLO);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.starttls_done), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.preambles_under_way), 0);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 0);
	client_send_record(t.fd, TLS_HANDSHAKE, 200, 1);
	struct fake_frame *f = frame_anywhere(FRAME_OPEN, &agent);
	wait_until(fake_agent_data_len(d.agents[agent], f->stream) == RECORD_OF(200));
	ck_assert_int_eq(connection_only()->state, CONNECTION_HANDSHAKING);
	free(f);
	no_frame(FRAME_CLOSE); /* the preamble's agent had forgotten it */
	close(t.fd);
}
END_TEST

START_TEST(a_handshake_has_its_time_from_starttls_on)
{
	dispatcher_start(&(struct dispatcher_wish){ .listener = SLOW, .limits = "  handshake_timeout: 300ms\n" });
	talk_greeted();
	const uint64_t until_ms = connection_now_ms(connection_only()) + 400;
	wait_until(connection_now_ms(connection_only()) >= until_ms);
	starttls();
	client_expect(t.fd, READY, strlen(READY));
	ck_assert_int_eq(connection_only()->state, CONNECTION_HELLO);
	turns(5);
	ck_assert_int_eq(connection_only()->state, CONNECTION_HELLO);
	wait_until(ended(END_HANDSHAKE_TIMEOUT) == 1);
	close(t.fd);
}
END_TEST

static void expect_injection(void)
{
	client_expect_reset(t.fd);
	ck_assert_uint_eq(ended(END_INJECTION), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.starttls_injections), 1);
	close(t.fd);
}

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

START_TEST(an_agent_that_is_lost_before_the_banner_leaves_it_to_another)
{
	int lost, agent;

	dispatcher_start(&mail);
	talk_begin();
	client_says("EHLO early\r\n");
	lost = t.agent;
	fake_agent_cut(d.agents[lost]);
	struct fake_frame *f = frame_anywhere(FRAME_PREAMBLE, &agent);
	ck_assert_int_ne(agent, lost);
	talk_taken_by(f, agent);
	agent_says(BANNER, WHOLE);
	client_expect(t.fd, BANNER, strlen(BANNER));
	agent_hears("EHLO early\r\n");
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.preambles_restarted), 1);
	close(t.fd);
}
END_TEST

START_TEST(an_agent_that_is_lost_between_replies_is_excused_by_421)
{
	dispatcher_start(&mail);
	talk_greeted();
	client_says("EHLO a\r\n");
	agent_hears("EHLO a\r\n");
	fake_agent_cut(d.agents[t.agent]);
	client_expect(t.fd, LEAVING, strlen(LEAVING));
	client_expect_fin(t.fd);
	ck_assert_uint_eq(ended(END_AGENT_LOST), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.preambles_lost), 1);
	close(t.fd);
}
END_TEST

START_TEST(an_agent_that_is_lost_within_a_reply_costs_a_reset)
{
	dispatcher_start(&mail);
	talk_greeted();
	agent_says("250-mx.exa", FRAME_PLAINTEXT);
	client_expect(t.fd, "250-mx.exa", 10);
	fake_agent_cut(d.agents[t.agent]);
	client_expect_reset(t.fd);
	ck_assert_uint_eq(ended(END_AGENT_LOST), 1);
	close(t.fd);
}
END_TEST

START_TEST(an_agent_that_refuses_it_leaves_it_to_another)
{
	Cssl__LinkRefused refused = CSSL__LINK_REFUSED__INIT;
	int agent;

	dispatcher_start(&mail);
	talk_begin();
	refused.reason = CSSL__LINK_REFUSED__REASON__BUSY;
	fake_agent_say(d.agents[t.agent], t.stream, FRAME_REFUSED, &refused.base);
	struct fake_frame *f = frame_anywhere(FRAME_PREAMBLE, &agent);
	ck_assert_int_ne(agent, t.agent);
	free(f);
	close(t.fd);
}
END_TEST

START_TEST(without_an_agent_the_client_is_told_421_in_the_end)
{
	static const char busy[] = "421 4.3.2 Service is overloaded, try again later\r\n";

	dispatcher_start(&(struct dispatcher_wish){ .listener = SLOW, .limits = "  agent_wait: 100ms\n" });
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	t.fd = client_connect("sf");
	client_expect(t.fd, busy, strlen(busy));
	client_expect_fin(t.fd);
	ck_assert_uint_eq(ended(END_NO_AGENT), 1);
	close(t.fd);
}
END_TEST

START_TEST(an_agent_that_comes_up_in_time_gets_it)
{
	int agent;

	dispatcher_start(&mail);
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	t.fd = client_connect("sf");
	wait_until(d.rw->home.connections);
	fake_agent_ready(d.agents[1], 1);
	struct fake_frame *f = frame_anywhere(FRAME_PREAMBLE, &agent);
	ck_assert_int_eq(agent, 1);
	free(f);
	close(t.fd);
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

START_TEST(a_source_has_its_share_of_preambles)
{
	static const char full[] = "421 4.7.0 Too many connections\r\n";

	dispatcher_start(&(struct dispatcher_wish){ .listener = SLOW, .limits = "  preambles_per_source: 1\n" });
	talk_greeted();
	int second = client_connect("sf");
	client_expect(second, full, strlen(full));
	client_expect_fin(second);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.preambles_refused), 1);
	ck_assert_uint_eq(ended(END_LIMIT_PREAMBLES), 1);
	close(second);
	close(t.fd);
}
END_TEST

START_TEST(who_never_says_starttls_is_told_421_when_its_agent_does_not)
{
	static const char late[] = "421 4.4.2 Timed out\r\n";

	dispatcher_start(&(struct dispatcher_wish){ .listener = MAIL });
	talk_greeted();
	client_expect(t.fd, late, strlen(late));
	client_expect_fin(t.fd);
	ck_assert_uint_eq(ended(END_PREAMBLE_TIMEOUT), 1);
	free(frame_at(t.agent, FRAME_CLOSE));
	close(t.fd);
}
END_TEST

START_TEST(handshakes_and_preambles_take_turns_each_for_itself)
{
	unsigned opens[AGENTS] = { 0 };

	dispatcher_start(&mail);
	for (unsigned i = 0; i < 2 * AGENTS; i++) {
		int agent;
		talk_greeted();
		starttls();
		client_expect(t.fd, READY, strlen(READY));
		client_send_record(t.fd, TLS_HANDSHAKE, 200, 1);
		struct fake_frame *f = frame_anywhere(FRAME_OPEN, &agent);
		opens[agent]++;
		fake_agent_end(d.agents[agent], f->stream, END_HANDSHAKE_FAILED, FRAME_ABORT);
		client_expect_reset(t.fd);
		free(f);
		close(t.fd);
		wait_until(!d.rw->home.connections);
	}
	for (unsigned a = 0; a < AGENTS; a++)
		ck_assert_uint_eq(opens[a], 2);
}
END_TEST

START_TEST(a_preamble_comes_to_starttls_while_its_agent_is_drained)
{
	int agent;

	dispatcher_start(&mail);
	talk_greeted();
	agents_drain(d.shared.agents, t.agent, DRAIN_BY_OPERATOR, connection_now_ms(connection_only()), 10000);
	mover_look(&d.rw->home.mover);
	wait_until(d.rw->home.mover.pass > 2 && !d.rw->home.mover.next);
	no_frame(FRAME_FINISH);
	starttls();
	client_expect(t.fd, READY, strlen(READY));
	client_send_record(t.fd, TLS_HANDSHAKE, 200, 1);
	free(frame_anywhere(FRAME_OPEN, &agent));
	ck_assert_int_ne(agent, t.agent);
	close(t.fd);
}
END_TEST

START_TEST(a_draining_agent_says_421_itself)
{
	dispatcher_start(&mail);
	talk_greeted();
	agents_drain(d.shared.agents, t.agent, DRAIN_BY_OPERATOR, connection_now_ms(connection_only()), 10000);
	mover_look(&d.rw->home.mover);
	struct fake_frame *f = frame_at(t.agent, FRAME_FINISH);
	ck_assert_uint_eq(f->stream, t.stream);
	ck_assert_uint_eq(f->payload[0], END_SHUTTING_DOWN);
	free(f);
	no_frame(FRAME_FINISH);
	agent_says(LEAVING, WHOLE);
	fake_agent_end(d.agents[t.agent], t.stream, END_SHUTTING_DOWN, 0);
	client_expect(t.fd, LEAVING, strlen(LEAVING));
	client_expect_fin(t.fd);
	close(t.fd);
}
END_TEST

/* Mail has begun in clear, and its agent answers FINISH with nothing, because a transaction is open. */
static void drain_times_out_in_mail(uint8_t flags_of_last_reply)
{
	dispatcher_start(&mail);
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	wait_until(connection_only()->state == CONNECTION_RELAYED);
	agent_says("250 2.1.0 Ok\r\n", flags_of_last_reply);
	client_expect(t.fd, "250 2.1.0 Ok\r\n", 14);
	agents_drain(d.shared.agents, t.agent, DRAIN_BY_OPERATOR, connection_now_ms(connection_only()), 50);
	mover_look(&d.rw->home.mover);
	wait_until(ended(END_DRAIN_TIMEOUT) == 1);
	free(frame_at(t.agent, FRAME_CLOSE));
}

START_TEST(mail_in_clear_that_outlasts_a_drain_is_told_421)
{
	drain_times_out_in_mail(WHOLE);
	client_expect(t.fd, LEAVING, strlen(LEAVING));
	client_expect_fin(t.fd);
	close(t.fd);
}
END_TEST

START_TEST(a_reply_in_clear_that_outlasts_a_drain_costs_a_reset)
{
	drain_times_out_in_mail(FRAME_PLAINTEXT);
	client_expect_reset(t.fd);
	close(t.fd);
}
END_TEST

START_TEST(mail_in_clear_goes_on_without_the_preambles_limits)
{
	static char words[2 * FRAME_PREAMBLE_WINDOW];

	dispatcher_start(&(struct dispatcher_wish){ .listener = MAIL });
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	wait_until(connection_only()->state == CONNECTION_RELAYED);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 0);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_relayed), 1);
	memset(words, 'a', sizeof words);
	write_all(t.fd, words, sizeof words);
	wait_until(heard_len() == sizeof words);
	const uint64_t until_ms = connection_now_ms(connection_only()) + 200; /* twice the preamble's time */
	wait_until(connection_now_ms(connection_only()) >= until_ms);
	ck_assert_int_eq(connection_only()->state, CONNECTION_RELAYED);
	close(t.fd);
}
END_TEST

START_TEST(it_goes_on_in_another_process)
{
	dispatcher_start(&mail);
	talk_greeted();
	client_says("EHL");
	agent_hears("EHL");
	agent_took(3);
	successor_takes_over();
	ck_assert_int_eq(connection_only()->state, CONNECTION_PREAMBLE);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 1);
	client_says("O a\r\n");
	agent_hears("O a\r\n");
	agent_says("250 mx.example\r\n", WHOLE);
	client_expect(t.fd, "250 mx.example\r\n", 16);
	client_says(STARTTLS);
	agent_hears(STARTTLS);
	agent_took(3 + 5 + strlen(STARTTLS));
	agent_says(READY, WHOLE | FRAME_RECORDS_FOLLOW);
	client_expect(t.fd, READY, strlen(READY));
	successor_takes_over();
	ck_assert_int_eq(connection_only()->state, CONNECTION_HELLO);
	client_says("EHLO inj\r\n");
	expect_injection();
}
END_TEST

START_TEST(one_without_an_agent_goes_on_in_another_process)
{
	int agent;

	dispatcher_start(&mail);
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	t.fd = client_connect("sf");
	wait_until(d.rw->home.connections);
	successor_takes_over();
	fake_agent_ready(d.agents[2], 1);
	free(frame_anywhere(FRAME_PREAMBLE, &agent));
	close(t.fd);
}
END_TEST

int main(void)
{
	const TTest *const facts[] = {
		what_both_say_is_passed_on,
		nothing_of_the_client_goes_before_the_banner,
		behind_starttls_a_handshake_begins,
		a_handshake_has_its_time_from_starttls_on,
		bytes_that_the_agent_had_not_read_at_starttls_were_injected,
		bytes_that_the_kernel_still_has_were_injected_too,
		bytes_in_clear_behind_starttls_are_reset,
		an_agent_that_is_lost_before_the_banner_leaves_it_to_another,
		an_agent_that_is_lost_between_replies_is_excused_by_421,
		an_agent_that_is_lost_within_a_reply_costs_a_reset,
		an_agent_that_refuses_it_leaves_it_to_another,
		without_an_agent_the_client_is_told_421_in_the_end,
		an_agent_that_comes_up_in_time_gets_it,
		an_agent_gets_a_window_and_no_more,
		the_end_of_the_client_is_told_behind_its_words,
		a_client_that_goes_before_the_banner_is_gone,
		an_agent_cannot_have_taken_what_it_did_not_get,
		an_agent_sends_no_records_before_starttls,
		the_reply_to_starttls_is_whole,
		nobody_owns_what_is_said_in_clear,
		a_source_has_its_share_of_preambles,
		who_never_says_starttls_is_told_421_when_its_agent_does_not,
		handshakes_and_preambles_take_turns_each_for_itself,
		a_preamble_comes_to_starttls_while_its_agent_is_drained,
		a_draining_agent_says_421_itself,
		mail_in_clear_that_outlasts_a_drain_is_told_421,
		a_reply_in_clear_that_outlasts_a_drain_costs_a_reset,
		mail_in_clear_goes_on_without_the_preambles_limits,
		it_goes_on_in_another_process,
		one_without_an_agent_goes_on_in_another_process,
	};

	return dispatcher_suite_run("connection_preamble", facts, sizeof facts / sizeof facts[0]);
}
