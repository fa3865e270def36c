/* joining.c: which peer to take the snapshot from, and when this agent is ready. */
#include "sslagent/cluster/joining.h"

#include <assert.h>
#include <inttypes.h>
#include <unistd.h>

#include "net/daemon.h"
#include "net/log.h"
#include "sslagent/cluster/peer.h"
#include "sslagent/sessions/ticket_keys.h"

#define SILENT_MS        10000 /* a snapshot that is silent for so long has failed */
#define REPAIR_WITHIN_MS 2000  /* then ready, even with numbers missing */

#define TO(state) (1u << (state))

static const unsigned may_move_to[JOINING_STATE_COUNT] = {
	[JOINING_ALONE] = TO(JOINING_TAKING),
	[JOINING_TAKING] = TO(JOINING_REPAIRING) | TO(JOINING_ALONE),
	[JOINING_REPAIRING] = TO(JOINING_JOINED),
	[JOINING_JOINED] = 0,
};

static void move(struct joining *j, enum joining_state to, int64_t now_ms)
{
	assert(may_move_to[j->state] & TO(to));
	j->state = (uint8_t)to;
	j->since_ms = now_ms;
}

void joining_start(struct cluster *c, int64_t now_ms)
{
	c->joining = (struct joining){ .state = JOINING_ALONE, .since_ms = now_ms, .started_ms = now_ms };
	broadcast_receiver_repair(c->receiver, REPAIR_HELD);
}

/* An agent that is ready has a ticket key: the cluster's, or the first. */
static void become_ready(struct cluster *c, const char *how, int64_t now_ms)
{
	uint64_t sessions = shelf_count(store_shelf(c->store), NULL);

	if (cluster_state(c) != CLUSTER_JOINING)
		return;
	if (c->ticket_use == TICKETS_USED && ticket_keys_newest_age_ms(c->tickets, now_ms) == INT64_MAX)
		cluster_make_ticket_key(c, now_ms);
	atomic_store(&c->state, CLUSTER_READY);
	log_event(LOG_INFO, NULL, "ready", "how=%s sessions=%" PRIu64 " ms=%" PRId64, how, sessions,
		now_ms - c->joining.started_ms);
	service_notify_ready(getpid());
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		peer_send_status(p);
}

static unsigned peers_in(const struct cluster *c, enum peer_source source)
{
	unsigned count = 0;

	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		count += p->source == source;
	return count;
}

/* Ask ready peers that were not asked yet: one, or all of them where agents hold parts. */
static void ask(struct cluster *c)
{
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p)) {
		if (!peer_is_up(p) || p->readiness != PEER_READY || p->source != SOURCE_UNASKED)
			continue;
		if (!c->placement && peers_in(c, SOURCE_ASKED) > 0)
			return;
		p->source = SOURCE_ASKED;
		snapshot_want(p, TAKING_ALL);
	}
}

static void in_alone(struct cluster *c, int64_t now_ms)
{
	struct joining *j = &c->joining;

	ask(c);
	if (peers_in(c, SOURCE_ASKED) > 0) {
		broadcast_receiver_repair(c->receiver, REPAIR_HELD);
		move(j, JOINING_TAKING, now_ms);
	} else if (now_ms - j->started_ms >= c->conf->broadcast.alone_after_ms) {
		broadcast_receiver_repair(c->receiver, REPAIR_ON);
		become_ready(c, "alone", now_ms);
	}
}

static void check_silence(struct cluster *c, struct peer *from, int64_t now_ms)
{
	int64_t heard_ms = from->taker.state == TAKING_ALL ? from->taker.heard_ms : c->joining.since_ms;

	if (now_ms - heard_ms > SILENT_MS)
		peer_send_failed(from, UV_ETIMEDOUT); /* its link ends, so it is lost as a source */
}

/* Where agents hold parts, wait for peers that come up a little later than the first. */
static void in_taking(struct cluster *c, int64_t now_ms)
{
	unsigned away = 0;

	if (c->placement)
		ask(c);
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p)) {
		away += !peer_is_up(p);
		if (p->source == SOURCE_ASKED)
			check_silence(c, p, now_ms);
	}
	if (peers_in(c, SOURCE_ASKED) > 0)
		return;
	if (c->placement && away > 0 && now_ms - c->joining.started_ms < c->conf->broadcast.alone_after_ms)
		return;
	broadcast_receiver_repair(c->receiver, REPAIR_ON);
	move(&c->joining, c->placement || peers_in(c, SOURCE_TAKEN) > 0 ? JOINING_REPAIRING : JOINING_ALONE, now_ms);
}

static void in_repairing(struct cluster *c, int64_t now_ms)
{
	uint64_t missing = 0;

	for (unsigned agent = 0; agent < c->agent_count; agent++)
		missing += broadcast_receiver_view(c->receiver, agent).missing;
	if (missing > 0 && now_ms - c->joining.since_ms < REPAIR_WITHIN_MS)
		return;
	move(&c->joining, JOINING_JOINED, now_ms);
	become_ready(c, "joined", now_ms);
}

void joining_tick(struct cluster *c, int64_t now_ms)
{
	switch ((enum joining_state)c->joining.state) {
	case JOINING_ALONE: in_alone(c, now_ms); break;
	case JOINING_TAKING: in_taking(c, now_ms); break;
	case JOINING_REPAIRING: in_repairing(c, now_ms); break;
	case JOINING_JOINED:
		if (c->placement)
			ask(c);
		break;
	case JOINING_STATE_COUNT: break;
	}
}

bool joining_takes_seen(struct cluster *c, struct peer *peer)
{
	if (!c->joining.seen_from)
		c->joining.seen_from = peer;
	return c->joining.seen_from == peer;
}

void joining_peer_lost(struct cluster *c, struct peer *peer)
{
	if (c->joining.seen_from == peer && peer->source != SOURCE_TAKEN)
		c->joining.seen_from = NULL;
	if (peer->source == SOURCE_ASKED)
		peer->source = SOURCE_UNASKED;
}
