/* snapshot_give.c: a part is gathered from the tables under their locks into one buffer, sent, and forgotten. The next
 * part follows when the link has little left to send, so a snapshot needs little memory and does not delay others.
 */
#include "sslagent/cluster/snapshot.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/log.h"
#include "net/mutant.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast_message.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/peer.h"
#include "sslagent/cluster/revocations.h"

#define PART_BYTES     (48u * 1024u)
#define PART_OBJECTS   512u
#define PART_STONES    512u
#define PART_SEEN      128u  /* a small number: unpacked, each takes four times its bytes */
#define PART_VISITED   8192u /* sessions looked at */
#define PARTS_AT_ONCE  8u
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

static void giving_move(struct snapshot_giver *g, enum giving to)
{
	assert(giving_may_move_to[g->state] & TO(to));
	g->state = (uint8_t)to;
	g->cursor = 0;
}

/* The objects of one part. Buckets are taken whole, so a part may exceed its size by a bucket. */
struct gathered {
	const struct peer *peer;
	unsigned visited;
	uint8_t *bytes;
	size_t len, cap;
	size_t count;
	struct {
		size_t offset, len;
		int64_t made_ms, family_made_ms;
	} objects[PART_OBJECTS];
};

/* 0; CSSL_E_FULL or CSSL_E_NO_MEMORY: the snapshot goes without this object. */
static int gather(struct gathered *g, const uint8_t *encoded, size_t len, int64_t made_ms, int64_t family_made_ms)
{
	size_t cap = g->cap ? g->cap : PART_BYTES + PART_BYTES / 4;
	uint8_t *grown;

	if (g->count == PART_OBJECTS)
		return CSSL_E_FULL;
	while (cap < g->len + len)
		cap *= 2;
	if (cap > g->cap) {
		grown = OPENSSL_clear_realloc(g->bytes, g->cap, cap);
		if (!grown)
			return CSSL_E_NO_MEMORY;
		g->bytes = grown;
		g->cap = cap;
	}
	memcpy(g->bytes + g->len, encoded, len);
	g->objects[g->count].offset = g->len;
	g->objects[g->count].len = len;
	g->objects[g->count].made_ms = made_ms;
	g->objects[g->count++].family_made_ms = family_made_ms;
	g->len += len;
	return 0;
}

static int is_enough(const struct gathered *g)
{
	return g->len >= PART_BYTES || g->count >= PART_OBJECTS / 2 || g->visited >= PART_VISITED;
}

/* ALL: sessions of the peer's part that this agent has to give. OWN: sessions made here. */
static int is_for(const struct peer *p, const struct stored *s)
{
	const struct cluster *c = p->cluster;
	struct placement_ranks holders;

	if (p->giver.scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL)
		return resettling_gives(p->cluster, p, s);
	if (s->by != STORED_OWN || !c->placement)
		return s->by == STORED_OWN;
	holders = cluster_holders(c, s->id, c->conf->broadcast.replicas);
	return placement_has(&holders, p->index);
}

static enum store_walk on_session(void *ctx, const struct stored *s)
{
	struct gathered *g = ctx;

	g->visited++;
	if (is_for(g->peer, s))
		gather(g, s->encoded, s->len, s->made_ms, s->family_made_ms);
	return is_enough(g) ? STORE_PAUSE : STORE_GO_ON;
}

static enum live_walk on_live(void *ctx, const struct live_held *l)
{
	struct gathered *g = ctx;

	gather(g, l->encoded, l->len, l->made_ms, l->family_made_ms);
	return is_enough(g) ? LIVE_PAUSE : LIVE_GO_ON;
}

static int send_part(struct peer *p, Cssl__SnapshotPart *part)
{
	Cssl__PeerMessage m = CSSL__PEER_MESSAGE__INIT;

	m.what_case = CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_PART;
	m.snapshot_part = part;
	return peer_send(p, &m);
}

static int send_gathered(struct peer *p, const struct gathered *g)
{
	Cssl__SnapshotPart part = CSSL__SNAPSHOT_PART__INIT;
	Cssl__PeerObject objects[PART_OBJECTS], *pointers[PART_OBJECTS];

	if (g->count == 0)
		return 0;
	for (size_t i = 0; i < g->count; i++) {
		cssl__peer_object__init(&objects[i]);
		objects[i].ssl_obj = (ProtobufCBinaryData){ g->objects[i].len, g->bytes + g->objects[i].offset };
		objects[i].made_ms = g->objects[i].made_ms;
		objects[i].family_made_ms = g->objects[i].family_made_ms;
		pointers[i] = &objects[i];
	}
	part.scope = p->giver.scope;
	part.n_object = g->count;
	part.object = pointers;
	p->giver.given += g->count;
	return send_part(p, &part);
}

static int give_objects(struct peer *p)
{
	struct snapshot_giver *giver = &p->giver;
	struct cluster *c = p->cluster;
	struct gathered g = { .peer = p };
	enum giving end = giver->seen == GIVES_SEEN ? GIVING_SEEN : GIVING_LAST;
	enum giving next = giver->scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL ? GIVING_LIVE : end;
	int64_t now_ms = cluster_now_ms();
	int more, r;

	if (giver->state == GIVING_SESSIONS) {
		more = store_walk(c->store, &giver->cursor, now_ms, on_session, &g);
	} else {
		more = live_table_walk(c->live, &giver->cursor, now_ms, on_live, &g);
		next = end;
	}
	r = send_gathered(p, &g);
	OPENSSL_clear_free(g.bytes, g.cap);
	if (!r && !more)
		giving_move(giver, next);
	return r;
}

/* The memory of connections, for one part. */
struct seen_part {
	size_t count;
	struct seen_connection seen[PART_SEEN];
};

static enum seen_walk on_seen(void *ctx, const struct seen_connection *seen)
{
	struct seen_part *part = ctx;

	part->seen[part->count++] = *seen;
	return part->count == PART_SEEN ? SEEN_PAUSE : SEEN_GO_ON;
}

static uint64_t since_ms(int64_t then_ms, int64_t now_ms)
{
	return now_ms > then_ms ? (uint64_t)(now_ms - then_ms) : 0;
}

static int send_seen(struct peer *p, const struct seen_part *gathered, int64_t now_ms)
{
	Cssl__SnapshotPart part = CSSL__SNAPSHOT_PART__INIT;
	Cssl__ConnectionSeen seen[PART_SEEN], *pointers[PART_SEEN];

	for (size_t i = 0; i < gathered->count; i++) {
		const struct seen_connection *s = &gathered->seen[i];

		cssl__connection_seen__init(&seen[i]);
		seen[i].connection_id = (ProtobufCBinaryData){ CONNECTION_ID_LEN, (uint8_t *)s->id.bytes };
		seen[i].epoch = s->at.epoch;
		seen[i].write_generation = s->at.write_generation;
		seen[i].write_sequence = s->at.write_sequence;
		seen[i].doubt = (Cssl__ConnectionSeen__Doubt)(mutant("snapshot-without-doubt") ? 0 : s->doubt);
		seen[i].over = s->stop == SEEN_ENDED;
		seen[i].age_ms = since_ms(s->heard_ms, now_ms);
		pointers[i] = &seen[i];
	}
	part.scope = p->giver.scope;
	part.n_connection_seen = gathered->count;
	part.connection_seen = pointers;
	return send_part(p, &part);
}

static int give_seen(struct peer *p)
{
	struct seen_part gathered = { 0 };
	int more = connections_seen_walk(p->cluster->seen, &p->giver.cursor, on_seen, &gathered);
	int r = gathered.count > 0 && !mutant("snapshot-without-marks") ? send_seen(p, &gathered, cluster_now_ms()) : 0;

	if (!r && !more)
		giving_move(&p->giver, GIVING_LAST);
	return r;
}

static size_t heard_index(const struct cluster *c, unsigned agent, unsigned worker)
{
	return (size_t)agent * SENDER_THREADS_MAX + worker;
}

/* Note numbers whose objects are in the tables now: the snapshot will contain them. */
static int note_complete(struct peer *p)
{
	struct cluster *c = p->cluster;
	uint64_t *complete = calloc(c->agent_count * SENDER_THREADS_MAX, sizeof *complete);

	if (!complete)
		return CSSL_E_NO_MEMORY;
	for (unsigned agent = 0; agent < c->agent_count; agent++)
		for (unsigned worker = 0; worker < SENDER_THREADS_MAX; worker++)
			complete[heard_index(c, agent, worker)] = broadcast_receiver_heard(c->receiver, agent, worker);
	for (unsigned worker = 0; worker <= c->self->workers; worker++)
		complete[heard_index(c, c->self_index, worker)] =
			broadcast_sender_mark(c->threads[worker].sender, (int)p->index, 0).highest;
	free(p->giver.complete);
	p->giver.complete = complete;
	return 0;
}

static void describe_heard(struct peer *p, unsigned agent, Cssl__Heard *heard)
{
	struct cluster *c = p->cluster;
	struct receiver_view view = broadcast_receiver_view(c->receiver, agent);
	int is_self = agent == c->self_index;

	cssl__heard__init(heard);
	heard->agent = c->conf->agents[agent].name;
	heard->boot_id = is_self ? c->boot_id : view.boot_id;
	heard->n_complete = (is_self ? c->self->workers : view.workers) + 1;
	heard->complete = &p->giver.complete[heard_index(c, agent, 0)];
}

void snapshot_stop_giving(struct peer *p)
{
	free(p->giver.complete);
	p->giver.complete = NULL;
	giving_move(&p->giver, GIVING_NOTHING);
}

/* Where each agent has a stream of its own, numbers heard here say nothing about the peer's stream. */
static int tells_others_numbers(const struct peer *p)
{
	return p->giver.scope == CSSL__SNAPSHOT_REQUEST__SCOPE__ALL && !p->cluster->placement;
}

static int send_end(struct peer *p, Cssl__SnapshotPart *part)
{
	const struct seen_since since = connections_seen_since(p->cluster->seen);
	Cssl__SeenSince message = CSSL__SEEN_SINCE__INIT;

	part->n_heard = 0;
	part->last = 1;
	message.age_ms = since_ms(since.ms, cluster_now_ms());
	message.forgot = since.before == SEEN_FORGOT;
	if (p->giver.seen == GIVES_SEEN)
		part->seen_since = &message;
	return send_part(p, part);
}

/* One part for each sender, because there may be many; the last one has `last` set. */
static int give_last(struct peer *p)
{
	Cssl__SnapshotPart part = CSSL__SNAPSHOT_PART__INIT;
	struct cluster *c = p->cluster;
	Cssl__Heard heard, *pointer = &heard;
	int r = 0;

	part.scope = p->giver.scope;
	part.n_heard = 1;
	part.heard = &pointer;
	for (unsigned agent = 0; !r && agent < c->agent_count; agent++) {
		int known =
			agent == c->self_index || broadcast_receiver_view(c->receiver, agent).state == SENDER_BELIEVED;

		if (!known || agent == p->index)
			continue;
		if (!tells_others_numbers(p) && agent != c->self_index)
			continue;
		describe_heard(p, agent, &heard);
		r = send_part(p, &part);
	}
	if (!r)
		r = send_end(p, &part);
	if (r)
		return r;
	count(COUNT_SNAPSHOTS_GIVEN);
	log_event(LOG_INFO, NULL, "snapshot given", "peer=%s objects=%" PRIu64, p->conf->name, p->giver.given);
	snapshot_stop_giving(p);
	return 0;
}

void snapshot_go_on(struct peer *p)
{
	static int (*const steps[])(struct peer * p) = { [GIVING_SESSIONS] = give_objects,
		[GIVING_LIVE] = give_objects,
		[GIVING_SEEN] = give_seen,
		[GIVING_LAST] = give_last };
	struct snapshot_giver *g = &p->giver;
	int r = 0;

	for (unsigned parts = 0; !r && g->state != GIVING_NOTHING && parts < PARTS_AT_ONCE; parts++) {
		if (peer_link_pending(p->link) >= PENDING_ENOUGH)
			return;
		r = steps[g->state](p);
	}
	if (r) /* the link is gone or ends for it; the peer will ask again */
		snapshot_stop_giving(p);
}

void snapshot_give(struct peer *p, Cssl__SnapshotRequest__Scope scope, enum giving_seen seen)
{
	giving_move(&p->giver, GIVING_SESSIONS);
	p->giver.scope = (uint8_t)scope;
	p->giver.seen = (uint8_t)seen;
	p->giver.given = 0;
	resettling_look(p->cluster, cluster_now_ms());
	if (note_complete(p) != 0) {
		snapshot_stop_giving(p);
		return;
	}
	snapshot_give_tombstones(p);
	snapshot_go_on(p);
}

/* The tombstones of one part. */
struct stones {
	struct peer *peer;
	int64_t now_ms;
	int error;
	size_t count;
	Cssl__Tombstone stones[PART_STONES], *pointers[PART_STONES];
	Cssl__PeerRevoke whats[PART_STONES];
	struct tombstone copies[PART_STONES];
	char names[PART_STONES][NAME_MAX_LEN + 1];
};

static void send_stones(struct stones *s)
{
	Cssl__SnapshotPart part = CSSL__SNAPSHOT_PART__INIT;

	part.n_tombstone = s->count;
	part.tombstone = s->pointers;
	if (!s->error && s->count > 0)
		s->error = send_part(s->peer, &part);
	s->count = 0;
}

static uint64_t age_of(const struct stones *s, const struct tombstone *stone)
{
	return (uint64_t)(s->now_ms > stone->revoked_ms ? s->now_ms - stone->revoked_ms : 0);
}

/* A revocation by a filter is rare: each leaves in a message of its own. */
static void send_matching(struct stones *s, const struct tombstone *stone)
{
	Cssl__SnapshotPart part = CSSL__SNAPSHOT_PART__INIT;
	Cssl__MatchingTombstone matching = CSSL__MATCHING_TOMBSTONE__INIT, *pointer = &matching;
	Cssl__SessionFilter filter;

	session_filter_write(stone->what.filter, &filter);
	matching.filter = &filter;
	matching.age_ms = age_of(s, stone);
	part.n_matching = 1;
	part.matching = &pointer;
	if (!s->error)
		s->error = send_part(s->peer, &part);
}

static void on_stone(void *ctx, const struct tombstone *stone)
{
	struct stones *s = ctx;

	if (stone->what.by == REVOKE_MATCHING) {
		send_matching(s, stone);
		return;
	}
	size_t i = s->count++;
	s->copies[i] = *stone;
	if (stone->what.server_name) {
		snprintf(s->names[i], sizeof s->names[i], "%s", stone->what.server_name);
		s->copies[i].what.server_name = s->names[i];
	}
	cssl__tombstone__init(&s->stones[i]);
	s->stones[i].age_ms = age_of(s, stone);
	s->stones[i].what = &s->whats[i];
	revoke_message(&s->copies[i].what, &s->whats[i]);
	s->pointers[i] = &s->stones[i];
	if (s->count == PART_STONES)
		send_stones(s);
}

void snapshot_give_tombstones(struct peer *p)
{
	struct stones *s;

	if (tombstones_count(p->cluster->tombstones) == 0)
		return;
	s = calloc(1, sizeof *s);
	if (!s) { /* without its tombstones a link is worth nothing */
		peer_send_failed(p, CSSL_E_NO_MEMORY);
		return;
	}
	s->peer = p;
	s->now_ms = cluster_now_ms();
	tombstones_each(p->cluster->tombstones, on_stone, s);
	send_stones(s);
	free(s);
}
