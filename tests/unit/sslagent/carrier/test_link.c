/* test_link.c: facts of an agent's end of a link: what each frame does, and what is lost with a link. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/scratch.h"
#include "sslagent/carrier/link.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

/* --- the link itself --- */

START_TEST(a_link_says_its_load_at_once_and_after_each_ping)
{
	uint8_t token[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	open_peers();
	peers_until(count_of(&p, FRAME_LOAD) > 0);
	const unsigned before = count_of(&p, FRAME_LOAD);
	send_frame(&p, 0, FRAME_PING, token, sizeof token);
	peers_until(count_of(&p, FRAME_LOAD) > before && count_of(&p, FRAME_PONG) > 0);
	ck_assert_mem_eq(last_of(&p, FRAME_PONG)->payload, token, sizeof token);
	Cssl__LinkLoad *load =
		cssl__link_load__unpack(NULL, last_of(&p, FRAME_LOAD)->len, last_of(&p, FRAME_LOAD)->payload);
	ck_assert(load && load->ready);
	cssl__link_load__free_unpacked(load, NULL);
	close_peers();
}
END_TEST

START_TEST(leaving_is_said)
{
	open_peers();
	carrier_home_leave(&carriers);
	peers_until(count_of(&p, FRAME_LEAVING) == 1);
	close_peers();
}
END_TEST

START_TEST(bytes_that_came_behind_the_opening_are_frames)
{
	struct link_arrival *a = calloc(1, sizeof *a);
	int fds[2];

	q.fd = -1;
	memset(&p, 0, sizeof p);
	socket_pair(OVER_UNIX, fds);
	p.fd = fds[1];
	a->fd = fds[0];
	a->memory = -1;
	a->keys.protection = LINK_TRUSTED;
	a->early_len = FRAME_HEADER_LEN + 8;
	a->early = calloc(1, a->early_len);
	frame_header_write(a->early, 0, FRAME_PING, 0, 8);
	a->home = &carriers;
	carrier_link_begin(a);
	peers_until(count_of(&p, FRAME_PONG) == 1);
	close_peers();
}
END_TEST

START_TEST(numbers_of_links_are_not_used_again)
{
	open_peers();
	uint64_t first = carriers.links->number;
	ck_assert_ptr_eq(carrier_home_find_link(&carriers, first), carriers.links);
	close_peers();
	ck_assert_ptr_null(carrier_home_find_link(&carriers, first));
	open_peers();
	ck_assert_uint_ne(carriers.links->number, first);
	close_peers();
}
END_TEST

/* --- streams --- */

START_TEST(a_stream_carries_a_connection_to_its_end)
{
	open_peers();
	begin_client(&p);
	ck_assert_uint_eq(a1.worker.table.count, 1);
	memory_client_write(p.client, GET, strlen(GET));
	peers_until(backend_waits());
	backend_take();
	backend_hear(GET);
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	peers_until(p.got_len == strlen(ANSWER));
	ck_assert_mem_eq(p.got, ANSWER, strlen(ANSWER));
	send_frame(&p, 1, FRAME_FIN, NULL, 0);
	peers_until(count_of(&p, FRAME_END) == 1);
	ck_assert_uint_eq(last_of(&p, FRAME_END)->payload[0], END_DONE);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	close_peers();
}
END_TEST

/* More records than a carrier takes in one go. */
START_TEST(a_frame_may_hold_many_small_records)
{
	open_peers();
	begin_client(&p);
	for (const char *at = GET; *at; at++)
		memory_client_write(p.client, at, 1);
	ck_assert_uint_gt(strlen(GET), 2 * TLS_RECORD_BATCH);
	peers_until(backend_waits());
	backend_take();
	backend_hear(GET);
	close_peers();
}
END_TEST

START_TEST(finish_says_goodbye_with_its_reason)
{
	uint8_t reason = END_DRAIN_TIMEOUT;

	open_peers();
	begin_client(&p);
	send_frame(&p, 1, FRAME_FINISH, &reason, 1);
	peers_until(count_of(&p, FRAME_END) == 1);
	ck_assert_uint_eq(last_of(&p, FRAME_END)->payload[0], END_DRAIN_TIMEOUT);
	peers_until(memory_client_read(p.client, p.got, sizeof p.got) <= 0);
	ck_assert_int_eq(memory_client_end(p.client), CLIENT_CLOSE_NOTIFY);
	close_peers();
}
END_TEST

START_TEST(close_forgets_a_stream_without_an_answer)
{
	uint8_t reason = END_CLIENT_RESET;

	open_peers();
	begin_client(&p);
	send_frame(&p, 1, FRAME_CLOSE, &reason, 1);
	peers_until(a1.worker.table.count == 0);
	ck_assert_uint_eq(a1.cluster.gone, 1);
	turns(4);
	peer_turn(&p);
	ck_assert_uint_eq(count_of(&p, FRAME_END), 0);
	close_peers();
}
END_TEST

START_TEST(what_comes_for_a_stream_that_ended_is_counted_and_ignored)
{
	uint8_t record[] = { 0x17, 3, 3, 0, 1, 0 }, reason = END_DONE, accepted[FRAME_ACCEPTED_LEN] = { 0 };

	open_peers();
	send_frame(&p, 7, FRAME_DATA, record, sizeof record);
	send_frame(&p, 7, FRAME_ACCEPTED, accepted, sizeof accepted);
	send_frame(&p, 7, FRAME_FIN, NULL, 0);
	send_frame(&p, 7, FRAME_DETACH, NULL, 0);
	send_frame(&p, 7, FRAME_CLOSE, &reason, 1);
	begin_client(&p);
	ck_assert(!p.ended);
	ck_assert_uint_eq(counted(COUNT_FRAMES_STALE), 5);
	close_peers();
}
END_TEST

START_TEST(a_listener_nobody_knows_is_refused_and_the_link_goes_on)
{
	open_peers();
	send_open(&p, 5, "unknown");
	peers_until(count_of(&p, FRAME_REFUSED) == 1);
	const struct frame *f = last_of(&p, FRAME_REFUSED);
	Cssl__LinkRefused *refused = cssl__link_refused__unpack(NULL, f->len, f->payload);
	ck_assert_uint_eq(f->stream, 5);
	ck_assert_int_eq(refused->reason, CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER);
	cssl__link_refused__free_unpacked(refused, NULL);
	begin_client(&p);
	close_peers();
}
END_TEST

START_TEST(an_agent_that_leaves_takes_nothing_new)
{
	open_peers();
	agent_leaves = 1;
	send_open(&p, 5, "http");
	peers_until(count_of(&p, FRAME_REFUSED) == 1);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	agent_leaves = 0;
	close_peers();
}
END_TEST

START_TEST(a_link_that_comes_while_it_leaves_is_told)
{
	agent_leaves = 1;
	open_peers();
	peers_until(count_of(&p, FRAME_LEAVING) == 1);
	agent_leaves = 0;
	close_peers();
}
END_TEST

static void send_ssl_id(struct peer *x, uint32_t stream)
{
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;
	Cssl__Position position = CSSL__POSITION__INIT;

	m.connection_id = (ProtobufCBinaryData){ sizeof id_bytes, id_bytes };
	m.epoch = 2;
	m.cause = CSSL__CAUSE__CAUSE_MOVE;
	m.position = &position;
	m.listener = (char *)"http";
	m.endpoints = fake_endpoints();
	send_message(x, stream, FRAME_SSL_ID, &m.base);
	cssl__endpoints__free_unpacked(m.endpoints, NULL);
}

static Cssl__LinkRefused__Reason reason_of(const struct frame *f)
{
	Cssl__LinkRefused *refused = cssl__link_refused__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(refused);
	Cssl__LinkRefused__Reason reason = refused->reason;
	cssl__link_refused__free_unpacked(refused, NULL);
	return reason;
}

START_TEST(an_agent_that_leaves_adopts_only_what_froze_here)
{
	Cssl__LinkMove move = CSSL__LINK_MOVE__INIT;

	open_peers();
	begin_client(&p);
	move.target = (char *)"a2";
	move.next_epoch = 2;
	send_message(&p, 1, FRAME_MOVE, &move.base);
	peers_until(count_of(&p, FRAME_HANDED_OFF) == 1);
	agent_leaves = 1;
	/* This SSL_ID is of the frozen connection, so the agent looks at it. It refuses it, because it has no copy. */
	send_ssl_id(&p, 7);
	peers_until(count_of(&p, FRAME_REFUSED) == 1);
	ck_assert_int_eq(reason_of(last_of(&p, FRAME_REFUSED)), CSSL__LINK_REFUSED__REASON__COPY_BAD);
	id_bytes[1]++;
	send_ssl_id(&p, 9);
	peers_until(count_of(&p, FRAME_REFUSED) == 2);
	ck_assert_int_eq(reason_of(last_of(&p, FRAME_REFUSED)), CSSL__LINK_REFUSED__REASON__LEAVING);
	agent_leaves = 0;
	close_peers();
}
END_TEST

static uint32_t refused_order(void)
{
	const struct frame *f = last_of(&p, FRAME_REFUSED);
	Cssl__LinkRefused *refused = cssl__link_refused__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(refused);
	const uint32_t order = refused->order;
	cssl__link_refused__free_unpacked(refused, NULL);
	return order;
}

static void send_move(uint32_t order, uint32_t deadline_ms)
{
	Cssl__LinkMove move = CSSL__LINK_MOVE__INIT;

	move.target = (char *)"a2";
	move.next_epoch = 2;
	move.deadline_ms = deadline_ms;
	move.order = order;
	send_message(&p, 1, FRAME_MOVE, &move.base);
}

/* RAgent says it again after the link broke, because it may have been lost. */
START_TEST(an_order_that_is_said_again_is_answered_once)
{
	open_peers();
	a1.cluster.host = PASSES_NOT;
	begin_client(&p);
	memory_client_write(p.client, GET, strlen(GET));
	peers_until(backend_waits());
	backend_take();
	backend_hear(GET);
	send_move(7, 0);
	peers_until(count_of(&p, FRAME_REFUSED) == 1);
	ck_assert_uint_eq(refused_order(), 7);
	send_move(8, 30);
	send_move(9, 0);
	peers_until(count_of(&p, FRAME_REFUSED) == 2);
	ck_assert_uint_eq(refused_order(), 9);
	send_move(10, 60000);
	send_move(11, 0);
	turns(8);
	peer_turn(&p);
	ck_assert_uint_eq(count_of(&p, FRAME_REFUSED), 2);
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	peers_until(count_of(&p, FRAME_HANDED_OFF) == 1);
	ck_assert_uint_eq(count_of(&p, FRAME_REFUSED), 2);
	close_peers();
}
END_TEST

/* --- what is lost with a link --- */

START_TEST(a_lost_link_loses_its_streams_and_no_others)
{
	open_peers();
	begin_client(&p);
	peer_open(&q);
	begin_client(&q);
	ck_assert_uint_eq(a1.worker.table.count, 2);
	close(p.fd);
	p.fd = -1;
	peers_until(a1.worker.table.count == 1);
	ck_assert_uint_eq(counted(COUNT_LINK_VIOLATIONS), 0);
	ck_assert_uint_eq(a1.cluster.gone, 0); /* its successor will want the live part */
	memory_client_write(q.client, GET, strlen(GET));
	peers_until(backend_waits());
	close_peers();
}
END_TEST

START_TEST(a_lost_link_resets_the_backends_of_its_streams)
{
	open_peers();
	begin_client(&p);
	memory_client_write(p.client, GET, strlen(GET));
	peers_until(backend_waits());
	backend_take();
	backend_hear(GET);
	close(p.fd);
	p.fd = -1;
	ck_assert_int_eq(read_to_end(backend), -1);
	close_peers();
}
END_TEST

UNIT(link)
{
	const struct connection_fact facts[] = {
		{ a_link_says_its_load_at_once_and_after_each_ping, 0 },
		{ leaving_is_said, 0 },
		{ bytes_that_came_behind_the_opening_are_frames, 0 },
		{ numbers_of_links_are_not_used_again, 0 },
		{ a_stream_carries_a_connection_to_its_end, 0 },
		{ a_frame_may_hold_many_small_records, 0 },
		{ finish_says_goodbye_with_its_reason, 0 },
		{ close_forgets_a_stream_without_an_answer, 0 },
		{ what_comes_for_a_stream_that_ended_is_counted_and_ignored, 0 },
		{ a_listener_nobody_knows_is_refused_and_the_link_goes_on, 0 },
		{ an_agent_that_leaves_takes_nothing_new, 0 },
		{ a_link_that_comes_while_it_leaves_is_told, 0 },
		{ an_agent_that_leaves_adopts_only_what_froze_here, 0 },
		{ an_order_that_is_said_again_is_answered_once, 0 },
		{ a_lost_link_loses_its_streams_and_no_others, 0 },
		{ a_lost_link_resets_the_backends_of_its_streams, 0 },
	};

	return connection_suite_run("link", facts, FACTS_LEN(facts));
}
