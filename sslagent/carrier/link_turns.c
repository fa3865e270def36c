/* link_turns.c: RAgent's next process asks for all streams of a line at once, and each may hold some windows of frames.
 * All of them in the output of one link would need the memory of all that is held once more, beside it, and a link that
 * ends for lack of memory would be asked for the same again. So they go out stream by stream. For each byte that is
 * written, whichever, one more of them may follow: so the output does not grow by them, and streams that go on already,
 * and keep it full, delay the others little.
 *
 * A stream that awaits its turn is silent: what its connection says is held. If it holds too much by then, or there is
 * no memory for it, it does not go on.
 */
#include <stdlib.h>

#include "net/array.h"
#include "net/log.h"
#include "sslagent/carrier/link_inside.h"
#include "sslagent/counters.h"

#define AHEAD_LIMIT (1024u * 1024u)

/* The held frames, as they were. 0 or CSSL_E_NO_MEMORY. */
static int send_held(struct link_stream *s)
{
	struct frame_reattached answer = { .client_records = s->client_records };
	uint8_t payload[FRAME_REATTACHED_LEN];
	struct held_walk w = { 0 };
	struct held_frame *f;

	answer.frame = held_first(&s->held, &answer.bytes);
	frame_reattached_write(payload, &answer);
	int r = framed_send(&s->link->framed, s->id, FRAME_REATTACHED, 0, payload, sizeof payload);
	s->link->turns.ahead += FRAME_HEADER_LEN + sizeof payload;
	while (r == 0 && (f = held_next(&s->held, &w)) != NULL) {
		link_stream_pass(s, f);
		s->link->turns.ahead += FRAME_HEADER_LEN + f->len;
	}
	return r;
}

static void take_turn(struct link_stream *s)
{
	s->turn = LINK_TURN_HAS;
	if (s->held.state != HELD_WHOLE) {
		link_refuse_reattach(s->link, s->id, &s->connection_id, "more was sent than is held");
		streams_remove(&s->link->streams, s->id);
		link_forget_stream(s, END_AGENT_LOST);
		return;
	}
	count(COUNT_STREAMS_REATTACHED);
	log_event(LOG_DEBUG, &s->connection_id, "stream goes on", "ragent=%s frames=%llu", s->link->peer,
		(unsigned long long)s->held.frames);
	int r = send_held(s);
	if (r < 0)
		link_fail(s->link, r);
}

static int has_room(const struct link *l)
{
	return l->stage == LINK_OPEN && !l->failure && l->framed.stream.state < STREAM_FAILED &&
	       l->turns.ahead < AHEAD_LIMIT;
}

void link_turns_clear(struct link *l)
{
	free(l->turns.ids);
	l->turns = (struct link_turns){ .ahead = l->turns.ahead };
}

static void go_on(struct link *l)
{
	struct link_turns *t = &l->turns;

	while (t->first < t->end && has_room(l)) {
		struct link_stream *s = streams_find(&l->streams, t->ids[t->first++]);
		if (s && s->turn == LINK_TURN_AWAITS)
			take_turn(s);
	}
	if (t->cap && t->first == t->end)
		link_turns_clear(l);
}

void link_turns_written(struct link *l, size_t len)
{
	struct link_turns *t = &l->turns;

	t->ahead -= len < t->ahead ? len : t->ahead;
	if (t->cap)
		go_on(l);
}

int link_turn_await(struct link_stream *s)
{
	struct link *l = s->link;
	struct link_turns *t = &l->turns;

	s->turn = LINK_TURN_AWAITS; /* also if that fails: RAgent did not get REATTACHED */
	int r = array_make_room(&t->ids, &t->cap, t->end, sizeof *t->ids);
	if (r < 0)
		return r;
	t->ids[t->end++] = s->id;
	go_on(l);
	return 0;
}
