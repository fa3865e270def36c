/* cluster_links.c: what comes over links, and what becomes of links: each message and each event goes to its part. That
 * part checks every field: no peer is trusted.
 */
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/sessions/ticket_keys.h"

/* Each part takes what is its own. The answer ABSENT is for pulls, and for the question for a large object. */
static int on_message(void *ctx, struct peer *p, const Cssl__PeerMessage *m)
{
	struct cluster *c = ctx;
	int r = cluster_keys_on_message(c, p, m);

	if (!r)
		r = pulls_on_message(c, p, m);
	if (!r)
		r = joining_on_message(&c->joining, p, m);
	if (!r)
		r = revocations_on_message(c, p, m);
	return r ? r : passed_backends_on_message(c, p, m);
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
	.is_quiet = is_quiet,
	.on_closed = cluster_handle_closed,
};

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
	.import = cluster_import,
	.supersede = cluster_supersede,
	.numbered = numbered,
	.on_ready = on_ready,
};
