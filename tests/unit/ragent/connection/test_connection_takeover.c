/* test_connection_takeover.c: facts of connections whose agent is lost. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/link/link_internal.h"
#include "tests/unit/ragent/dispatcher.h"

static struct live_connection l;

/* The affinity agent owns it, at a checkpoint. */
static void begin_owned_with(const struct dispatcher_wish *wish)
{
	dispatcher_start(wish);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
	free(frame_at(l.handshake_agent, FRAME_DETACH));
}

static void begin_owned(void)
{
	begin_owned_with(NULL);
}

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
	wait_until(connection_only()->state == CONNECTION_WAITING);
	wait_until(agents_up() == 1);
	free(frame_at(l.agent, FRAME_OPEN));
	wait_until(connection_only()->state == CONNECTION_HANDSHAKING);
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
	wait_until(connection_only()->state == CONNECTION_RESTING);
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
	wait_until(connection_only()->state == CONNECTION_RESTING);
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
	wait_until(connection_only()->state == CONNECTION_RESTING);
	shutdown(l.fd, SHUT_WR);
	client_expect_fin(l.fd);
	close(l.fd);
	wait_until(!d.rw->home.connections);
}
END_TEST

/* The client's next request, one record; the owner has it. */
static void request(uint16_t body)
{
	size_t before = fake_agent_data_len(d.agents[l.agent], l.stream);

	client_send_record(l.fd, TLS_APPLICATION_DATA, body, 9);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == before + RECORD_OF((size_t)body));
}

/* The owner gave all records below @records to the backend. */
static void consumed(uint64_t records, uint32_t read_generation, uint8_t flags)
{
	const struct frame_consumed c = {
		.client_records = records,
		.read_generation = read_generation,
		.read_sequence = read_generation ? 0 : records - 2,
	};

	fake_agent_consumed(d.agents[l.agent], l.stream, &c, flags);
	wait_until(connection_only()->position.client_records == records);
}

/* The owner is lost; what its successor is told. */
static Cssl__LinkSslId *lose_owner(void)
{
	fake_agent_die(d.agents[l.agent]);
	return ssl_id_take(&l, -1);
}

static void forget(Cssl__LinkSslId *id)
{
	cssl__link_ssl_id__free_unpacked(id, NULL);
}

static void call_dead(int agent)
{
	child_dies(agent_becomes_child(agent));
}

static void leave_download(const char *blob)
{
	Cssl__LinkDownload m = CSSL__LINK_DOWNLOAD__INIT;

	m.sealed = (ProtobufCBinaryData){ strlen(blob), (uint8_t *)blob };
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_DOWNLOAD, &m.base);
}

START_TEST(a_request_without_an_answer_is_replayed_from_the_checkpoint)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->cause, CSSL__CAUSE__CAUSE_TAKEOVER);
	ck_assert_uint_eq(id->epoch, 3);
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED);
	ck_assert_uint_eq(id->position->client_records, 2);
	ck_assert_uint_eq(id->position->read_sequence, 0);
	ck_assert_uint_eq(id->exposed_records, 3);
	ck_assert_int_eq(id->fate, CSSL__FATE__FATE_UNKNOWN); /* fake agents are this process */
	forget(id);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(60));
	adopted_say(&l, 3);
	consumed(3, 0, 0); /* once more */
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT);
	ck_assert_uint_eq(kept_replay_len(&connection_only()->busy->kept), 0);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_adopted), 1);
	close(l.fd);
}
END_TEST

START_TEST(a_request_that_nobody_reported_is_exposed_all_the_same)
{
	begin_owned();
	request(60);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT);
	ck_assert_uint_eq(id->position->client_records, 2);
	ck_assert_uint_eq(id->exposed_records, 3);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_process_known_dead_is_said_to_be)
{
	begin_owned();
	request(60);
	call_dead(l.agent);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->fate, CSSL__FATE__FATE_DEAD);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(who_died_together_with_the_owner_is_no_successor)
{
	begin_owned();
	int other = (l.agent + 1) % AGENTS, third = (l.agent + 2) % AGENTS;
	request(60);
	call_dead(l.agent);
	call_dead(other);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(l.agent, third);
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT);
	forget(id);
	wait_until(!fake_agent_linked(d.agents[other]) || fake_agent_links(d.agents[other]) == 2);
	close(l.fd);
}
END_TEST

START_TEST(an_answer_that_began_goes_on_with_what_its_owner_left_for_that)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	leave_download("sealed");
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	server_send(&l, TLS_APPLICATION_DATA, 200, 7, FRAME_RESPONSE_BYTES);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED);
	ck_assert_uint_eq(id->response_records, 2);
	ck_assert_uint_eq(id->response_bytes, RECORD_OF(100) + RECORD_OF(200));
	ck_assert_uint_eq(id->sealed_download.len, 6);
	ck_assert_mem_eq(id->sealed_download.data, "sealed", 6);
	ck_assert_uint_eq(id->position->client_records, 2);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_download_that_is_lost_twice_counts_the_bytes_of_both_owners)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	leave_download("sealed");
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	forget(lose_owner());
	adopted_say(&l, 3);
	server_send(&l, TLS_APPLICATION_DATA, 300, 8, FRAME_RESPONSE_BYTES);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED);
	ck_assert_uint_eq(id->response_records, 2);
	ck_assert_uint_eq(id->response_bytes, RECORD_OF(100) + RECORD_OF(300));
	ck_assert_uint_eq(id->sealed_download.len, 6);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(what_was_left_for_an_answer_goes_with_it)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	leave_download("sealed");
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT);
	ck_assert_ptr_null(connection_only()->busy->download);
	request(60);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_uint_eq(id->sealed_download.len, 0);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_blob_of_unheard_of_size_ends_the_link)
{
	static char blob[DOWNLOAD_MAX_LEN + 2];

	begin_owned();
	memset(blob, 'x', sizeof blob - 1);
	leave_download(blob);
	wait_until(counter_get(&d.rw->home.counters.link_violations) == 1);
	close(l.fd);
}
END_TEST

START_TEST(half_an_answer_that_cannot_go_on_is_adopted_for_its_alert)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED);
	ck_assert_uint_eq(id->sealed_download.len, 0);
	forget(id);
	adopted_say(&l, 3);
	server_send(&l, TLS_APPLICATION_DATA, 19, 1, 0);
	fake_agent_end(d.agents[l.agent], l.stream, END_AGENT_LOST, 0);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(half_an_answer_ends_with_a_reset_and_never_a_fin_while_no_agent_is_up)
{
	begin_owned();
	for (int i = 0; i < AGENTS; i++)
		if (i != l.agent)
			fake_agent_die(d.agents[i]);
	wait_until(agents_up() == 1);
	request(60);
	consumed(3, 0, 0);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES);
	fake_agent_die(d.agents[l.agent]);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_ended), 1);
	close(l.fd);
}
END_TEST

START_TEST(a_request_without_an_answer_waits_for_an_agent_to_come_up)
{
	begin_owned();
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_ready(d.agents[i], 0);
	wait_until(agents_up() == 0);
	request(60);
	consumed(3, 0, 0);
	fake_agent_cut(d.agents[l.agent]);
	wait_until(connection_only()->state == CONNECTION_RESTING);
	no_frame(FRAME_SSL_ID);
	fake_agent_ready(d.agents[l.agent], 1);
	Cssl__LinkSslId *id = ssl_id_take(&l, -1); /* the same agent, on another link */
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_request_longer_than_what_is_kept_is_not_replayable)
{
	const struct dispatcher_wish wish = { .limits = "  replay: 1KiB\n" };

	begin_owned_with(&wish);
	request(900);
	consumed(3, 0, 0);
	ck_assert_uint_eq(kept_replay_len(&connection_only()->busy->kept), RECORD_OF(900));
	request(900);
	consumed(4, 0, 0);
	ck_assert_ptr_null(connection_only()->busy->kept.data);
	request(70);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE);
	ck_assert_uint_eq(id->position->client_records, 4);
	ck_assert_uint_eq(id->position->read_sequence, 2);
	ck_assert_uint_eq(id->exposed_records, 5);
	forget(id);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(70));
	close(l.fd);
}
END_TEST

START_TEST(a_request_across_a_key_update_is_not_replayable)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	request(22);
	consumed(4, 1, 0);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE);
	ck_assert_uint_eq(id->position->client_records, 4);
	ck_assert_uint_eq(id->position->read_generation, 1);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(more_than_a_window_is_never_kept)
{
	begin_owned(); /* the window is 64 KiB, and so is what may be kept */
	for (unsigned i = 0; i < 3; i++)
		request(16000);
	consumed(5, 0, 0);
	request(16000);
	ck_assert_uint_eq(kept_replay_len(&connection_only()->busy->kept), 3 * RECORD_OF(16000));
	request(16000);
	ck_assert_uint_eq(kept_replay_len(&connection_only()->busy->kept), 0);
	ck_assert_uint_eq(kept_len(&connection_only()->busy->kept), 2 * RECORD_OF(16000));
	close(l.fd);
}
END_TEST

START_TEST(a_request_that_meets_two_losses_is_named_poison_and_a_third_ends_it)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED);
	forget(id);
	adopted_say(&l, 3);
	id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_POISONED);
	forget(id);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_poisoned), 1);
	fake_agent_die(d.agents[l.agent]);
	client_expect_reset(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(agents_that_die_before_they_adopt_prove_nothing)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	forget(lose_owner());
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_poisoned), 0);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(behind_close_notify_a_lost_owner_leaves_a_fin)
{
	begin_owned();
	server_send(&l, TLS_APPLICATION_DATA, 19, 7, FRAME_LAST_RECORD);
	fake_agent_die(d.agents[l.agent]);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.ended[END_DONE]), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_answer_between_two_losses_makes_them_no_poison)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	forget(lose_owner());
	adopted_say(&l, 3);
	server_send(&l, TLS_APPLICATION_DATA, 100, 7, FRAME_RESPONSE_BYTES | FRAME_CHECKPOINT);
	request(60);
	Cssl__LinkSslId *id = lose_owner();
	ck_assert_int_eq(id->response_state, CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.takeovers_poisoned), 0);
	forget(id);
	close(l.fd);
}
END_TEST

START_TEST(a_move_goes_on_where_it_stood_and_its_loss_goes_back_to_the_checkpoint)
{
	begin_owned();
	request(60);
	consumed(3, 0, 0);
	l.client_records = 3;
	l.write_sequence = 0;
	/* an owner that drains passes its backend */
	live_say(&l, FRAME_HANDED_OFF, 0, CSSL__BACKEND_HALF__BACKEND_PASSED, "copy 2");
	Cssl__LinkSslId *id = ssl_id_take(&l, -1);
	ck_assert_uint_eq(id->position->client_records, 3);
	ck_assert_int_eq(id->backend, CSSL__BACKEND_HALF__BACKEND_PASSED);
	forget(id);
	adopted_say(&l, 3);
	id = lose_owner();
	ck_assert_uint_eq(id->position->client_records, 2);
	ck_assert_int_eq(id->backend, CSSL__BACKEND_HALF__BACKEND_NONE);
	ck_assert_uint_eq(id->exposed_records, 3);
	forget(id);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(60));
	close(l.fd);
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
	wait_until(connection_only()->state == CONNECTION_RESTING);
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
	wait_until(connection_only()->state == CONNECTION_RESTING);
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
	wait_until(connection_only()->tail_told == TAIL_TOLD);
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
	wait_until(connection_only()->state == CONNECTION_RESTING);
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
	wait_until(connection_only()->state == CONNECTION_OWNED);
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
	ck_assert_int_eq(connection_only()->state, CONNECTION_RESTING);
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
	wait_until(connection_only()->state == CONNECTION_RESTING);
	close(l.fd);
}
END_TEST

int main(void)
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
		a_request_without_an_answer_is_replayed_from_the_checkpoint,
		a_request_that_nobody_reported_is_exposed_all_the_same,
		a_process_known_dead_is_said_to_be,
		who_died_together_with_the_owner_is_no_successor,
		an_answer_that_began_goes_on_with_what_its_owner_left_for_that,
		a_download_that_is_lost_twice_counts_the_bytes_of_both_owners,
		what_was_left_for_an_answer_goes_with_it,
		a_blob_of_unheard_of_size_ends_the_link,
		half_an_answer_that_cannot_go_on_is_adopted_for_its_alert,
		half_an_answer_ends_with_a_reset_and_never_a_fin_while_no_agent_is_up,
		a_request_without_an_answer_waits_for_an_agent_to_come_up,
		a_request_longer_than_what_is_kept_is_not_replayable,
		a_request_across_a_key_update_is_not_replayable,
		more_than_a_window_is_never_kept,
		a_request_that_meets_two_losses_is_named_poison_and_a_third_ends_it,
		agents_that_die_before_they_adopt_prove_nothing,
		behind_close_notify_a_lost_owner_leaves_a_fin,
		an_answer_between_two_losses_makes_them_no_poison,
		a_move_goes_on_where_it_stood_and_its_loss_goes_back_to_the_checkpoint,
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
