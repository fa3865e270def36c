/* test_connection_handover.c: facts of connections that go on in another process, in whatever state they are. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/revival/connection_fields.h"
#include "tests/unit/ragent/successor.h"
#include "tests/unit/unit.h"

static struct live_connection l;

/* --- its states --- */

START_TEST(half_a_hello_is_finished_there)
{
	uint8_t record[RECORD_OF(200)];

	dispatcher_start(NULL);
	l = (struct live_connection){ .fd = client_connect("sf") };
	record_make(record, TLS_HANDSHAKE, 200, 1);
	write_all(l.fd, record, 77);
	wait_until(d.rw->home.connections && stream_kept(&connection_only()->busy->client) == 77);
	successor_takes_over();
	write_all(l.fd, record + 77, sizeof record - 77);
	free(frame_anywhere(FRAME_OPEN, &l.agent));
	close(l.fd);
}
END_TEST

START_TEST(a_handshake_goes_on_with_its_agent)
{
	dispatcher_start(NULL);
	hello_send(&l, "sl", NULL);
	successor_takes_over();
	server_send(&l, TLS_HANDSHAKE, 100, 2, 0);
	successor_takes_over();
	client_send_record(l.fd, TLS_APPLICATION_DATA, 50, 3);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == RECORD_OF(200) + RECORD_OF(50));
	l.client_records = 2;
	l.write_sequence = 0;
	successor_takes_over();
	live_say(&l, FRAME_KEPT, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy");
	wait_until(connection_only()->now.state == CONNECTION_OWNED);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_open), 1);
	close(l.fd);
}
END_TEST

static void goes_on_both_ways(const struct dispatcher_wish *wish)
{
	uint8_t got[RECORD_OF(300) + RECORD_OF(400)], expected[sizeof got];

	dispatcher_start(wish);
	connection_keep(&l, "sl", 1);
	for (uint8_t round = 1; round < 10; round++) {
		size_t len = record_make(expected, TLS_APPLICATION_DATA, 300, round);
		len += record_make(expected + len, TLS_APPLICATION_DATA, 400, (uint8_t)(round + 100));
		write_all(l.fd, expected, 310 + round);
		successor_takes_over(); /* whatever of it was read by now */
		write_all(l.fd, expected + 310 + round, len - 310 - round);
		wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == len);
		fake_agent_take_data(d.agents[l.agent], l.stream, got, sizeof got);
		ck_assert_mem_eq(got, expected, len);
		server_send(&l, TLS_APPLICATION_DATA, 500, round, 0);
	}
	ck_assert_uint_eq(fake_agent_links(d.agents[l.agent]), 1);
	close(l.fd);
}

START_TEST(an_owned_connection_goes_on_with_the_same_stream_both_ways)
{
	goes_on_both_ways(&(struct dispatcher_wish){ .protection = LINK_TRUSTED });
	dispatcher_stop();
	goes_on_both_ways(&(struct dispatcher_wish){ .protection = LINK_SEALED });
}
END_TEST

START_TEST(so_it_does_where_links_go_through_memory)
{
	unsigned before = open_descriptors();

	goes_on_both_ways(&(struct dispatcher_wish){ .protection = LINK_TRUSTED, .bytes = LINK_BYTES_IN_MEMORY });
	dispatcher_stop();
	goes_on_both_ways(&(struct dispatcher_wish){ .protection = LINK_SEALED, .bytes = LINK_BYTES_IN_MEMORY });
	dispatcher_stop();
	ck_assert_uint_le(open_descriptors(), before + 1); /* one that libuv keeps for the loop */
	dispatcher_start(NULL);
}
END_TEST

START_TEST(bytes_that_the_client_has_not_taken_come_from_there)
{
	static uint8_t record[TLS_RECORD_MAX];
	size_t len = record_make(record, TLS_APPLICATION_DATA, 15000, 9);

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	shrink_buffers(l.fd);
	shrink_buffers(connection_fd(connection_only()));
	unsigned count = (unsigned)(connection_window(connection_only()) / len);
	for (unsigned i = 0; i < count; i++)
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, len);
	wait_until(connection_only()->now.queued >= count * len);
	successor_takes_over();
	struct connection *c = connection_only();
	ck_assert_uint_lt(c->slot.bytes_written, c->now.queued);
	for (unsigned i = 0; i < count; i++) {
		if (i == count / 2)
			successor_takes_over();
		client_expect(l.fd, record, len);
	}
	c = connection_only();
	wait_until(c->slot.bytes_written == c->now.queued);
	close(l.fd);
}
END_TEST

START_TEST(credit_that_was_due_is_granted_there)
{
	static uint8_t record[TLS_RECORD_MAX];
	size_t len = record_make(record, TLS_APPLICATION_DATA, 16000, 9);

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	struct connection *c = connection_only();
	size_t frames = connection_window(c) / len;
	for (size_t i = 0; i < frames; i++)
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, len);
	wait_until(c->now.queued >= frames * len);
	successor_takes_over(); /* maybe all is drained already, and nothing will ever be written again */
	for (size_t i = 0; i < frames; i++)
		client_expect(l.fd, record, len);
	c = connection_only();
	wait_until(c->now.account.told >= connection_window(c) / 2);
	close(l.fd);
}
END_TEST

START_TEST(a_hand_off_is_adopted_there_and_the_frozen_agent_detached)
{
	dispatcher_start(NULL);
	connection_hand_off(&l);
	live_say(&l, FRAME_HANDED_OFF, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy 1");
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	successor_takes_over();
	adopted_say(&l, 2);
	free(frame_at(l.handshake_agent, FRAME_DETACH));
	ck_assert_uint_eq(connection_only()->now.epoch, 2);
	close(l.fd);
}
END_TEST

START_TEST(a_resting_connection_wakes_there)
{
	const struct dispatcher_wish wish = { .agents = 2 };

	dispatcher_start(&wish);
	connection_keep(&l, "sl", 1);
	fake_agent_die(d.agents[l.agent]);
	wait_until(connection_only()->now.state == CONNECTION_RESTING);
	successor_takes_over();
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_resting), 1);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 60, 4);
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	adopted_say(&l, 2);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_resting), 0);
	close(l.fd);
}
END_TEST

static void begin_with_an_owner(void)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	ck_assert_int_eq(connection_expand(connection_only()), 0);
}

static void its_owner_is_given_up(void)
{
	successor_takes_over();
	free(frame_at(l.agent, FRAME_CLOSE));
	ck_assert_int_eq(connection_only()->now.state, CONNECTION_RESTING);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 100, 5);
	cssl__link_ssl_id__free_unpacked(ssl_id_take(&l, -1), NULL);
	close(l.fd);
}

START_TEST(an_unanswered_reattach_is_given_up)
{
	begin_with_an_owner();
	connection_to(connection_only(), CONNECTION_REATTACHING);
	its_owner_is_given_up();
}
END_TEST

START_TEST(so_is_one_whose_frames_come_again)
{
	begin_with_an_owner();
	connection_only()->busy->again.next = 1;
	its_owner_is_given_up();
}
END_TEST

START_TEST(a_last_answer_and_fin_come_from_there)
{
	static uint8_t record[TLS_RECORD_MAX];
	size_t len = record_make(record, TLS_APPLICATION_DATA, 15000, 9);

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	shrink_buffers(l.fd);
	shrink_buffers(connection_fd(connection_only()));
	unsigned count = (unsigned)(connection_window(connection_only()) / len);
	for (unsigned i = 0; i < count; i++)
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, len);
	fake_agent_end(d.agents[l.agent], l.stream, END_BACKEND_CLOSED, 0);
	wait_until(connection_only()->now.state == CONNECTION_LINGERING);
	ck_assert_uint_gt(stream_pending(&connection_only()->busy->client), 0);
	successor_takes_over();
	for (unsigned i = 0; i < count; i++)
		client_expect(l.fd, record, len);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(a_client_that_said_fin_is_known_there)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	shutdown(l.fd, SHUT_WR);
	free(frame_at(l.agent, FRAME_FIN));
	successor_takes_over();
	server_send(&l, TLS_APPLICATION_DATA, 100, 5, 0);
	no_frame(FRAME_FIN);
	fake_agent_end(d.agents[l.agent], l.stream, END_CLIENT_CLOSED, 0);
	client_expect_fin(l.fd);
	close(l.fd);
}
END_TEST

/* --- who has it --- */

START_TEST(neither_client_nor_agents_notice)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	for (unsigned i = 0; i < 3; i++)
		successor_takes_over();
	turns(20);
	ck_assert_uint_eq(fake_agent_count(d.agents[l.agent], FRAME_CLOSE), 0);
	ck_assert_uint_eq(fake_agent_count(d.agents[l.agent], FRAME_DETACH), 0);
	for (unsigned i = 0; i < AGENTS; i++)
		ck_assert_uint_eq(fake_agent_links(d.agents[i]), 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.links_lost), 0);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_accepted), 1);
	ck_assert_uint_eq(agents_up(), AGENTS);
	server_send(&l, TLS_APPLICATION_DATA, 100, 6, 0);
	close(l.fd);
	free(frame_at(l.agent, FRAME_FIN));
}
END_TEST

START_TEST(new_clients_are_accepted_there)
{
	dispatcher_start(NULL);
	successor_takes_over();
	connection_keep(&l, "sl", 1);
	ck_assert_uint_eq(counter_get(&d.rw->home.counters.connections_accepted), 1);
	close(l.fd);
}
END_TEST

START_TEST(earlier_owners_of_a_connection_are_told_there)
{
	struct ownership before[OWNERSHIPS_LISTED], after[OWNERSHIPS_LISTED];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	ck_assert_uint_eq(ownerships_of(d.rw->home.ownerships, &connection_only()->id, before), 1);
	successor_takes_over();
	successor_takes_over();
	ck_assert_uint_eq(ownerships_of(d.rw->home.ownerships, &connection_only()->id, after), 1);
	ck_assert_uint_eq(after[0].cause, OWNERSHIP_HANDSHAKE);
	ck_assert_int_eq(after[0].agent, l.agent);
	ck_assert_uint_eq(after[0].since_ms, before[0].since_ms);
	ck_assert_uint_eq(after[0].pause_us, before[0].pause_us);
	close(l.fd);
}
END_TEST

START_TEST(counters_of_each_agent_go_on_there)
{
	dispatcher_start(NULL);
	for (size_t i = 0; i < ownership_counter_count(); i++)
		for (unsigned a = 0; a < AGENTS; a++)
			counter_set(counter_at(&d.rw->home.of_agents[a], i), i * AGENTS + a);
	successor_takes_over();
	for (size_t i = 0; i < ownership_counter_count(); i++)
		for (unsigned a = 0; a < AGENTS; a++)
			ck_assert_uint_eq(counter_get(counter_at(&d.rw->home.of_agents[a], i)), i * AGENTS + a);
}
END_TEST

START_TEST(counters_of_each_listener_go_on_there)
{
	dispatcher_start(NULL);
	const size_t listeners = d.shared.front_count;
	for (size_t f = 0; f < listeners; f++)
		for (size_t i = 0; i < LISTENER_COUNTER_COUNT; i++)
			counter_set(counter_at(&d.rw->home.of_listeners[f], i), 100 * f + i + 1);
	successor_takes_over();
	for (size_t f = 0; f < listeners; f++)
		for (size_t i = 0; i < LISTENER_COUNTER_COUNT; i++)
			ck_assert_uint_eq(counter_get(counter_at(&d.rw->home.of_listeners[f], i)), 100 * f + i + 1);
}
END_TEST

/* The successor breaks off at message @at. */
static int breaks_off(unsigned at)
{
	struct successor *s = successor_create();

	s->refuse_at = at;
	int r = handover_worker_pack(d.rw, successor_hears, s);
	handover_worker_let_go(s->rw);
	handover_worker_resume(d.rw);
	return r;
}

static void goes_on_here_wherever_it_breaks_off(const struct dispatcher_wish *wish)
{
	unsigned at = 0;

	dispatcher_start(wish);
	connection_keep(&l, "sl", 1);
	do {
		server_send(&l, TLS_APPLICATION_DATA, 100, 6, 0);
		client_send_record(l.fd, TLS_APPLICATION_DATA, 70, 7);
		fake_agent_send(d.agents[l.agent], 0, FRAME_PING, 0, "12345678", 8);
	} while (breaks_off(++at) < 0);
	ck_assert_uint_eq(at, AGENTS + 3); /* links, worker, connections; and then it got all */
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == at * RECORD_OF(70));
	for (unsigned i = 0; i < at; i++)
		free(frame_at(l.agent, FRAME_PONG));
	server_send(&l, TLS_APPLICATION_DATA, 100, 6, 0);
	successor_takes_over();
	server_send(&l, TLS_APPLICATION_DATA, 100, 8, 0);
	for (unsigned i = 0; i < AGENTS; i++)
		ck_assert_uint_eq(fake_agent_links(d.agents[i]), 1);
	close(l.fd);
}

START_TEST(everything_goes_on_here_wherever_the_other_process_breaks_off)
{
	goes_on_here_wherever_it_breaks_off(&(struct dispatcher_wish){ .protection = LINK_SEALED });
}
END_TEST

START_TEST(so_it_does_here_where_links_go_through_memory)
{
	goes_on_here_wherever_it_breaks_off(
		&(struct dispatcher_wish){ .protection = LINK_SEALED, .bytes = LINK_BYTES_IN_MEMORY });
}
END_TEST

UNIT(connection_handover)
{
	const TTest *const facts[] = {
		earlier_owners_of_a_connection_are_told_there,
		counters_of_each_agent_go_on_there,
		counters_of_each_listener_go_on_there,
		half_a_hello_is_finished_there,
		a_handshake_goes_on_with_its_agent,
		an_owned_connection_goes_on_with_the_same_stream_both_ways,
		so_it_does_where_links_go_through_memory,
		bytes_that_the_client_has_not_taken_come_from_there,
		credit_that_was_due_is_granted_there,
		a_hand_off_is_adopted_there_and_the_frozen_agent_detached,
		a_resting_connection_wakes_there,
		an_unanswered_reattach_is_given_up,
		so_is_one_whose_frames_come_again,
		a_last_answer_and_fin_come_from_there,
		a_client_that_said_fin_is_known_there,
		neither_client_nor_agents_notice,
		new_clients_are_accepted_there,
		everything_goes_on_here_wherever_the_other_process_breaks_off,
		so_it_does_here_where_links_go_through_memory,
	};

	return dispatcher_suite_run("connection_handover", facts, FACTS_LEN(facts));
}
