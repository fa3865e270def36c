/* test_link_ends.c: facts of the end of streams that outlive their link: END is held until RAgent answers it. */
#include <string.h>
#include <unistd.h>

#include "proto/scratch.h"
#include "sslagent/carrier/link.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

static const uint8_t done = END_DONE;

static void end_stream(uint32_t stream)
{
	const unsigned had = count_of(&p, FRAME_END);

	send_open(&p, stream, "http");
	send_frame(&p, stream, FRAME_FINISH, &done, 1);
	peers_until(count_of(&p, FRAME_END) == had + 1);
	ck_assert_uint_eq(a1.worker.table.count, 0);
}

static uint32_t streams_left(void)
{
	return carriers.links->streams.count;
}

static void send_accepted(uint32_t stream, uint64_t drained, uint64_t received)
{
	const struct frame_accepted a = { .drained = drained, .received = received };
	uint8_t payload[FRAME_ACCEPTED_MAX];
	const size_t len = frame_accepted_write(payload, &a);

	send_frame(&p, stream, FRAME_ACCEPTED, payload, len);
}

static void reattach_stream(struct peer *x, uint32_t stream)
{
	struct frame_reattach wanted = { .stream = 1, .epoch = 1 };
	uint8_t payload[FRAME_REATTACH_LEN];

	memcpy(wanted.connection_id, id_bytes, sizeof wanted.connection_id);
	frame_reattach_write(payload, &wanted);
	send_frame(x, stream, FRAME_REATTACH, payload, sizeof payload);
}

static void reattach_on_another_link(void)
{
	close(p.fd);
	p.fd = -1;
	wait_until(carriers.parked != NULL);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	reattach_stream(&q, 1);
}

/* --- the answer --- */

START_TEST(an_end_is_held_until_close_or_detach)
{
	static const enum frame_type answers[] = { FRAME_CLOSE, FRAME_DETACH };

	open_proven_peers();
	end_stream(1);
	turns(8);
	ck_assert_uint_eq(streams_left(), 1);
	ck_assert_uint_gt(a1.worker.held.len, 0);
	send_frame(&p, 1, answers[_i], &done, answers[_i] == FRAME_CLOSE ? 1 : 0);
	wait_until(streams_left() == 0);
	ck_assert_uint_eq(a1.worker.held.len, 0);
	ck_assert_uint_eq(counted(COUNT_FRAMES_STALE), 0);
	close_peers();
}
END_TEST

START_TEST(without_a_proof_nothing_is_held)
{
	open_peers();
	end_stream(1);
	ck_assert_uint_eq(streams_left(), 0);
	close_peers();
}
END_TEST

/* What crosses END on its way has no effect. */
START_TEST(a_stream_that_is_over_takes_nothing_but_the_answer_and_accepted)
{
	const uint8_t record[] = { 0x17, 3, 3, 0, 1, 0 };
	uint64_t all = 0;

	open_proven_peers();
	end_stream(1);
	for (unsigned i = 0; i < p.count; i++)
		all += p.frames[i].stream == 1;
	send_frame(&p, 1, FRAME_DATA, record, sizeof record);
	send_frame(&p, 1, FRAME_FIN, NULL, 0);
	send_frame(&p, 1, FRAME_FINISH, &done, 1);
	turns(4);
	ck_assert_uint_eq(streams_left(), 1);
	send_accepted(1, UINT32_MAX, all);
	wait_until(a1.worker.held.len == 0);
	ck_assert_uint_eq(streams_left(), 1);
	send_frame(&p, 1, FRAME_CLOSE, &done, 1);
	wait_until(streams_left() == 0);
	ck_assert_uint_eq(counted(COUNT_LINK_VIOLATIONS), 0);
	close_peers();
}
END_TEST

/* Stream 1 is frozen; its owner before was lost in the middle of an answer, so the next one can only end it. */
static void adopt_to_end(const struct frame *handed_off, uint32_t stream)
{
	Cssl__LinkLive *live = cssl__link_live__unpack(NULL, handed_off->len, handed_off->payload);
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;

	ck_assert_ptr_nonnull(live);
	m.connection_id = (ProtobufCBinaryData){ sizeof id_bytes, id_bytes };
	m.epoch = 2;
	m.cause = CSSL__CAUSE__CAUSE_TAKEOVER;
	m.response_state = CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED;
	m.position = live->position;
	m.sealed_copy = live->sealed_copy;
	m.listener = (char *)"http";
	m.endpoints = fake_endpoints();
	send_message(&p, stream, FRAME_SSL_ID, &m.base);
	cssl__endpoints__free_unpacked(m.endpoints, NULL);
	cssl__link_live__free_unpacked(live, NULL);
}

START_TEST(an_adopter_that_ends_its_connection_at_once_holds_the_end)
{
	Cssl__LinkMove move = CSSL__LINK_MOVE__INIT;

	open_proven_peers();
	begin_client(&p);
	move.target = (char *)"a2";
	move.next_epoch = 2;
	send_message(&p, 1, FRAME_MOVE, &move.base);
	peers_until(count_of(&p, FRAME_HANDED_OFF) == 1);
	adopt_to_end(last_of(&p, FRAME_HANDED_OFF), 7);
	peers_until(count_of(&p, FRAME_ADOPTED) == 1 && count_of(&p, FRAME_END) == 1);
	ck_assert_uint_eq(a1.worker.table.count, 0);
	ck_assert_ptr_nonnull(streams_find(&carriers.links->streams, 7));
	send_frame(&p, 7, FRAME_CLOSE, &done, 1);
	wait_until(streams_left() == 0);
	close_peers();
}
END_TEST

/* --- another link --- */

START_TEST(an_end_comes_again_on_the_next_link)
{
	open_proven_peers();
	end_stream(1);
	reattach_on_another_link();
	peers_until(count_of(&q, FRAME_REATTACHED) == 1 && count_of(&q, FRAME_END) == 1);
	ck_assert_uint_eq(streams_left(), 1);
	send_frame(&q, 1, FRAME_CLOSE, &done, 1);
	wait_until(streams_left() == 0);
	close_peers();
}
END_TEST

/* The greatest holder may be a stream that is over. Then RAgent's next process is told that it is not there. */
START_TEST(above_the_budget_a_stream_that_is_over_gives_way)
{
	open_proven_peers();
	end_stream(1);
	uint8_t first[CONNECTION_ID_LEN];
	memcpy(first, id_bytes, sizeof first);
	a1.worker.holdings.limit = 1;
	end_stream(2);
	ck_assert_uint_ge(counted(COUNT_HELD_GIVEN_UP), 1);
	ck_assert_uint_eq(a1.worker.held.len, 0);
	a1.worker.holdings.limit = 0;
	memcpy(id_bytes, first, sizeof first);
	reattach_on_another_link();
	peers_until(count_of(&q, FRAME_REFUSED) == 1);
	close_peers();
}
END_TEST

/* --- the cause --- */

static void fail_handshake(void)
{
	static const uint8_t hello[] = { 22, 3, 1, 0, 4, 1, 0, 0, 0 };

	open_proven_peers();
	send_open(&p, 1, "http");
	send_frame(&p, 1, FRAME_DATA, hello, sizeof hello);
	peers_until(count_of(&p, FRAME_END) == 1);
}

START_TEST(ragent_hears_why_a_handshake_failed_before_its_end)
{
	const struct frame *said, *end;

	fail_handshake();
	said = last_of(&p, FRAME_RESPONSE);
	end = last_of(&p, FRAME_END);
	Cssl__LinkResponse *told = cssl__link_response__unpack(NULL, said->len, said->payload);
	ck_assert_uint_eq(said->stream, 0);
	ck_assert_uint_eq(told->token, 0); /* no request has this one */
	ck_assert_uint_eq(told->cause->stream, 1);
	ck_assert_str_eq(told->cause->text, "length too short");
	cssl__link_response__free_unpacked(told, NULL);
	ck_assert_uint_eq(end->payload[0], END_HANDSHAKE_FAILED);
	ck_assert_uint_eq(end->len, 1);
	ck_assert(said < end);
	reattach_on_another_link();
	peers_until(count_of(&q, FRAME_END) == 1);
	ck_assert_uint_eq(count_of(&q, FRAME_RESPONSE), 0);
	close_peers();
}
END_TEST

START_TEST(an_end_without_a_failed_handshake_has_no_cause)
{
	open_proven_peers();
	end_stream(1);
	ck_assert_uint_eq(count_of(&p, FRAME_RESPONSE), 0);
	close_peers();
}
END_TEST

UNIT(link_ends)
{
	const struct connection_fact facts[] = {
		{ an_end_is_held_until_close_or_detach, 2 },
		{ without_a_proof_nothing_is_held, 0 },
		{ a_stream_that_is_over_takes_nothing_but_the_answer_and_accepted, 0 },
		{ an_adopter_that_ends_its_connection_at_once_holds_the_end, 0 },
		{ an_end_comes_again_on_the_next_link, 0 },
		{ above_the_budget_a_stream_that_is_over_gives_way, 0 },
		{ ragent_hears_why_a_handshake_failed_before_its_end, 0 },
		{ an_end_without_a_failed_handshake_has_no_cause, 0 },
	};

	return connection_suite_run("link_ends", facts, FACTS_LEN(facts));
}
