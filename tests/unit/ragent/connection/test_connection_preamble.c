/* test_connection_preamble.c: facts of clients that begin in clear: their agents, drains, limits, and the handshake
 * behind STARTTLS. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "tests/unit/ragent/successor.h"
#include "tests/unit/ragent/talk.h"
#include "tests/unit/unit.h"

static const struct dispatcher_wish mail = { .listener = SLOW };

START_TEST(behind_starttls_a_handshake_begins)
{
	int agent;

	dispatcher_start(&mail);
	talk_greeted();
	starttls();
	client_expect(t.fd, READY, strlen(READY));
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_HELLO);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.starttls_done), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.preambles_under_way), 0);
	ck_assert_uint_eq(handshake_limit_count(d.rw->home.preambles), 0);
	client_send_record(t.fd, TLS_HANDSHAKE, 200, 1);
	struct fake_frame *f = frame_anywhere(FRAME_OPEN, &agent);
	wait_until(fake_agent_data_len(d.agents[agent], f->stream) == RECORD_OF(200));
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_HANDSHAKING);
	free(f);
	free(frame_at(t.agent, FRAME_CLOSE)); /* the answer to the end in clear */
	no_frame(FRAME_CLOSE);
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
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_HELLO);
	turns(5);
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_HELLO);
	wait_until(ended(END_HANDSHAKE_TIMEOUT) == 1);
	close(t.fd);
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

START_TEST(a_client_above_its_sources_limit_holds_no_place_while_it_reads_421)
{
	static const char full[] = "421 4.7.0 Too many connections\r\n";

	dispatcher_start(&(struct dispatcher_wish){ .listener = SLOW, .limits = "  connections_per_source: 1\n" });
	talk_greeted();
	int second = client_connect("sf");
	client_expect(second, full, strlen(full));
	client_expect_fin(second);
	turns(4);
	ck_assert_uint_eq(ended(END_LIMIT_SOURCE), 1);
	ck_assert_uint_eq(admission_total(d.shared.admission), 1);
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

/* The agent was asked to end the preamble. */
static void agent_says_421_itself(void)
{
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

START_TEST(a_draining_agent_says_421_itself)
{
	dispatcher_start(&mail);
	talk_greeted();
	agents_drain(d.shared.agents, t.agent, DRAIN_BY_OPERATOR, connection_now_ms(connection_only()), 10000);
	mover_look(&d.rw->home.mover);
	agent_says_421_itself();
}
END_TEST

START_TEST(a_stopping_process_has_its_agent_say_421)
{
	dispatcher_start(&mail);
	talk_greeted();
	connection_home_drain(&d.rw->home);
	agent_says_421_itself();
}
END_TEST

/* Mail has begun in clear, and its agent answers FINISH with nothing, because a transaction is open. */
static void drain_times_out_in_mail(uint8_t flags_of_last_reply)
{
	dispatcher_start(&mail);
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	wait_until(connection_only()->now.state == CONNECTION_RELAYED);
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

/* Of SLOW, but a verdict has three seconds: the idle time-out and two. */
#define TIMED                                                                                                          \
	"    affinity_bound: off\n    service: smtp\n    smtp: { hostname: mx.example, client_address: hidden, "       \
	"end_timeout: 1500ms }\n"
#define LATE "421 4.4.2 Timed out\r\n"

static void agent_told(enum end_reason reason)
{
	struct fake_frame *f = frame_at(t.agent, FRAME_FINISH);

	ck_assert_uint_eq(f->payload[0], reason);
	free(f);
}

/* Its agent awaits a verdict, so it answers neither the stop nor the question. */
START_TEST(mail_in_clear_at_a_draining_agent_gets_its_421_at_end_timeout)
{
	dispatcher_start(&(struct dispatcher_wish){ .listener = TIMED, .limits = "  idle_timeout: 1s\n" });
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	wait_until(connection_only()->now.state == CONNECTION_RELAYED);
	agents_drain(d.shared.agents, t.agent, DRAIN_BY_OPERATOR, connection_now_ms(connection_only()), 60000);
	mover_look(&d.rw->home.mover);
	agent_told(END_SHUTTING_DOWN);
	agent_told(END_IDLE_TIMEOUT);
	agent_told(END_BACKEND_TIMEOUT);
	agent_says(LATE, WHOLE);
	fake_agent_end(d.agents[t.agent], t.stream, END_BACKEND_TIMEOUT, 0);
	client_expect(t.fd, LATE, strlen(LATE));
	client_expect_fin(t.fd);
	ck_assert_uint_eq(ended(END_BACKEND_TIMEOUT), 1);
	close(t.fd);
}
END_TEST

/* It has two seconds for that. */
START_TEST(mail_in_clear_whose_agent_does_not_hear_the_limit_is_reset)
{
	dispatcher_start(&(struct dispatcher_wish){ .listener = TIMED, .limits = "  idle_timeout: 1s\n" });
	talk_greeted();
	fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
	agent_told(END_IDLE_TIMEOUT);
	agent_told(END_BACKEND_TIMEOUT);
	client_expect_reset(t.fd);
	ck_assert_uint_eq(ended(END_BACKEND_TIMEOUT), 1);
	close(t.fd);
}
END_TEST

static unsigned connections_at(int agent)
{
	return (unsigned)agents_share(d.shared.agents, agent, AGENT_CONNECTIONS);
}

/* Two of three agents have a connection more than the third. */
START_TEST(mail_in_clear_counts_where_connections_count)
{
	unsigned at[AGENTS] = { 0 };
	int fds[AGENTS];

	dispatcher_start(&(struct dispatcher_wish){ .listener = SLOW "    handshake: least-connections\n" });
	for (int i = 0; i + 1 < AGENTS; i++)
		agents_enter(d.shared.agents, i, AGENT_CONNECTIONS);
	for (unsigned i = 0; i < AGENTS; i++) {
		talk_greeted();
		ck_assert_uint_eq(
			connections_at(t.agent), at[t.agent] + (t.agent + 1 < AGENTS)); /* a preamble is none */
		fake_agent_send(d.agents[t.agent], t.stream, FRAME_RELAYED, 0, NULL, 0);
		wait_until(counter_get(&d.rw->home.counters.connections_relayed) == i + 1);
		at[t.agent]++;
		fds[i] = t.fd;
	}
	ck_assert_uint_lt(at[AGENTS - 1], AGENTS);
	for (unsigned i = 0; i < AGENTS; i++)
		close(fds[i]);
	for (unsigned i = 0; i < AGENTS; i++) {
		struct fake_frame *f = frame_anywhere(FRAME_FIN, &t.agent);
		fake_agent_end(d.agents[t.agent], f->stream, END_CLIENT_CLOSED, 0);
		free(f);
	}
	wait_until(!d.rw->home.connections);
	ck_assert_uint_eq(connections_at(AGENTS - 1), 0);
	for (int i = 0; i + 1 < AGENTS; i++) {
		ck_assert_uint_eq(connections_at(i), 1);
		agents_leave(d.shared.agents, i, AGENT_CONNECTIONS);
	}
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
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_PREAMBLE);
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
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_HELLO);
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

UNIT(connection_preamble)
{
	const TTest *const facts[] = {
		behind_starttls_a_handshake_begins,
		a_handshake_has_its_time_from_starttls_on,
		an_agent_that_is_lost_before_the_banner_leaves_it_to_another,
		an_agent_that_is_lost_between_replies_is_excused_by_421,
		an_agent_that_is_lost_within_a_reply_costs_a_reset,
		an_agent_that_refuses_it_leaves_it_to_another,
		without_an_agent_the_client_is_told_421_in_the_end,
		an_agent_that_comes_up_in_time_gets_it,
		a_source_has_its_share_of_preambles,
		a_client_above_its_sources_limit_holds_no_place_while_it_reads_421,
		who_never_says_starttls_is_told_421_when_its_agent_does_not,
		handshakes_and_preambles_take_turns_each_for_itself,
		a_preamble_comes_to_starttls_while_its_agent_is_drained,
		a_draining_agent_says_421_itself,
		a_stopping_process_has_its_agent_say_421,
		mail_in_clear_that_outlasts_a_drain_is_told_421,
		a_reply_in_clear_that_outlasts_a_drain_costs_a_reset,
		mail_in_clear_at_a_draining_agent_gets_its_421_at_end_timeout,
		mail_in_clear_whose_agent_does_not_hear_the_limit_is_reset,
		mail_in_clear_counts_where_connections_count,
		it_goes_on_in_another_process,
		one_without_an_agent_goes_on_in_another_process,
	};

	return dispatcher_suite_run("connection_preamble", facts, sizeof facts / sizeof facts[0]);
}
