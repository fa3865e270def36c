/* snapshot_give.c: a part leaves while the tables are locked, and is forgotten. The next part follows when the link has
 * little left to send, so a snapshot needs little memory and does not delay others.
 */
#include "sslagent/cluster/joining/joining.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "net/points/mutant.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/sessions/live_table.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/tombstones.h"

#define PART_OBJECTS   64u
#define PART_STONES    512u
#define PART_SEEN      128u  /* a small number: unpacked, each takes four times its bytes */
#define PART_VISITED   8192u /* sessions looked at */
#define PARTS_AT_ONCE  12u
#define PENDING_ENOUGH (256u * 1024u)

#define TO(state) (1u << (state))

static const unsigned giving_may_move_to[GIVING_STATE_COUNT] = {
	[GIVING_NOTHING] = TO(GIVING_SESSIONS) | TO(GIVING_NOTHING),
	[GIVING_SESSIONS] =
		TO(GIVING_LIVE) | TO(GIVING_SEEN) | TO(GIVING_LAST) | TO(GIVING_SESSIONS) | TO(GIVING_NOTHING),
	[GIVING_LIVE] = TO(GIVING_SEEN) | TO(GIVING_LAST) | TO(GIVING_SESSIONS) | TO(GIVING_NOTHING),
	[GIVING_SEEN] = TO(GIVING_LAST) | TO(GIVING_SESSIONS) | TO(GIVING_NOTHING),
	[GIVING_LAST] = TO(GIVING_NOTHING) | TO(GIVING_SESSIONS),
};

static void giver_move(struct snapshot_giver *g, enum giving to)
{
	assert(giving_may_move_to[g->state] & TO(to));
	g->state = (uint8_t)to;
	g->cursor = 0;
}

/* Objects under one lock. Buckets are taken whole, so there may be more by a bucket. */
struct part {
	struct joining *joining;
	struct peer *peer;
	unsigned visited, given;
	int error;
};

/* ALL: sessions of the peer's part that this agent has to give. OWN: sessions made here. */
static bool giver_gives(const struct joining *j, const struct peer *p, const struct session *s)
{
	const struct peers *peers = j->of.peers;
	struct placement_ranks holders;

	if (j->with[p->index].giver.scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL)
		return resettling_gives(peers, p, s);
	if (s->shelved.by != STORED_OWN || !peers->placement)
		return s->shelved.by == STORED_OWN;
	holders = peers_holders(peers, s->id, peers->of.conf->broadcast.replicas);
	return placement_has(&holders, p->index);
}

static enum walk giver_give_object(struct part *part, const struct shelved *o, const uint8_t *encoded, size_t len)
{
	if (!part->error)
		part->error = peer_send_object(part->peer, o, encoded, len, true);
	return ++part->given >= PART_OBJECTS ? WALK_PAUSE : WALK_ON;
}

static enum walk on_session(void *ctx, const struct shelved *o)
{
	struct part *part = ctx;
	size_t len;
	const uint8_t *encoded = session_encoded(session_of(o), &len);

	part->visited++;
	if (giver_gives(part->joining, part->peer, session_of(o)))
		return giver_give_object(part, o, encoded, len);
	return part->visited >= PART_VISITED ? WALK_PAUSE : WALK_ON;
}

static enum walk on_live(void *ctx, const struct shelved *o)
{
	size_t len;
	const uint8_t *encoded = live_table_encoded(o, &len);

	return giver_give_object(ctx, o, encoded, len);
}

static int giver_send_part(struct peer *p, Cssl__SnapshotPart *part)
{
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_PART,
		.snapshot_part = part };

	return peer_send(p, &m);
}

static int giver_give_objects(struct joining *j, struct peer *p)
{
	struct snapshot_giver *giver = &j->with[p->index].giver;
	struct part part = { .joining = j, .peer = p };
	const bool sessions = giver->state == GIVING_SESSIONS;
	enum giving next = giver->seen ? GIVING_SEEN : GIVING_LAST;
	bool more = shelf_walk(sessions ? store_shelf(j->of.store) : j->of.live, &giver->cursor, cluster_now_ms(),
		sessions ? on_session : on_live, &part);

	giver->given += part.given;
	if (sessions && giver->scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL)
		next = GIVING_LIVE;
	if (!part.error && !more)
		giver_move(giver, next);
	return part.error;
}

static uint64_t giver_age_ms(int64_t then_ms, int64_t now_ms)
{
	return now_ms > then_ms ? (uint64_t)(now_ms - then_ms) : 0;
}

static int giver_send_seen(
	struct peer *p, uint8_t scope, const struct seen_connection *from, size_t count, int64_t now_ms)
{
	Cssl__ConnectionSeen seen[PART_SEEN], *pointers[PART_SEEN];
	Cssl__SnapshotPart part = { MESSAGE(snapshot_part), .scope = scope, .n_connection_seen = count,
		.connection_seen = pointers };

	for (size_t i = 0; i < count; i++) {
		const struct seen_connection *s = &from[i];

		seen[i] = (Cssl__ConnectionSeen){ MESSAGE(connection_seen),
			.connection_id = bytes_of(s->id.bytes, CONNECTION_ID_LEN), .epoch = s->at.epoch,
			.write_generation = s->at.write_generation, .write_sequence = s->at.write_sequence,
			.doubt = (Cssl__ConnectionSeen__Doubt)(mutant("snapshot-without-doubt") ? 0 : s->doubt),
			.over = s->stop == SEEN_ENDED, .age_ms = giver_age_ms(s->heard_ms, now_ms) };
		pointers[i] = &seen[i];
	}
	return giver_send_part(p, &part);
}

static int giver_give_seen(struct joining *j, struct peer *p)
{
	struct snapshot_giver *g = &j->with[p->index].giver;
	struct seen_connection seen[PART_SEEN];
	size_t count = connections_seen_list(j->of.seen, &g->cursor, seen, PART_SEEN);
	int r = 0;

	if (count > 0 && !mutant("snapshot-without-marks"))
		r = giver_send_seen(p, g->scope, seen, count, cluster_now_ms());
	if (!r && count < PART_SEEN)
		giver_move(g, GIVING_LAST);
	return r;
}

/* Numbers heard until now: their objects are in the tables, so the snapshot will contain them. The peer is told behind
 * it, because one that gets only a part of it lacks some. */
static int giver_note_heard(struct joining *j, struct peer *p)
{
	const struct peers *peers = j->of.peers;
	struct snapshot_giver *g = &j->with[p->index].giver;
	uint64_t *heard = calloc((size_t)peers->count * SENDER_THREADS_MAX, sizeof *heard);

	free(g->heard);
	g->heard = heard;
	for (unsigned agent = 0; heard && agent < peers->count; agent++)
		for (unsigned worker = 0; worker < SENDER_THREADS_MAX; worker++)
			heard[agent * SENDER_THREADS_MAX + worker] =
				broadcast_receiver_heard(j->of.peers->of.receiver, agent, worker);
	for (unsigned worker = 0; heard && worker <= peers->of.self->workers; worker++)
		heard[peers->self * SENDER_THREADS_MAX + worker] = j->of.ops->numbered(j->of.ctx, worker, p->index);
	return heard ? 0 : CSSL_E_NO_MEMORY;
}

static int giver_give_heard(struct joining *j, struct peer *p, unsigned agent)
{
	const struct peers *peers = j->of.peers;
	const struct snapshot_giver *g = &j->with[p->index].giver;
	const struct receiver_view view = broadcast_receiver_view(j->of.peers->of.receiver, agent);
	const bool is_self = agent == peers->self;
	Cssl__Heard heard = { MESSAGE(heard), .agent = peers->of.conf->agents[agent].name,
		.boot_id = is_self ? peers->of.link.boot_id : view.boot_id,
		.n_complete = (is_self ? peers->of.self->workers : view.workers) + 1,
		.complete = &g->heard[agent * SENDER_THREADS_MAX] };
	Cssl__Heard *pointer = &heard;
	Cssl__SnapshotPart part = { MESSAGE(snapshot_part), .scope = g->scope, .n_heard = 1, .heard = &pointer };

	/* Where each agent has a stream of its own, numbers heard here say nothing about the peer's stream. */
	if (!is_self && (view.state != SENDER_BELIEVED || agent == p->index || peers->placement ||
				g->scope != CSSL__SNAPSHOT_REQUEST__SCOPE__ALL))
		return 0;
	return giver_send_part(p, &part);
}

static void giver_stop(struct joining *j, struct peer *p)
{
	struct snapshot_giver *g = &j->with[p->index].giver;

	free(g->heard);
	g->heard = NULL;
	giver_move(g, GIVING_NOTHING);
}

/* One part for each sender, because there may be many; the last one has `last` set. */
static int giver_give_last(struct joining *j, struct peer *p)
{
	const struct snapshot_giver *g = &j->with[p->index].giver;
	const struct seen_since since = connections_seen_since(j->of.seen);
	Cssl__SeenSince message = { MESSAGE(seen_since), .age_ms = giver_age_ms(since.ms, cluster_now_ms()),
		.forgot = since.before == SEEN_FORGOT };
	Cssl__SnapshotPart part = { MESSAGE(snapshot_part), .scope = g->scope, .last = 1,
		.seen_since = g->seen ? &message : NULL };
	int r = 0;

	for (unsigned agent = 0; !r && agent < j->of.peers->count; agent++)
		r = giver_give_heard(j, p, agent);
	if (!r)
		r = giver_send_part(p, &part);
	if (r)
		return r;
	count(COUNT_SNAPSHOTS_GIVEN);
	log_event(LOG_INFO, NULL, "snapshot given", "peer=%s objects=%" PRIu64, p->conf->name, g->given);
	giver_stop(j, p);
	return 0;
}

void joining_has_room(struct joining *j, struct peer *p)
{
	static int (*const steps[])(struct joining * j, struct peer * p) = { [GIVING_SESSIONS] = giver_give_objects,
		[GIVING_LIVE] = giver_give_objects,
		[GIVING_SEEN] = giver_give_seen,
		[GIVING_LAST] = giver_give_last };
	const struct snapshot_giver *g = &j->with[p->index].giver;
	int r = 0;

	for (unsigned parts = 0; !r && g->state != GIVING_NOTHING && parts < PARTS_AT_ONCE; parts++) {
		if (stream_pending(&p->link->stream) >= PENDING_ENOUGH)
			return;
		r = steps[g->state](j, p);
	}
	if (r) /* the link is gone or ends for it; the peer will ask again */
		giver_stop(j, p);
}

/* What is taken ends, too. */
void joining_peer_lost(struct joining *j, struct peer *p)
{
	struct joining_peer *with = &j->with[p->index];

	if (with->announced > 0 || with->taker.state == TAKING_OWN || with->taker.due == TAKING_OWN)
		with->own_due = PEER_OWN_DUE;
	with->announced = 0;
	giver_stop(j, p);
	with->taker = (struct snapshot_taker){ 0 };
	if (j->seen_from == p && with->source != SOURCE_TAKEN)
		j->seen_from = NULL;
	if (with->source == SOURCE_ASKED)
		with->source = SOURCE_UNASKED;
}

void snapshot_give(struct joining *j, struct peer *p, const Cssl__SnapshotRequest *request)
{
	struct snapshot_giver *g = &j->with[p->index].giver;

	giver_move(g, GIVING_SESSIONS);
	g->scope = request->scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL ? CSSL__SNAPSHOT_REQUEST__SCOPE__ALL
									: CSSL__SNAPSHOT_REQUEST__SCOPE__OWN;
	g->seen = request->connections != 0;
	g->given = 0;
	resettling_look(j, cluster_now_ms()); /* the members as they are now: they say what it gets */
	if (giver_note_heard(j, p) != 0) {
		giver_stop(j, p); /* the peer asks another one */
		return;
	}
	snapshot_give_tombstones(j, p);
	joining_has_room(j, p);
}

/* The tombstones of one part. */
struct stones {
	struct peer *peer;
	int64_t now_ms;
	int error;
	size_t count;
	Cssl__Tombstone stones[PART_STONES], *pointers[PART_STONES];
	revoke_what whats[PART_STONES];
};

static void on_stone(void *ctx, const revoke_what *what, int64_t revoked_ms)
{
	struct stones *s = ctx;
	const size_t i = s->count;

	if (what) {
		s->whats[i] = *what;
		s->stones[i] = (Cssl__Tombstone){ MESSAGE(tombstone), .what = &s->whats[i],
			.age_ms = giver_age_ms(revoked_ms, s->now_ms) };
		s->pointers[i] = &s->stones[i];
		s->count++;
	}
	if (s->count == 0 || (what && s->count < PART_STONES))
		return;
	Cssl__SnapshotPart part = { MESSAGE(snapshot_part), .n_tombstone = s->count, .tombstone = s->pointers };
	if (!s->error)
		s->error = giver_send_part(s->peer, &part);
	s->count = 0;
}

void snapshot_give_tombstones(struct joining *j, struct peer *p)
{
	struct stones *s;

	if (tombstones_count(j->of.tombstones) == 0)
		return;
	s = calloc(1, sizeof *s);
	if (!s) { /* without its tombstones a link is worth nothing */
		peer_link_end(p->link, CSSL_E_NO_MEMORY);
		return;
	}
	s->peer = p;
	s->now_ms = cluster_now_ms();
	tombstones_each(j->of.tombstones, on_stone, s);
	free(s);
}
