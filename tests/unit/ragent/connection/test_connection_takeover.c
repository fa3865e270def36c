/* test_connection_takeover.c: facts of connections whose agent is lost: in a handshake, at rest, and while others are
 * lost. What was asked is in test_connection_replay.c. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/lost_owner.h"
#include "tests/unit/unit.h"

static void on_stopped(struct ragent_worker *rw)
{
}

START_TEST(a_handshake_begins_again_elsewhere_before_the_client_has_seen_anything)
{
	uint8_t hello[RECORD_OF(200)], got[1024];
	int agent;

	dispatcher_start(NULL);
	hello_send(&l, "sf", NULL);
	/* consumed already, but still needed */
	fake_agent_consumed(d.agents[l.agent], l.stream, &(struct frame_consumed){ .client_records = 1 }, 0);
	turns(5);
	fake_agent_die(d.agents[l.agent]);
	struct fake_frame *f = frame_anywhere(FRAME_OPEN, &agent);
	ck_assert_int_ne(agent, l.agent);
	record_make(hello, TLS_HANDSHAKE, 200, 1);
	wait_until(fake_agent_data_len(d.agents[agent], f->stream) == sizeof hello);
	fake_agent_take_data(d.agents[agent], f->stream, got, sizeof got);
	ck_assert_mem_eq(got, hello, sizeof hello);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_restarted), 1);
	l.agent = agent;
	l.stream = f->stream;
	free(f);
	server_send(&l, TLS_HANDSHAKE, 100, 2, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_hello_that_outlives_three_agents_is_given_to_nobody_else)
{
	int agent;

	dispatcher_start(NULL);
	hello_send(&l, "sf", NULL);
	fake_agent_die(d.agents[l.agent]);
	for (unsigned i = 0; i < 2; i++) {
		free(frame_anywhere(FRAME_OPEN, &agent));
		fake_agent_cut(d.agents[agent]);
	}
	client_expect_refusal(l.fd);
	wait_until(agents_up() == 2);
	no_frame(FRAME_OPEN);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_restarted), 2);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_AGENT_LOST]), 1);
	close(l.fd);
	wait_until(!d.rw->home.connections);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.client_queued_bytes), 0);
}
END_TEST

/* Its agent was lost, and the next one as well. */
static void lose_two(void)
{
	int agent;

	dispatcher_start(NULL);
	hello_send(&l, "sf", NULL);
	fake_agent_die(d.agents[l.agent]);
	free(frame_anywhere(FRAME_OPEN, &agent));
	fake_agent_die(d.agents[agent]);
	l.agent = AGENTS - l.agent - agent; /* who is left */
}

START_TEST(a_hello_outlives_two_agents)
{
	lose_two();
	struct fake_frame *f = frame_at(l.agent, FRAME_OPEN);
	l.stream = f->stream;
	free(f);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(200));
	server_send(&l, TLS_HANDSHAKE, 100, 2, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_hello_waits_where_the_last_agents_were_lost_together)
{
	lose_two();
	fake_agent_cut(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_WAITING);
	wait_until(agents_up() == 1);
	free(frame_at(l.agent, FRAME_OPEN));
	wait_until(connection_only()->now.state == CONNECTION_HANDSHAKING);
	close(l.fd);
}
END_TEST

START_TEST(a_handshake_under_way_ends_with_its_agent)
{
	dispatcher_start(NULL);
	hello_send(&l, "sf", NULL);
	server_send(&l, TLS_HANDSHAKE, 100, 2, 0);
	fake_agent_die(d.agents[l.agent]);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_AGENT_LOST]), 1);
	no_frame(FRAME_OPEN);
	close(l.fd);
}
END_TEST

START_TEST(an_idle_connection_rests_and_the_next_record_wakes_it_elsewhere)
{
	begin_owned();
	int lost = l.agent;
	fake_agent_die(d.agents[lost]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_resting), 1);
	no_frame(FRAME_SSL_ID);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_int_ne(l.agent, lost);
	ck_assert_uint_eq(id->epoch, 3);
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_TAKEOVER);
	ck_assert_mem_eq(id->sealed_copy.data, "copy 1", 6);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(60));
	adopted_say(&l, 3);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_resting), 0);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, 0);
	close(l.fd);
}
END_TEST

START_TEST(a_resting_connection_waits_for_an_agent_to_come_up)
{
	begin_owned();
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_cut(d.agents[i]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	no_frame(FRAME_SSL_ID);
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 1);
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 3);
	close(l.fd);
}
END_TEST

START_TEST(a_resting_connection_ends_in_order_when_the_client_leaves)
{
	begin_owned();
	fake_agent_die(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	shutdown(l.fd, SHUT_WR);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

static const struct dispatcher_wish tcp_reconnects = {
	.listener = "    affinity_bound: off\n    service: tcp\n    on_agent_loss: reconnect\n"
};

START_TEST(an_untouched_tcp_connection_gets_another_agent_at_once)
{
	begin_owned_with(&tcp_reconnects);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT);
	ck_assert_uint_eq(id->exposed_records, 2);
	forget(id);
	adopted_say(&l, 3);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	close(l.fd);
}
END_TEST

START_TEST(a_tcp_connection_never_rests_without_an_agent_it_waits_for_one)
{
	begin_owned_with(&tcp_reconnects);
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	fake_agent_cut(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	fake_agent_ready(d.agents[0], 1);
	forget(ssl_id_take(&l, -1));
	close(l.fd);
}
END_TEST

START_TEST(takeovers_wait_for_their_turn)
{
	const struct dispatcher_wish wish = { .limits = "moves:\n  takeovers_per_second: 10\n" };

	begin_owned_with(&wish);
	request(60);
	for (unsigned i = 0; i < 3; i++)
		pace_delay_ms(&d.rw->home.takeovers, worker_now_ms(w));
	uint64_t before_ms = worker_now_ms(w);
	fake_agent_die(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 9); /* makes no difference */
	forget(ssl_id_take(&l, -1));
	ck_assert_uint_ge(worker_now_ms(w) - before_ms, 200);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_delayed), 1);
	close(l.fd);
}
END_TEST

START_TEST(a_successor_that_is_busy_is_asked_again)
{
	const struct dispatcher_wish wish = { .agents = 2 };
	Cssl__LinkRefused r = CSSL__LINK_REFUSED__INIT;

	begin_owned_with(&wish);
	request(60);
	Cssl__LinkSslId *id = lose_owner();
	for (unsigned i = 0; i < 6; i++) {
		uint32_t epoch = id->epoch;
		forget(id);
		fake_agent_say(d.agents[l.agent], l.stream, FRAME_REFUSED, &r.base);
		id = ssl_id_take(&l, -1);
		ck_assert_uint_eq(id->epoch, epoch + 1);
	}
	adopted_say(&l, id->epoch);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_client_that_left_when_only_the_lost_owner_knew_does_not_rest)
{
	begin_owned();
	shutdown(l.fd, SHUT_WR);
	wait_until(connection_only()->now.tail_told == TAIL_TOLD);
	fake_agent_die(d.agents[l.agent]);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

START_TEST(a_cut_answer_does_not_end_in_order_when_this_process_stops)
{
	begin_owned();
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	request(60);
	consumed(3, 0, 0);
	fake_agent_cut(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	ragent_worker_stop(d.rw, 100, on_stopped);
	client_expect_reset(l.fd);
	close(l.fd);
	wait_until(d.rw->state == RAGENT_WORKER_CLOSED);
	ragent_worker_destroy(d.rw);
	d.rw = NULL;
}
END_TEST

START_TEST(the_pause_of_a_takeover_is_counted_once)
{
	begin_owned();
	request(60);
	forget(lose_owner());
	ck_assert_uint_ne(connection_only()->busy->pause_began_ms, 0);
	adopted_say(&l, 3);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	const counter *pauses = &d.rw->home.counters.takeover_pauses_2ms;
	uint64_t count = 0;
	while (pauses <= &d.rw->home.counters.takeover_pauses_longer)
		count += counter_get(pauses++);
	ck_assert_uint_eq(count, 1);
	close(l.fd);
}
END_TEST

START_TEST(a_connection_without_a_copy_ends_with_its_agent)
{
	dispatcher_start(NULL);
	hello_send(&l, "sl", NULL);
	server_send(&l, TLS_HANDSHAKE, 100, 2, 0);
	l.client_records = 1;
	l.write_sequence = 0;
	live_say(&l, FRAME_KEPT, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "");
	wait_until(connection_only()->now.state == CONNECTION_OWNED);
	fake_agent_die(d.agents[l.agent]);
	client_expect_reset(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(an_adopter_that_is_lost_leaves_it_resting_and_the_frozen_owner_is_detached)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	fake_agent_die(d.agents[l.agent]);
	free(frame_at(l.handshake_agent, FRAME_DETACH));
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_RESTING);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 9);
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_uint_eq(id->epoch, 3); /* the lost one may have used epoch 2 */
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_TAKEOVER);
	cssl__link_ssl_id__free_unpacked(id, NULL);
	close(l.fd);
}
END_TEST

START_TEST(a_frozen_owner_that_is_lost_does_not_matter_once_another_adopts)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	fake_agent_die(d.agents[l.handshake_agent]);
	wait_until(agents_up() == AGENTS - 1);
	adopted_say(&l, 2);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, 0);
	close(l.fd);
}
END_TEST

START_TEST(two_streams_of_one_connection_on_one_lost_link_do_no_harm)
{
	const struct dispatcher_wish wish = { .agents = 2 };
	Cssl__LinkRefused r = CSSL__LINK_REFUSED__INIT;

	dispatcher_start(&wish);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_REFUSED, &r.base);
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, l.handshake_agent), NULL);
	fake_agent_cut(d.agents[l.handshake_agent]); /* frozen and current were both there */
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	close(l.fd);
}
END_TEST

UNIT(connection_takeover)
{
	const TTest *const facts[] = {
		a_handshake_begins_again_elsewhere_before_the_client_has_seen_anything,
		a_hello_that_outlives_three_agents_is_given_to_nobody_else,
		a_hello_outlives_two_agents,
		a_hello_waits_where_the_last_agents_were_lost_together,
		a_handshake_under_way_ends_with_its_agent,
		an_idle_connection_rests_and_the_next_record_wakes_it_elsewhere,
		a_resting_connection_waits_for_an_agent_to_come_up,
		a_resting_connection_ends_in_order_when_the_client_leaves,
		an_untouched_tcp_connection_gets_another_agent_at_once,
		a_tcp_connection_never_rests_without_an_agent_it_waits_for_one,
		takeovers_wait_for_their_turn,
		a_successor_that_is_busy_is_asked_again,
		a_client_that_left_when_only_the_lost_owner_knew_does_not_rest,
		a_cut_answer_does_not_end_in_order_when_this_process_stops,
		the_pause_of_a_takeover_is_counted_once,
		a_connection_without_a_copy_ends_with_its_agent,
		an_adopter_that_is_lost_leaves_it_resting_and_the_frozen_owner_is_detached,
		a_frozen_owner_that_is_lost_does_not_matter_once_another_adopts,
		two_streams_of_one_connection_on_one_lost_link_do_no_harm,
	};

	return dispatcher_suite_run("connection_takeover", facts, sizeof facts / sizeof facts[0]);
}
