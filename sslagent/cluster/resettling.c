/* resettling.c: walk the store in steps, as links have room. The store may not change under a walk, so a session that
 * only others hold is dropped after its step. */
#include "sslagent/cluster/resettling.h"

#include <inttypes.h>
#include <string.h>

#include "net/log.h"
#include "proto/error.h"
#include "sslagent/cluster/peer.h"
#include "sslagent/counters.h"

#define SETTLE_MS      2000
#define VISITED_A_STEP 512u
#define PENDING_ENOUGH (256u * 1024u)

int resettling_start(struct cluster *c)
{
	struct resettling *r = &c->resettling;

	if (c->conf->broadcast.replicas == 0 || c->conf->broadcast.replicas >= c->agent_count)
		return 0;
	c->placement = placement_create(c->agent_count);
	r->before = placement_create(c->agent_count);
	r->after = placement_create(c->agent_count);
	if (!c->placement || !r->before || !r->after)
		return CSSL_E_NO_MEMORY;
	for (unsigned i = 0; i < c->agent_count; i++)
		placement_name(c->placement, i, c->conf->agents[i].name);
	placement_set(c->placement, c->self_index, MEMBER_HERE);
	placement_copy(r->before, c->placement);
	return 0;
}

void resettling_free(struct cluster *c)
{
	placement_destroy(c->resettling.after);
	placement_destroy(c->resettling.before);
	placement_destroy(c->placement);
}

static unsigned replicas(const struct cluster *c)
{
	return c->conf->broadcast.replicas;
}

/* Membership */

static enum membership membership_of(const struct cluster *c, struct peer *p, int64_t now_ms)
{
	if (atomic_load(&c->flags[p->index].alive)) {
		p->alive_ms = now_ms;
		return MEMBER_HERE;
	}
	if (placement_get(c->placement, p->index) == MEMBER_AWAY)
		return MEMBER_AWAY;
	return now_ms - p->alive_ms < c->conf->broadcast.left_ms ? MEMBER_HERE : MEMBER_AWAY;
}

/* An entering agent asks for its part itself, so it counts as a member from before. */
static void membership_changed(struct cluster *c, struct peer *p, enum membership now, int64_t now_ms)
{
	struct resettling *r = &c->resettling;

	placement_set(c->placement, p->index, now);
	r->changed_ms = now_ms;
	if (r->state == RESETTLED)
		r->state = MEMBERS_CHANGED;
	if (now == MEMBER_HERE)
		placement_set(r->before, p->index, MEMBER_HERE);
	else
		p->source = SOURCE_UNASKED;
}

static void note_members(struct cluster *c, int64_t now_ms)
{
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p)) {
		const enum membership now = membership_of(c, p, now_ms);

		if (now == placement_get(c->placement, p->index))
			continue;
		membership_changed(c, p, now, now_ms);
		log_event(LOG_INFO, NULL, now == MEMBER_HERE ? "member entered" : "member left", "peer=%s",
			p->conf->name);
	}
}

void resettling_look(struct cluster *c, int64_t now_ms)
{
	if (c->placement)
		note_members(c, now_ms);
}

/* Drop nothing while an agent still takes its part and may need it. */
static bool is_busy(const struct cluster *c)
{
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		if (atomic_load(&c->flags[p->index].alive) &&
			(p->readiness != PEER_READY || p->giver.state != GIVING_NOTHING))
			return true;
	return cluster_state(c) != CLUSTER_READY;
}

/* A step through the store */

struct step {
	struct cluster *cluster;
	unsigned visited, displaced_count;
	enum walk walk;
	uint8_t displaced[VISITED_A_STEP][SESSION_ID_LEN];
};

static bool tells(const struct cluster *c, const struct placement_ranks *before, const struct session *s)
{
	for (unsigned i = 0; i < before->count; i++)
		if (placement_get(c->resettling.after, before->agents[i]) == MEMBER_HERE)
			return before->agents[i] == c->self_index;
	return s->shelved.by == STORED_OWN;
}

static void tell(struct step *step, unsigned agent, const struct session *s)
{
	struct peer *p = step->cluster->peers[agent];
	size_t len;
	const uint8_t *encoded = session_encoded(s, &len);

	if (peer_send_object(p, &s->shelved, encoded, len, true) != 0)
		return; /* without a link the peer asks for its part later, or leaves too */
	count(COUNT_SESSIONS_REPLACED);
	if (stream_pending(&p->link->stream) >= PENDING_ENOUGH)
		step->walk = WALK_PAUSE;
}

/* Send it to agents that hold it now and did not before. */
static void tell_new_holders(struct step *step, const struct placement_ranks *before,
	const struct placement_ranks *after, const struct session *s)
{
	struct cluster *c = step->cluster;

	for (unsigned i = 0; i < after->count; i++) {
		unsigned agent = after->agents[i];

		if (agent != c->self_index && !placement_has(before, agent))
			tell(step, agent, s);
	}
}

static enum walk on_session(void *ctx, const struct shelved *o)
{
	struct step *step = ctx;
	struct cluster *c = step->cluster;
	const struct session *s = session_of(o);
	struct placement_ranks before = placement_rank(c->resettling.before, s->id, replicas(c));
	struct placement_ranks after = placement_rank(c->resettling.after, s->id, replicas(c));

	if (tells(c, &before, s))
		tell_new_holders(step, &before, &after, s);
	if (o->by == STORED_HEARD && !placement_has(&after, c->self_index) && step->displaced_count < VISITED_A_STEP)
		memcpy(step->displaced[step->displaced_count++], s->id, SESSION_ID_LEN);
	return ++step->visited >= VISITED_A_STEP / 2 ? WALK_PAUSE : step->walk;
}

static bool links_are_full(const struct cluster *c)
{
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		if (p->state == PEER_UP && stream_pending(&p->link->stream) >= PENDING_ENOUGH)
			return true;
	return false;
}

static void settled(struct cluster *c)
{
	struct resettling *r = &c->resettling;

	placement_copy(r->before, r->after);
	for (unsigned i = 0; i < c->agent_count; i++)
		if (placement_get(c->placement, i) == MEMBER_HERE)
			placement_set(r->before, i, MEMBER_HERE);
	r->state = r->changed_ms > r->begun_ms ? MEMBERS_CHANGED : RESETTLED;
}

static void go_on(struct cluster *c, int64_t now_ms)
{
	struct step step = { .cluster = c, .walk = WALK_ON };
	struct resettling *r = &c->resettling;
	uint64_t dropped = 0;
	bool more;

	if (links_are_full(c))
		return;
	more = shelf_walk(store_shelf(c->store), &r->cursor, now_ms, on_session, &step);
	for (unsigned i = 0; i < step.displaced_count; i++)
		dropped += (uint64_t)store_displace(c->store, step.displaced[i]);
	count_by(COUNT_SESSIONS_DISPLACED, dropped);
	if (more)
		return;
	settled(c);
	log_event(LOG_INFO, NULL, "sessions resettled", "ms=%" PRId64, now_ms - r->changed_ms);
}

void resettling_tick(struct cluster *c, int64_t now_ms)
{
	struct resettling *r = &c->resettling;

	if (!c->placement)
		return;
	note_members(c, now_ms);
	if (r->state == RESETTLING) {
		go_on(c, now_ms);
	} else if (r->state == MEMBERS_CHANGED && now_ms - r->changed_ms >= SETTLE_MS && !is_busy(c)) {
		placement_copy(r->after, c->placement);
		r->begun_ms = now_ms;
		r->cursor = 0;
		r->state = RESETTLING;
	}
}

/* The agent that had it before @peer came gives it: the next in rank. */
bool resettling_gives(struct cluster *c, const struct peer *peer, const struct session *session)
{
	struct placement_ranks ranks;
	unsigned first = 0;

	if (!c->placement)
		return true;
	ranks = placement_rank(c->placement, session->id, replicas(c) + 1);
	first += ranks.agents[0] == peer->index;
	for (unsigned i = 0; i < ranks.count && i < replicas(c); i++)
		if (ranks.agents[i] == peer->index)
			return first < ranks.count && ranks.agents[first] == c->self_index;
	return false;
}
