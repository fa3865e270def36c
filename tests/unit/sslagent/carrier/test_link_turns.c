/* test_link_turns.c: facts of many streams that go on, on one link, and hold much. */
#include <string.h>
#include <unistd.h>

#include "net/loop/worker.h"
#include "sslagent/carrier/link.h"
#include "sslagent/counters.h"
#include "tests/unit/sslagent/carrier/link_peer.h"
#include "tests/unit/unit.h"

#define MANY         40u
#define HELD_FRAMES  8u
#define HELD_LEN     32768u
#define HELD_OF_ONE  (HELD_FRAMES * HELD_LEN)
#define OUTPUT_BOUND (1024u * 1024u)

static uint8_t first_id; /* the first byte of id_bytes of stream 1 */

/* As if its client took nothing of an answer. */
static void hold_much(uint32_t id)
{
	struct link_stream *s = streams_find(&carriers.links->streams, id);

	for (unsigned i = 0; i < HELD_FRAMES; i++) {
		uint8_t *room = held_room(&s->held, worker_buffers(a1.worker.worker), HELD_LEN, SIZE_MAX);
		ck_assert_ptr_nonnull(room);
		memset(room, (int)(id + i), HELD_LEN);
		ck_assert_ptr_nonnull(held_add(&s->held, FRAME_DATA, 0, HELD_LEN));
	}
}

static void ask_for(struct peer *x, uint32_t id)
{
	struct frame_reattach wanted = { .stream = id, .epoch = 1 };
	uint8_t payload[FRAME_REATTACH_LEN];

	memcpy(wanted.connection_id, id_bytes, sizeof wanted.connection_id);
	wanted.connection_id[0] = (uint8_t)(first_id + id - 1);
	frame_reattach_write(payload, &wanted);
	send_frame(x, id, FRAME_REATTACH, payload, sizeof payload);
}

/* The link ends, and RAgent's next one asks for all. It has read nothing of what comes. */
static void ask_for_many_that_hold_much(void)
{
	open_peers();
	send_frame(&p, 0, FRAME_PROOF, proof, sizeof proof);
	first_id = (uint8_t)(id_bytes[0] + 1);
	for (uint32_t id = 1; id <= MANY; id++)
		send_open(&p, id, "http");
	wait_until(a1.worker.table.count == MANY);
	for (uint32_t id = 1; id <= MANY; id++)
		hold_much(id);
	close(p.fd);
	p.fd = -1;
	wait_until(carriers.parked != NULL);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	for (uint32_t id = 1; id <= MANY; id++)
		ask_for(&q, id);
	wait_until(carriers.parked == NULL);
	turns(4);
}

/* What came on each stream. */
static struct {
	unsigned reattached, refused, data;
} came[MANY + 1];

static unsigned take_what_comes(void)
{
	unsigned answers = 0;

	peer_turn(&q);
	for (unsigned i = 0; i < q.count; i++) {
		const struct frame *f = &q.frames[i];
		if (f->stream == 0 || f->stream > MANY)
			continue;
		came[f->stream].reattached += f->type == FRAME_REATTACHED;
		came[f->stream].refused += f->type == FRAME_REFUSED;
		if (f->type != FRAME_DATA)
			continue;
		ck_assert_uint_eq(came[f->stream].reattached, 1);
		ck_assert_uint_eq(f->payload[0], f->stream + came[f->stream].data++);
	}
	peer_forget_frames(&q);
	for (unsigned id = 1; id <= MANY; id++)
		answers += came[id].refused || came[id].data == HELD_FRAMES;
	return answers;
}

START_TEST(many_streams_that_hold_much_go_on_one_after_another)
{
	ask_for_many_that_hold_much();
	ck_assert_uint_le(framed_pending(&carriers.links->framed), OUTPUT_BOUND + HELD_OF_ONE + 4096);
	peers_until(take_what_comes() == MANY);
	ck_assert_ptr_null(carriers.links->turns.ids);
	ck_assert_uint_eq(counted(COUNT_STREAMS_REATTACHED), MANY);
	close_peers();
}
END_TEST

/* Streams that go on already have so much to say that the output is never short. */
START_TEST(those_that_go_on_already_do_not_delay_the_others_for_ever)
{
	static const uint8_t words[32768];
	struct framed *out;
	size_t said = 0;

	ask_for_many_that_hold_much();
	out = &carriers.links->framed;
	while (take_what_comes() < MANY) {
		for (; framed_pending(out) < 2 * OUTPUT_BOUND; said += sizeof words)
			ck_assert_int_eq(
				framed_send(out, MANY + 1, FRAME_DATA, FRAME_PLAINTEXT, words, sizeof words), 0);
		ck_assert_uint_lt(said, 3 * MANY * HELD_OF_ONE);
		turn();
	}
	peers_until((take_what_comes(), framed_pending(out) == 0));
	close_peers();
}
END_TEST

/* RAgent gives up the last one meanwhile, and the one before holds too much for the agent. */
START_TEST(a_stream_may_end_before_it_goes_on)
{
	const uint8_t reason = END_CLIENT_RESET;

	ask_for_many_that_hold_much();
	struct link_stream *s = streams_find(&carriers.links->streams, MANY - 1);
	held_give_up(&s->held, worker_buffers(a1.worker.worker));
	send_frame(&q, MANY, FRAME_CLOSE, &reason, 1);
	wait_until(a1.worker.table.count == MANY - 1);
	peers_until(take_what_comes() == MANY - 1);
	ck_assert_uint_eq(came[MANY].reattached, 0);
	ck_assert_uint_eq(came[MANY - 1].refused, 1);
	ck_assert_uint_eq(counted(COUNT_STREAMS_REATTACHED), MANY - 2);
	ck_assert_uint_eq(counted(COUNT_REATTACHES_REFUSED), 1);
	ck_assert_uint_eq(a1.worker.table.count, MANY - 2);
	close_peers();
}
END_TEST

/* The next link finds them all. */
START_TEST(a_link_may_end_before_all_go_on)
{
	ask_for_many_that_hold_much();
	const uint64_t had_a_turn = counted(COUNT_STREAMS_REATTACHED);
	ck_assert_uint_lt(had_a_turn, MANY);
	close(q.fd);
	q.fd = -1;
	wait_until(carriers.parked != NULL);
	ck_assert_ptr_null(carriers.parked->turns.ids);
	ck_assert_uint_eq(carriers.parked->streams.count, MANY);
	peer_open(&q);
	send_frame(&q, 0, FRAME_PROOF, proof, sizeof proof);
	for (uint32_t id = 1; id <= MANY; id++)
		ask_for(&q, id);
	peers_until(take_what_comes() == MANY);
	ck_assert_uint_eq(counted(COUNT_STREAMS_REATTACHED), had_a_turn + MANY);
	close_peers();
}
END_TEST

UNIT(link_turns)
{
	const struct connection_fact facts[] = {
		{ many_streams_that_hold_much_go_on_one_after_another, 0 },
		{ those_that_go_on_already_do_not_delay_the_others_for_ever, 0 },
		{ a_stream_may_end_before_it_goes_on, 0 },
		{ a_link_may_end_before_all_go_on, 0 },
	};

	return connection_suite_run("link_turns", facts, FACTS_LEN(facts));
}
