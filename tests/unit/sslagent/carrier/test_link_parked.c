/* test_link_parked.c: facts of streams that outlive their link. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/stream/stream.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "sslagent/carrier/link.h"
#include "sslagent/counters.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

static Cssl__LinkRefused__Reason reason_of(const struct frame *f)
{
	Cssl__LinkRefused *refused = cssl__link_refused__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(refused);
	Cssl__LinkRefused__Reason reason = refused->reason;
	cssl__link_refused__free_unpacked(refused, NULL);
	return reason;
}

/* What @x has of stream 1: frames, and bytes of DATA. */
static unsigned frames_of_stream(const struct peer *x, uint64_t *bytes)
{
	unsigned n = 0;

	*bytes = 0;
	for (unsigned i = 0; i < x->count; i++) {
		if (x->frames[i].stream != 1 || x->frames[i].type == FRAME_REATTACHED)
			continue;
		n++;
		*bytes += x->frames[i].type == FRAME_DATA ? x->frames[i].len : 0;
	}
	return n;
}

static void send_accepted(struct peer *x, uint64_t drained, unsigned frames)
{
	const struct frame_accepted a = { .drained = drained, .received = frames };
	uint8_t payload[FRAME_ACCEPTED_MAX];
	const size_t len = frame_accepted_write(payload, &a);

	send_frame(x, 1, FRAME_ACCEPTED, payload, len);
}

static void lose_peer(struct peer *x)
{
	close(x->fd);
	x->fd = -1;
	wait_until(carriers.parked != NULL);
}

/* It is at its backend. */
static void begin_request(void)
{
	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
	begin_client(&p);
	memory_client_write(p.client, GET, strlen(GET));
	peers_until(backend_waits());
	backend_take();
	backend_hear(GET);
	turns(4);
	peer_turn(&p);
}

static void lose_link_amid_a_request(void)
{
	begin_request();
	lose_peer(&p);
}

/* Frames number @from and later of stream 1 are new for the client. */
static void feed_from(struct peer *x, unsigned from)
{
	unsigned n = 0;

	x->client = p.client;
	p.client = NULL;
	for (unsigned i = 0; i < x->count; i++)
		if (x->frames[i].stream == 1 && x->frames[i].type != FRAME_REATTACHED && ++n > from)
			feed_client(x, &x->frames[i]);
}

START_TEST(a_proven_stream_goes_on_with_the_same_frames)
{
	struct frame_reattached answer;
	uint64_t had_bytes, bytes;

	lose_link_amid_a_request();
	unsigned had = frames_of_stream(&p, &had_bytes);
	ck_assert_uint_eq(a1.worker.table.count, 1);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 1);
	peers_until(count_of(&q, FRAME_REATTACHED) == 1 && frames_of_stream(&q, &bytes) == had);
	ck_assert_uint_eq(bytes, had_bytes);
	ck_assert_int_eq(frame_reattached_read(last_of(&q, FRAME_REATTACHED), &answer), 0);
	ck_assert_uint_eq(answer.frame, 1);
	ck_assert_uint_eq(answer.bytes, 0);
	ck_assert_uint_gt(answer.client_records, 1);
	send_accepted(&q, had_bytes, had);
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	peers_until(frames_of_stream(&q, &bytes) > had && bytes > had_bytes + strlen(ANSWER));
	feed_from(&q, had);
	ck_assert_uint_eq(q.got_len, strlen(ANSWER));
	ck_assert_mem_eq(q.got, ANSWER, strlen(ANSWER));
	ck_assert_uint_eq(counted(COUNT_STREAMS_REATTACHED), 1);
	close_peers();
}
END_TEST

/* RAgent may have given this link up, too, and the connection to another agent. */
START_TEST(a_stream_is_paused_until_ragent_goes_on_with_it)
{
	struct connection_id id;
	uint64_t had_bytes, bytes;

	lose_link_amid_a_request();
	const unsigned had = frames_of_stream(&p, &had_bytes);
	memcpy(id.bytes, id_bytes, sizeof id.bytes);
	struct connection *c = connection_table_find(&a1.worker.table, &id);
	const uint64_t sent = c->sent;
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 1);
	peers_until(count_of(&q, FRAME_REATTACHED) == 1 && frames_of_stream(&q, &bytes) == had);
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	turns(8);
	ck_assert_uint_eq(c->sent, sent);
	send_accepted(&q, had_bytes, had);
	peers_until(c->sent > sent);
	close_peers();
}
END_TEST

START_TEST(a_parked_stream_takes_no_answer_and_opens_nothing)
{
	struct connection *c;
	struct connection_id id;

	lose_link_amid_a_request();
	memcpy(id.bytes, id_bytes, sizeof id.bytes);
	c = connection_table_find(&a1.worker.table, &id);
	const uint64_t sent = c->sent;
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	turns(8);
	ck_assert_uint_eq(c->sent, sent);
	peer_close(&p);
	wait_until(carriers.parked == NULL);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	ck_assert_int_eq(read_to_end(backend), -1);
}
END_TEST

/* RAgent reads no more, and its last questions come one after the other. */
START_TEST(a_stream_waits_although_messages_could_not_be_written)
{
	static const uint8_t token[8];

	begin_request();
	ck_assert_int_eq(shutdown(p.fd, SHUT_RD), 0);
	for (unsigned i = 0; i < 4; i++) {
		send_frame(&p, 0, FRAME_PING, token, sizeof token);
		turns(4);
	}
	lose_peer(&p);
	ck_assert_uint_eq(a1.worker.table.count, 1);
	ck_assert_uint_eq(counted(COUNT_STREAMS_PARKED), 1);
	ck_assert_uint_eq(counted(COUNT_LINK_VIOLATIONS), 0);
	close_peers();
}
END_TEST

/* RAgent gives the connection to another agent after its own `lost` (law 7). */
START_TEST(a_parked_stream_is_over_before_its_ragent_thinks_the_agent_lost)
{
	const unsigned lost_ms = 1000;

	ck_assert_uint_gt(a1.worker.conf->health.lost_ms, 2 * lost_ms);
	begin_request();
	set_lost_ms(lost_ms);
	const uint64_t end_ms = now_ms() + lost_ms;
	lose_peer(&p);
	wait_until(carriers.parked == NULL);
	ck_assert_uint_lt(now_ms(), end_ms);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	close_peers();
}
END_TEST

static void time_link_out(void)
{
	carrier_link_fail(carriers.links, UV_ETIMEDOUT);
	wait_until(carriers.parked != NULL);
}

/* RAgent does not read, and there is no more room for the output. */
START_TEST(a_stream_outlives_a_link_without_memory)
{
	begin_request();
	carrier_link_fail(carriers.links, _i == 0 ? UV_ENOMEM : CSSL_E_NO_MEMORY);
	wait_until(carriers.links == NULL);
	ck_assert_uint_eq(a1.worker.table.count, 1);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 1);
	peers_until(count_of(&q, FRAME_REATTACHED) == 1);
	close_peers();
}
END_TEST

/* RAgent reads nothing of its link, and its keeper has not killed it yet. */
START_TEST(a_stream_of_a_link_that_timed_out_waits_for_the_end_of_a_hang)
{
	const unsigned lost_ms = 300, hang_ms = 1500;

	begin_request();
	set_lost_ms(lost_ms);
	((struct conf *)a1.worker.conf)->health.lost_ms = lost_ms;
	((struct conf *)a1.worker.conf)->ragents[0].hang_ms = hang_ms;
	const uint64_t begun_ms = now_ms();
	time_link_out();
	while (carriers.parked && now_ms() < begun_ms + 2 * hang_ms)
		turns(1);
	ck_assert_ptr_null(carriers.parked);
	ck_assert_uint_ge(now_ms() - begun_ms, hang_ms - lost_ms);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	close_peers();
}
END_TEST

/* RAgent's next process restores many connections, and has not asked for this one yet. */
START_TEST(a_parked_stream_waits_as_long_as_the_proof_is_repeated)
{
	const unsigned lost_ms = 300;

	begin_request();
	set_lost_ms(lost_ms);
	lose_peer(&p);
	peer_open(&q);
	const uint64_t end_ms = now_ms() + 2 * lost_ms;
	while (now_ms() < end_ms) {
		send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
		turns(1);
		peer_turn(&q);
	}
	ck_assert_ptr_nonnull(carriers.parked);
	send_reattach(&q, 1);
	peers_until(count_of(&q, FRAME_REATTACHED) == 1);
	close_peers();
}
END_TEST

/* Said once, it only shows that this link is of the next process. And another RAgent shows another one. */
START_TEST(a_parked_stream_does_not_wait_for_a_proof_that_is_not_repeated)
{
	static const uint8_t other[FRAME_PROOF_LEN] = "another RAgent";

	begin_request();
	set_lost_ms(300);
	lose_peer(&p);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, _i == 0 ? proof : other, sizeof proof);
	while (carriers.parked) {
		if (_i == 1)
			send_frame(&q, 0, FRAME_PROOF, other, sizeof other);
		turns(1);
		peer_turn(&q);
	}
	ck_assert_uint_eq(a1.worker.table.count, 0);
	close_peers();
}
END_TEST

/* The next process may have read nothing of a handshake yet, or not that the connection is frozen. */
START_TEST(a_handshake_and_what_is_frozen_wait)
{
	Cssl__LinkMove move = CSSL__LINK_MOVE__INIT;

	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
	if (_i == 0) {
		send_open(&p, 1, "http");
		peers_until(a1.worker.table.count == 1);
	} else {
		begin_client(&p);
		move.target = (char *)"a2";
		move.next_epoch = 2;
		send_message(&p, 1, FRAME_MOVE, &move.base);
		peers_until(count_of(&p, FRAME_HANDED_OFF) == 1);
	}
	lose_peer(&p);
	ck_assert_uint_eq(a1.worker.table.count, 1);
	ck_assert_uint_eq(counted(COUNT_STREAMS_PARKED), 1);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	send_reattach(&q, 1);
	peers_until(count_of(&q, FRAME_REATTACHED) == 1 && count_of(&q, FRAME_HANDED_OFF) == (unsigned)_i);
	ck_assert_uint_eq(counted(COUNT_STREAMS_REATTACHED), 1);
	close_peers();
}
END_TEST

/* SSL_ID on @x after a loss, with the copy of KEPT. */
static void ask_to_adopt(struct peer *x, uint64_t write_sequence)
{
	const struct frame *f = last_of(&p, FRAME_KEPT);
	Cssl__LinkLive *kept = cssl__link_live__unpack(NULL, f->len, f->payload);
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;

	ck_assert_ptr_nonnull(kept);
	kept->position->write_sequence = write_sequence;
	m.connection_id = (ProtobufCBinaryData){ sizeof id_bytes, id_bytes };
	m.epoch = 2;
	m.cause = CSSL__CAUSE__CAUSE_TAKEOVER;
	m.position = kept->position;
	m.sealed_copy = kept->sealed_copy;
	m.listener = (char *)"http";
	m.endpoints = fake_endpoints();
	send_message(x, 7, FRAME_SSL_ID, &m.base);
	cssl__endpoints__free_unpacked(m.endpoints, NULL);
	cssl__link_live__free_unpacked(kept, NULL);
}

enum answer { CONFIRMED, UNCONFIRMED };

/* The client has an answer. RAgent has confirmed all frames, or none. Returns the number of the next record. */
static uint64_t lose_link_behind_an_answer(enum answer answer)
{
	struct connection_id id;
	uint64_t bytes;

	begin_request();
	set_lost_ms(1000);
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	peers_until(p.got_len == strlen(ANSWER));
	turns(4);
	peer_turn(&p);
	const unsigned frames = frames_of_stream(&p, &bytes);
	if (answer == CONFIRMED) {
		send_accepted(&p, bytes, frames);
		wait_until(a1.worker.held.len == 0);
	}
	memcpy(id.bytes, id_bytes, sizeof id.bytes);
	const struct connection *c = connection_table_find(&a1.worker.table, &id);
	const uint64_t next = live_position(c->live).write_sequence;
	lose_peer(&p);
	return next;
}

/* RAgent gave this ownership up. It lies of the position, or does not know more. */
START_TEST(an_owner_without_a_link_gives_way_and_is_continued_above_what_was_confirmed)
{
	static const struct {
		enum answer answer;
		unsigned less, adopted;
	} rows[] = { { CONFIRMED, 0, 1 }, { CONFIRMED, 1, 0 }, { UNCONFIRMED, 1, 1 } };

	const uint64_t next = lose_link_behind_an_answer(rows[_i].answer);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	ask_to_adopt(&q, next - rows[_i].less);
	peers_until(count_of(&q, FRAME_ADOPTED) + count_of(&q, FRAME_REFUSED) == 1);
	ck_assert_uint_eq(count_of(&q, FRAME_ADOPTED), rows[_i].adopted);
	ck_assert_uint_eq(counted(COUNT_SEQUENCES_REFUSED), !rows[_i].adopted);
	if (!rows[_i].adopted)
		ck_assert_int_eq(reason_of(last_of(&q, FRAME_REFUSED)), CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE);
	ck_assert_uint_eq(a1.worker.table.count, rows[_i].adopted);
	close_peers();
}
END_TEST

START_TEST(a_parked_stream_that_gave_way_is_counted_and_the_last_one_ends_its_link)
{
	const uint64_t next = lose_link_behind_an_answer(CONFIRMED);

	peer_open(&q);
	ask_to_adopt(&q, next);
	peers_until(count_of(&q, FRAME_ADOPTED) == 1);
	ck_assert_ptr_null(carriers.parked);
	ck_assert_uint_eq(counted(COUNT_STREAMS_PARKED), 1);
	ck_assert_uint_eq(counted(COUNT_STREAMS_ADOPTED_ANEW), 1);
	close_peers();
	ck_assert_uint_eq(counted(COUNT_STREAMS_REATTACHED) + counted(COUNT_STREAMS_NOT_REATTACHED), 0);
}
END_TEST

/* A stream that waits is no reason for an agent that leaves to adopt its connection. */
START_TEST(an_agent_that_leaves_does_not_adopt_what_it_owns)
{
	lose_link_amid_a_request();
	peer_open(&q);
	agent_leaves = 1;
	ask_to_adopt(&q, 0);
	peers_until(count_of(&q, FRAME_REFUSED) == 1);
	ck_assert_int_eq(reason_of(last_of(&q, FRAME_REFUSED)), CSSL__LINK_REFUSED__REASON__LEAVING);
	agent_leaves = 0;
	close_peers();
}
END_TEST

/* The connection goes on, but not without its link. */
START_TEST(above_the_budget_held_frames_give_way_and_no_connection)
{
	struct connection_home *home = &a1.worker;
	uint64_t bytes;

	begin_request();
	ck_assert_uint_gt(home->held.len, 0);
	home->holdings.limit = home->held.len - 1;
	unsigned had = frames_of_stream(&p, &bytes);
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	peers_until(frames_of_stream(&p, &bytes) > had);
	ck_assert_uint_eq(home->held.len, 0);
	ck_assert_uint_eq(home->table.count, 1);
	ck_assert_uint_eq(counted(COUNT_HELD_GIVEN_UP), 1);
	lose_peer(&p);
	ck_assert_uint_eq(home->table.count, 0);
	home->holdings.limit = 0;
	close_peers();
}
END_TEST

START_TEST(what_is_confirmed_or_over_counts_no_more)
{
	uint64_t bytes;

	begin_request();
	unsigned had = frames_of_stream(&p, &bytes);
	send_accepted(&p, bytes, had);
	wait_until(a1.worker.held.len == 0);
	ck_assert_int_eq(write(backend, ANSWER, strlen(ANSWER)), (ssize_t)strlen(ANSWER));
	peers_until(frames_of_stream(&p, &bytes) > had);
	ck_assert_uint_gt(a1.worker.held.len, 0);
	close_peers();
	ck_assert_uint_eq(a1.worker.held.len, 0);
}
END_TEST

/* Another RAgent shows another proof; another owner has another epoch. */
START_TEST(nobody_else_gets_a_parked_stream)
{
	lose_link_amid_a_request();
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, _i == 0 ? (const uint8_t[FRAME_PROOF_LEN]){ 1 } : proof, sizeof proof);
	send_reattach(&q, _i == 1 ? 2 : 1);
	peers_until(count_of(&q, FRAME_REFUSED) == 1);
	ck_assert_int_eq(reason_of(last_of(&q, FRAME_REFUSED)), CSSL__LINK_REFUSED__REASON__NO_STREAM);
	close_peers();
}
END_TEST

UNIT(link_parked)
{
	const struct connection_fact facts[] = {
		{ a_proven_stream_goes_on_with_the_same_frames, 0 },
		{ a_stream_is_paused_until_ragent_goes_on_with_it, 0 },
		{ a_parked_stream_takes_no_answer_and_opens_nothing, 0 },
		{ a_stream_waits_although_messages_could_not_be_written, 0 },
		{ a_parked_stream_is_over_before_its_ragent_thinks_the_agent_lost, 0 },
		{ a_stream_of_a_link_that_timed_out_waits_for_the_end_of_a_hang, 0 },
		{ a_stream_outlives_a_link_without_memory, 2 },
		{ a_parked_stream_waits_as_long_as_the_proof_is_repeated, 0 },
		{ a_parked_stream_does_not_wait_for_a_proof_that_is_not_repeated, 2 },
		{ a_handshake_and_what_is_frozen_wait, 2 },
		{ an_owner_without_a_link_gives_way_and_is_continued_above_what_was_confirmed, 3 },
		{ a_parked_stream_that_gave_way_is_counted_and_the_last_one_ends_its_link, 0 },
		{ an_agent_that_leaves_does_not_adopt_what_it_owns, 0 },
		{ above_the_budget_held_frames_give_way_and_no_connection, 0 },
		{ what_is_confirmed_or_over_counts_no_more, 0 },
		{ nobody_else_gets_a_parked_stream, 2 },
	};

	return connection_suite_run("link_parked", facts, FACTS_LEN(facts));
}
