/* cluster_links.c: what comes over links, and what becomes of links: each message and each event goes to its part. That
 * part checks every field: no peer is trusted.
 */
#include "proto/error.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/sessions/connections_seen.h"

static int links_take(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m)
{
	return joining_on_message(&c->joining, p, m);
}

/* The answer to a pull, or to the question for a large object. */
static int links_take_absent(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m)
{
	int r = pulls_on_message(c, p, m);

	return r ? r : joining_on_message(&c->joining, p, m);
}

static int (*const handlers[])(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m) = {
	[CSSL__PEER_MESSAGE__WHAT_SENDING_KEY] = cluster_keys_on_message,
	[CSSL__PEER_MESSAGE__WHAT_KEY_CONFIRMED] = cluster_keys_on_message,
	[CSSL__PEER_MESSAGE__WHAT_TICKET_KEYS] = cluster_keys_on_message,
	[CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_REQUEST] = links_take,
	[CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_PART] = links_take,
	[CSSL__PEER_MESSAGE__WHAT_PULL] = pulls_on_message,
	[CSSL__PEER_MESSAGE__WHAT_OBJECT] = links_take,
	[CSSL__PEER_MESSAGE__WHAT_ABSENT] = links_take_absent,
	[CSSL__PEER_MESSAGE__WHAT_REVOKE] = revocations_on_message,
	[CSSL__PEER_MESSAGE__WHAT_REVOKED] = revocations_on_message,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND] = passed_backends_on_message,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_TAKEN] = passed_backends_on_message,
	[CSSL__PEER_MESSAGE__WHAT_PONG] = links_take,
	[CSSL__PEER_MESSAGE__WHAT_PASSED_BACKEND_WITHDRAWN] = passed_backends_on_message,
};

static int on_message(void *ctx, struct peer *p, const Cssl__PeerMessage *m)
{
	size_t what = (size_t)m->what_case;

	if (what == 0 || what >= sizeof handlers / sizeof handlers[0] || !handlers[what])
		return 0; /* of a later release, or the peer's own */
	return handlers[what](ctx, p, m);
}

static void on_up(void *ctx, struct peer *p)
{
	struct cluster *c = ctx;

	cluster_keys_greet(c, p);
	joining_peer_up(&c->joining, p);
}

static void on_room(void *ctx, struct peer *p)
{
	struct cluster *c = ctx;

	joining_has_room(&c->joining, p);
}

static void on_down(void *ctx, struct peer *p)
{
	struct cluster *c = ctx;

	joining_peer_lost(&c->joining, p);
	revocations_peer_lost(c, p);
	passed_backends_peer_lost(c, p);
}

static void on_gone(void *ctx, struct peer *p)
{
	struct cluster *c = ctx;

	live_table_drop_owner(c->live, p->index);
}

static bool is_quiet(void *ctx, const struct peer *p)
{
	const struct cluster *c = ctx;

	return joining_is_quiet(&c->joining, p->index) && !c->revocations.under_way;
}

const struct peers_ops cluster_peers_ops = {
	.on_up = on_up,
	.on_message = on_message,
	.on_room = on_room,
	.on_down = on_down,
	.on_gone = on_gone,
	.is_quiet = is_quiet,
	.on_closed = cluster_handle_closed,
};

static void on_import(void *ctx, agent_index from, const ProtobufCBinaryData *encoded, const struct heard_times *times)
{
	cluster_import(ctx, from, encoded, times);
}

static void on_supersede(void *ctx, unsigned owner, const struct connection_id *id, uint16_t of)
{
	cluster_supersede(ctx, owner, id, of);
}

static uint64_t numbered(void *ctx, unsigned worker, unsigned to)
{
	const struct cluster *c = ctx;

	return broadcast_sender_mark(c->threads[worker].sender, (int)to, 0).highest;
}

/* An agent that is ready has a ticket key: the cluster's, or the first. */
static void on_ready(void *ctx)
{
	struct cluster *c = ctx;
	int64_t now_ms = cluster_now_ms();

	if (c->ticket_use == TICKETS_USED && ticket_keys_newest_age_ms(c->tickets, now_ms) == INT64_MAX)
		cluster_keys_make_ticket_key(c, now_ms);
	atomic_store(&c->state, CLUSTER_READY);
}

const struct joining_ops cluster_joining_ops = {
	.import = on_import,
	.supersede = on_supersede,
	.numbered = numbered,
	.on_ready = on_ready,
};

uint64_t cluster_links_queued(const struct cluster *c)
{
	uint64_t queued = 0;

	for (struct peer *p = peers_next(&c->peers, NULL); p; p = peers_next(&c->peers, p))
		if (p->state == PEER_UP)
			queued += stream_pending(&p->link->stream);
	return queued;
}
