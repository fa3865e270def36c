/* test_connection.c: facts of a connection under one owner: its beginning, its records both ways, its credit. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/error.h"
#include "proto/first_bytes.h"
#include "ragent/connection/connection_saved.h"
#include "tests/unit/ragent/dispatcher.h"
#include "tests/unit/unit.h"

#define FACTS_COUNT(facts) (sizeof(facts) / sizeof((facts)[0]))

static struct live_connection l;

static uint64_t counted(counter *c)
{
	return counter_get(c);
}

START_TEST(first_bytes_that_are_no_handshake_record_end_it)
{
	dispatcher_start(NULL);
	int fd = client_connect("sf");
	write_all(fd, "EHLO there\r\n", 12);
	client_expect_reset(fd);
	ck_assert_uint_eq(counted(&d.rw->home.counters.ended[END_NOT_TLS]), 1);
	no_frame(FRAME_OPEN);
	close(fd);
}
END_TEST

START_TEST(a_request_without_tls_is_told_so)
{
	size_t len;
	const void *answer = first_bytes_answer(FIRST_BYTES_HTTP, &len);

	dispatcher_start(NULL);
	int fd = client_connect("sf");
	write_all(fd, "GET / HTTP/1.1\r\n\r\n", 18);
	client_expect(fd, answer, len);
	client_expect_fin(fd);
	ck_assert_uint_eq(counted(&d.rw->home.counters.ended[END_PLAIN_HTTP]), 1);
	no_frame(FRAME_OPEN);
	close(fd);
	turns(2);
	ck_assert_uint_eq(counted(&d.rw->home.counters.client_queued_bytes), 0);
}
END_TEST

START_TEST(a_hello_is_dispatched_only_when_it_is_whole)
{
	uint8_t record[RECORD_OF(200)];

	dispatcher_start(NULL);
	int fd = client_connect("sf");
	record_make(record, TLS_HANDSHAKE, 200, 1);
	for (size_t i = 0; i + 1 < sizeof record; i++) {
		write_all(fd, record + i, 1);
		turns(2);
	}
	no_frame(FRAME_OPEN);
	write_all(fd, record + sizeof record - 1, 1);
	int agent;
	free(frame_anywhere(FRAME_OPEN, &agent));
	struct fake_frame *data = frame_at(agent, FRAME_DATA);
	ck_assert_uint_eq(data->len, sizeof record);
	ck_assert_mem_eq(data->payload, record, sizeof record);
	free(data);
	close(fd);
}
END_TEST

START_TEST(open_says_who_the_client_is)
{
	int agent;

	dispatcher_start(NULL);
	l.fd = client_connect("sf");
	client_send_record(l.fd, TLS_HANDSHAKE, 200, 1);
	struct fake_frame *f = frame_anywhere(FRAME_OPEN, &agent);
	Cssl__LinkOpen *open = cssl__link_open__unpack(NULL, f->len, f->payload);
	struct sockaddr_in self;
	socklen_t len = sizeof self;
	getsockname(l.fd, (struct sockaddr *)&self, &len);
	ck_assert_uint_eq(open->connection_id.len, CONNECTION_ID_LEN);
	ck_assert_uint_eq(open->endpoints->client_address.len, 4);
	ck_assert_mem_eq(open->endpoints->client_address.data, "\x7f\0\0\1", 4);
	ck_assert_uint_eq(open->endpoints->client_port, ntohs(self.sin_port));
	ck_assert_mem_eq(open->endpoints->server_address.data, "\x7f\0\0\1", 4);
	cssl__link_open__free_unpacked(open, NULL);
	free(f);
	close(l.fd);
}
END_TEST

START_TEST(listeners_of_mode_sl_or_without_migration_ask_to_keep)
{
	Cssl__LinkOpen__Disposition asked;

	dispatcher_start(NULL);
	for (unsigned i = 0; i < 2 * AGENTS; i++) {
		hello_send(&l, i % 2 ? "still" : "sl", &asked);
		ck_assert_int_eq(asked, CSSL__LINK_OPEN__DISPOSITION__KEEP);
		close(l.fd);
	}
}
END_TEST

START_TEST(round_robin_makes_as_many_handshakes_on_each_agent_and_all_but_the_affinity_agent_hand_off)
{
	Cssl__LinkOpen__Disposition asked;
	unsigned at[AGENTS] = { 0 }, keep[AGENTS] = { 0 }, keepers = 0;

	dispatcher_start(NULL);
	for (unsigned i = 0; i < 30; i++) {
		hello_send(&l, "sf", &asked);
		at[l.agent]++;
		keep[l.agent] += asked == CSSL__LINK_OPEN__DISPOSITION__KEEP;
		close(l.fd);
	}
	for (unsigned i = 0; i < AGENTS; i++) {
		ck_assert_uint_eq(at[i], 10);
		ck_assert(keep[i] == 0 || keep[i] == 10);
		keepers += keep[i] == 10;
	}
	ck_assert_uint_eq(keepers, 1); /* one client address, one affinity agent */
}
END_TEST

START_TEST(client_records_are_kept_until_they_are_consumed)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	struct connection *c = connection_only();
	ck_assert_uint_eq(kept_len(&c->busy->kept), 0);
	for (unsigned i = 0; i < 4; i++)
		client_send_record(l.fd, TLS_APPLICATION_DATA, 100, (uint8_t)i);
	wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) == 4 * RECORD_OF(100));
	ck_assert_uint_eq(kept_len(&c->busy->kept), 4 * RECORD_OF(100));
	fake_agent_consumed(
		d.agents[l.agent], l.stream, &(struct frame_consumed){ .client_records = 5, .read_sequence = 3 }, 0);
	wait_until(kept_len(&c->busy->kept) == RECORD_OF(100));
	ck_assert_uint_eq(c->now.position.now.client_records, 5);
	close(l.fd);
}
END_TEST

START_TEST(an_idle_connection_holds_no_buffer)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	struct connection *c = connection_only();
	turns(4);
	ck_assert_ptr_null(c->busy->kept.data);
	ck_assert_ptr_null(c->busy->client.out.data);
	ck_assert_ptr_null(c->busy->client.kept.data);
	ck_assert_uint_le(sizeof *c, 1024);
	close(l.fd);
}
END_TEST

START_TEST(a_client_is_not_read_beyond_the_window)
{
	static uint8_t record[RECORD_OF(16000)];
	size_t sent = 0;

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	/* more than all buffers on the way can hold: the client gets stuck */
	for (unsigned stuck = 0; stuck < 200; turn()) {
		ssize_t n = write(l.fd, record + sent % sizeof record, sizeof record - sent % sizeof record);
		stuck = n > 0 ? 0 : stuck + 1;
		sent += n > 0 ? (size_t)n : 0;
		ck_assert_uint_lt(sent, 64 << 20);
	}
	size_t got = fake_agent_data_len(d.agents[l.agent], l.stream);
	ck_assert_uint_le(got, 64 * 1024);
	ck_assert_uint_ge(got, 64 * 1024 - 2 * TLS_RECORD_MAX);
	struct connection *c = connection_only();
	ck_assert_uint_lt(stream_kept(&c->busy->client), TLS_RECORD_MAX);
	ck_assert_uint_le(c->busy->kept.cap, 2 * 64 * 1024);
	ck_assert_uint_eq(
		c->busy->holding.len, c->busy->kept.cap + stream_kept(&c->busy->client) + connection_log_len(c));
	for (uint64_t step = 2; step > 0; step--) { /* first a part of them: that much has room then */
		uint64_t records = c->busy->kept.next_record - 2 * (step - 1);
		fake_agent_consumed(d.agents[l.agent], l.stream,
			&(struct frame_consumed){ .client_records = records, .read_sequence = records - 2 }, 0);
		wait_until(fake_agent_data_len(d.agents[l.agent], l.stream) > got);
		got = fake_agent_data_len(d.agents[l.agent], l.stream);
		ck_assert_uint_lt(stream_kept(&c->busy->client), TLS_RECORD_MAX);
	}
	close(l.fd);
}
END_TEST

START_TEST(a_record_that_is_not_whole_is_accounted_until_it_is)
{
	uint8_t record[RECORD_OF(1000)];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	struct connection *c = connection_only();
	record_make(record, TLS_APPLICATION_DATA, 1000, 7);
	write_all(l.fd, record, 400);
	wait_until(d.rw->home.partials.len == 400);
	uint64_t since_ms = c->busy->partial.since_ms;
	write_all(l.fd, record + 400, 100);
	wait_until(d.rw->home.partials.len == 500);
	ck_assert_uint_eq(c->busy->partial.since_ms, since_ms);
	write_all(l.fd, record + 500, sizeof record - 500);
	wait_until(d.rw->home.partials.len == 0);
	ck_assert_ptr_null(TAILQ_FIRST(&d.rw->home.partials.by_age));
	/* its time is over */
	write_all(l.fd, record, 400);
	wait_until(d.rw->home.partials.len == 400);
	c->busy->partial.since_ms -= PARTIALS_LIMIT_MS + 1;
	client_expect_reset(l.fd);
	ck_assert_uint_eq(d.rw->home.partials.len, 0);
	ck_assert_uint_eq(counted(&d.rw->home.counters.ended[END_OVERLOADED]), 1);
	close(l.fd);
}
END_TEST

START_TEST(several_records_travel_in_one_frame)
{
	uint8_t records[10 * RECORD_OF(100)];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	for (unsigned i = 0; i < 10; i++)
		record_make(records + i * RECORD_OF(100), TLS_APPLICATION_DATA, 100, (uint8_t)i);
	write_all(l.fd, records, sizeof records);
	struct fake_frame *f = frame_at(l.agent, FRAME_DATA);
	ck_assert_uint_eq(f->len, sizeof records);
	ck_assert_mem_eq(f->payload, records, sizeof records);
	free(f);
	close(l.fd);
}
END_TEST

START_TEST(a_slow_client_costs_one_window)
{
	static uint8_t record[RECORD_OF(16000)];
	size_t sent = 0, told = 0;
	const size_t window = 64 * 1024;

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	struct connection *c = connection_only();
	int small = 256 * 1024; /* one with less room than a segment the kernel serves every 200 ms only */
	setsockopt(l.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	/* an agent that obeys its credit, until it has none for a while */
	for (unsigned stuck = 0; stuck < 200; turn()) {
		struct fake_frame *f = fake_agent_take(d.agents[l.agent], FRAME_ACCEPTED);
		struct frame_accepted a = { .drained = told };
		if (f)
			frame_accepted_read(&(struct frame){ .len = f->len, .payload = f->payload }, &a);
		free(f);
		told = a.drained;
		stuck = sent - told + sizeof record <= window ? 0 : stuck + 1;
		if (stuck == 0) {
			fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
			sent += sizeof record;
		}
		ck_assert_uint_le(stream_pending(&c->busy->client), window);
		ck_assert_uint_lt(sent, 64 << 20);
	}
	ck_assert_uint_eq(c->now.queued, RECORD_OF(100) + sent);
	/* it goes on as the client reads */
	while (fake_agent_count(d.agents[l.agent], FRAME_ACCEPTED) == 0) {
		static uint8_t waste[65536];
		int end;
		read_some(l.fd, waste, sizeof waste, &end);
		turn();
	}
	close(l.fd);
}
END_TEST

START_TEST(an_agent_that_ignores_its_credit_loses_that_connection)
{
	static uint8_t record[RECORD_OF(16000)];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 0);
	int small = 4096;
	setsockopt(l.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	record_make(record, TLS_APPLICATION_DATA, 16000, 7);
	for (unsigned i = 0; i < 400 && d.rw->home.connections; i++) {
		fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record);
		turn();
	}
	wait_until(counted(&d.rw->home.counters.ended[END_LINK_VIOLATION]) == 1);
	client_expect_reset(l.fd);
	close(l.fd);
}
END_TEST

START_TEST(a_committed_key_update_is_acknowledged_in_the_same_turn)
{
	struct frame_accepted a;

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	server_send(&l, TLS_APPLICATION_DATA, 300, 5, 0);
	ck_assert_uint_eq(fake_agent_count(d.agents[l.agent], FRAME_ACCEPTED), 0);
	server_send(&l, TLS_APPLICATION_DATA, 22, 6, FRAME_LAST_OF_WRITE_GENERATION);
	struct fake_frame *f = frame_at(l.agent, FRAME_ACCEPTED);
	ck_assert_int_eq(frame_accepted_read(&(struct frame){ .len = f->len, .payload = f->payload }, &a), 0);
	ck_assert_uint_eq(a.server_records, 3);
	ck_assert_uint_eq(a.write_generation, 1);
	free(f);
	close(l.fd);
}
END_TEST

START_TEST(a_part_of_a_record_from_an_agent_breaks_the_link)
{
	uint8_t record[RECORD_OF(100)];

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 0);
	record_make(record, TLS_APPLICATION_DATA, 100, 5);
	fake_agent_send(d.agents[l.agent], l.stream, FRAME_DATA, 0, record, sizeof record - 1);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counted(&d.rw->home.counters.link_violations), 1);
	close(l.fd);
}
END_TEST

START_TEST(a_frame_that_the_state_does_not_know_breaks_the_link)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 0);
	Cssl__LinkAdopted a = CSSL__LINK_ADOPTED__INIT;
	fake_agent_say(d.agents[l.agent], l.stream, FRAME_ADOPTED, &a.base);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counted(&d.rw->home.counters.link_violations), 1);
	close(l.fd);
}
END_TEST

START_TEST(consuming_what_was_never_sent_breaks_the_link)
{
	dispatcher_start(NULL);
	connection_keep(&l, "sl", 0);
	fake_agent_consumed(
		d.agents[l.agent], l.stream, &(struct frame_consumed){ .client_records = 3, .read_sequence = 1 }, 0);
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counted(&d.rw->home.counters.link_violations), 1);
	close(l.fd);
}
END_TEST

START_TEST(an_owner_that_miscounts_its_records_breaks_the_link)
{
	dispatcher_start(NULL);
	hello_send(&l, "sl", NULL);
	server_send(&l, TLS_HANDSHAKE, 100, 2, 0);
	l.client_records = 1;
	l.server_records = 2;
	live_say(&l, FRAME_KEPT, 1, CSSL__BACKEND_HALF__BACKEND_NONE, "copy");
	client_expect_reset(l.fd);
	ck_assert_uint_eq(counted(&d.rw->home.counters.link_violations), 1);
	close(l.fd);
}
END_TEST

START_TEST(a_bad_record_header_is_the_owners_to_answer)
{
	struct frame_violation v;

	dispatcher_start(NULL);
	connection_keep(&l, "sl", 1);
	client_send_record(l.fd, TLS_APPLICATION_DATA, 10, 1);
	write_all(l.fd, "\x1a\x03\x03\x00\x05hello", 10);
	struct fake_frame *data = frame_at(l.agent, FRAME_DATA);
	ck_assert_uint_eq(data->len, RECORD_OF(10));
	struct fake_frame *f = frame_at(l.agent, FRAME_VIOLATION);
	ck_assert_int_eq(frame_violation_read(&(struct frame){ .len = f->len, .payload = f->payload }, &v), 0);
	ck_assert_uint_eq(v.type, 0x1a);
	ck_assert_uint_eq(v.version, 0x0303);
	ck_assert_uint_eq(v.length, 5);
	/* what follows is not looked at */
	client_send_record(l.fd, TLS_APPLICATION_DATA, 10, 1);
	no_frame(FRAME_DATA);
	/* the owner's alert comes through, then the end */
	server_send(&l, TLS_ALERT, 2, 2, 0);
	fake_agent_end(d.agents[l.agent], l.stream, END_RECORD_VIOLATION, 0);
	client_expect_fin(l.fd);
	ck_assert_uint_eq(counted(&d.rw->home.counters.client_violations), 1);
	free(data);
	free(f);
	close(l.fd);
}
END_TEST

UNIT(connection)
{
	const TTest *const facts[] = {
		first_bytes_that_are_no_handshake_record_end_it,
		a_request_without_tls_is_told_so,
		a_hello_is_dispatched_only_when_it_is_whole,
		open_says_who_the_client_is,
		listeners_of_mode_sl_or_without_migration_ask_to_keep,
		round_robin_makes_as_many_handshakes_on_each_agent_and_all_but_the_affinity_agent_hand_off,
		client_records_are_kept_until_they_are_consumed,
		an_idle_connection_holds_no_buffer,
		a_client_is_not_read_beyond_the_window,
		a_record_that_is_not_whole_is_accounted_until_it_is,
		several_records_travel_in_one_frame,
		a_slow_client_costs_one_window,
		an_agent_that_ignores_its_credit_loses_that_connection,
		a_committed_key_update_is_acknowledged_in_the_same_turn,
		a_part_of_a_record_from_an_agent_breaks_the_link,
		a_frame_that_the_state_does_not_know_breaks_the_link,
		consuming_what_was_never_sent_breaks_the_link,
		an_owner_that_miscounts_its_records_breaks_the_link,
		a_bad_record_header_is_the_owners_to_answer,
	};

	return dispatcher_suite_run("connection", facts, FACTS_COUNT(facts));
}
