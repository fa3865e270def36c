/* link_ends.c: streams that are over, and hold END until RAgent answers it. A RAgent that said in the opening that it
 * answers may have been replaced since (ragent --replace) by one that does not: by a release that knows nothing of it.
 * So no stream waits for ever: after health.lost without an answer the agent pings. RAgent answers in order, and PONG
 * comes behind the answers to all that came before PING: what is still held then is never answered, and is dropped. A
 * RAgent that hangs answers neither; for its next process, everything stays held.
 */
#include <stdlib.h>

#include "net/container_of.h"
#include "proto/wire.h"
#include "sslagent/carrier/link_inside.h"
#include "sslagent/counters.h"

/* --- count --- */

static unsigned side_of(enum link_end end)
{
	return end == LINK_END_HELD_EVEN ? 0 : 1;
}

static enum link_end held_now(const struct link_ends_held *h)
{
	return h->pings % 2 == 0 ? LINK_END_HELD_EVEN : LINK_END_HELD_ODD;
}

static void await(struct link *l)
{
	const struct connection_home *home = l->home->connections;

	if (!deadline_is_set(&l->held_ends.due))
		deadline_set(home->worker, &l->held_ends.due, home->conf->health.lost_ms);
}

void link_end_is_held(struct link_stream *s)
{
	struct link_ends_held *h = &s->link->held_ends;

	if (s->end != LINK_END_NOT_HELD)
		return;
	s->end = held_now(h);
	h->streams[side_of(s->end)]++;
	if (s->link->stage == LINK_OPEN)
		await(s->link);
}

void link_end_is_over(struct link_stream *s)
{
	if (s->end != LINK_END_NOT_HELD)
		s->link->held_ends.streams[side_of(s->end)]--;
	s->end = LINK_END_NOT_HELD;
}

/* --- ask --- */

void link_ends_due(struct deadline *d)
{
	struct link *l = container_of(d, struct link, held_ends.due);
	struct link_ends_held *h = &l->held_ends;
	uint8_t token[sizeof h->pings];

	if (h->streams[0] + h->streams[1] == 0 || h->question == LINK_ENDS_ASKED)
		return;
	h->question = LINK_ENDS_ASKED;
	h->pings++;
	wire_store_u64(token, h->pings);
	framed_send(&l->framed, 0, FRAME_PING, 0, token, sizeof token);
}

struct unanswered {
	enum link_end end;
	uint32_t count;
	struct link_stream *streams[];
};

static void collect(void *ctx, uint32_t id, void *holder)
{
	struct unanswered *u = ctx;
	struct link_stream *s = holder;

	if (s->end == u->end)
		u->streams[u->count++] = s;
}

/* Without memory they are dropped after the next PONG but one. */
static void drop_unanswered(struct link *l, enum link_end end)
{
	const uint32_t count = l->held_ends.streams[side_of(end)];
	struct unanswered *u = count ? malloc(sizeof *u + count * sizeof u->streams[0]) : NULL;

	if (!u)
		return;
	*u = (struct unanswered){ .end = end };
	streams_each(&l->streams, collect, u);
	count_by(COUNT_ENDS_UNANSWERED, u->count);
	for (uint32_t i = 0; i < u->count; i++)
		link_stream_drop(u->streams[i]);
	free(u);
}

int link_ends_pong(struct link *l, uint64_t token)
{
	struct link_ends_held *h = &l->held_ends;

	if (h->question != LINK_ENDS_ASKED || token != h->pings)
		return 0;
	h->question = LINK_ENDS_NOT_ASKED;
	drop_unanswered(l, h->pings % 2 == 0 ? LINK_END_HELD_ODD : LINK_END_HELD_EVEN);
	if (h->streams[0] + h->streams[1])
		await(l);
	return 0;
}
