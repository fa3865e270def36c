/* resettling.c: walk the store in steps, as links have room. The store may not change under a walk, so a session that
 * only others hold is dropped after its step. */
#include "sslagent/cluster/joining/joining.h"

#include <inttypes.h>
#include <string.h>

#include "net/report/log.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/store.h"

#define SETTLE_MS      2000
#define VISITED_A_STEP 512u
#define PENDING_ENOUGH (256u * 1024u)

static unsigned resettling_replicas(const struct peers *peers)
{
	return peers->of.conf->broadcast.replicas;
}

/* Membership */

static enum membership member_state(const struct joining *j, struct peer *p, int64_t now_ms)
{
	if (peers_alive(j->of.peers, p->index)) {
		j->with[p->index].alive_ms = now_ms;
		return MEMBER_HERE;
	}
	if (placement_get(j->of.peers->placement, p->index) == MEMBER_AWAY)
		return MEMBER_AWAY;
	return now_ms - j->with[p->index].alive_ms < j->of.peers->of.conf->broadcast.left_ms ? MEMBER_HERE
											     : MEMBER_AWAY;
}

/* An entering agent asks for its part itself, so it counts as a member from before. */
static void member_changed(struct joining *j, struct peer *p, enum membership now, int64_t now_ms)
{
	struct resettling *r = &j->resettling;

	placement_set(j->of.peers->placement, p->index, now);
	r->changed_ms = now_ms;
	if (r->state == RESETTLED)
		r->state = MEMBERS_CHANGED;
	if (now == MEMBER_HERE)
		placement_set(r->before, p->index, MEMBER_HERE);
	else
		j->with[p->index].source = SOURCE_UNASKED;
}

void resettling_look(struct joining *j, int64_t now_ms)
{
	if (!j->of.peers->placement)
		return;
	for (struct peer *p = peers_next(j->of.peers, NULL); p; p = peers_next(j->of.peers, p)) {
		const enum membership now = member_state(j, p, now_ms);

		if (now == placement_get(j->of.peers->placement, p->index))
			continue;
		member_changed(j, p, now, now_ms);
		log_event(LOG_INFO, NULL, now == MEMBER_HERE ? "member entered" : "member left", "peer=%s",
			p->conf->name);
	}
}

/* Drop nothing while an agent still takes its part and may need it. */
static bool resettling_is_busy(const struct joining *j)
{
	for (struct peer *p = peers_next(j->of.peers, NULL); p; p = peers_next(j->of.peers, p))
		if (peers_alive(j->of.peers, p->index) &&
			(p->readiness != PEER_READY || j->with[p->index].giver.state != GIVING_NOTHING))
			return true;
	return !j->is_ready;
}

/* A step through the store */

struct step {
	struct joining *joining;
	unsigned visited, displaced_count;
	enum walk walk;
	uint8_t displaced[VISITED_A_STEP][SESSION_ID_LEN];
};

static bool resettling_tells(const struct joining *j, const struct placement_ranks *before, const struct session *s)
{
	for (unsigned i = 0; i < before->count; i++)
		if (placement_get(j->resettling.after, before->agents[i]) == MEMBER_HERE)
			return before->agents[i] == j->of.peers->self;
	return s->shelved.by == STORED_OWN;
}

static void resettling_tell(struct step *step, unsigned agent, const struct session *s)
{
	struct peer *p = step->joining->of.peers->at[agent];
	size_t len;
	const uint8_t *encoded = session_encoded(s, &len);

	if (peer_send_object(p, &s->shelved, encoded, len, true) != 0)
		return; /* without a link the peer asks for its part later, or leaves too */
	count(COUNT_SESSIONS_REPLACED);
	if (stream_pending(&p->link->stream) >= PENDING_ENOUGH)
		step->walk = WALK_PAUSE;
}

/* Send it to agents that hold it now and did not before. */
static void resettling_tell_new_holders(struct step *step, const struct placement_ranks *before,
	const struct placement_ranks *after, const struct session *s)
{
	struct joining *j = step->joining;

	for (unsigned i = 0; i < after->count; i++) {
		unsigned agent = after->agents[i];

		if (agent != j->of.peers->self && !placement_has(before, agent))
			resettling_tell(step, agent, s);
	}
}

static enum walk on_session(void *ctx, const struct shelved *o)
{
	struct step *step = ctx;
	struct joining *j = step->joining;
	const struct session *s = session_of(o);
	struct placement_ranks before = placement_rank(j->resettling.before, s->id, resettling_replicas(j->of.peers));
	struct placement_ranks after = placement_rank(j->resettling.after, s->id, resettling_replicas(j->of.peers));

	if (resettling_tells(j, &before, s))
		resettling_tell_new_holders(step, &before, &after, s);
	if (o->by == STORED_HEARD && !placement_has(&after, j->of.peers->self) &&
		step->displaced_count < VISITED_A_STEP)
		memcpy(step->displaced[step->displaced_count++], s->id, SESSION_ID_LEN);
	return ++step->visited >= VISITED_A_STEP / 2 ? WALK_PAUSE : step->walk;
}

static bool resettling_links_are_full(const struct joining *j)
{
	for (struct peer *p = peers_next(j->of.peers, NULL); p; p = peers_next(j->of.peers, p))
		if (p->state == PEER_UP && stream_pending(&p->link->stream) >= PENDING_ENOUGH)
			return true;
	return false;
}

static void resettling_settled(struct joining *j)
{
	struct resettling *r = &j->resettling;

	placement_copy(r->before, r->after);
	for (unsigned i = 0; i < j->of.peers->count; i++)
		if (placement_get(j->of.peers->placement, i) == MEMBER_HERE)
			placement_set(r->before, i, MEMBER_HERE);
	r->state = r->changed_ms > r->begun_ms ? MEMBERS_CHANGED : RESETTLED;
}

static void resettling_go_on(struct joining *j, int64_t now_ms)
{
	struct step step = { .joining = j, .walk = WALK_ON };
	struct resettling *r = &j->resettling;
	uint64_t dropped = 0;
	bool more;

	if (resettling_links_are_full(j))
		return;
	more = shelf_walk(store_shelf(j->of.store), &r->cursor, now_ms, on_session, &step);
	for (unsigned i = 0; i < step.displaced_count; i++)
		dropped += (uint64_t)store_displace(j->of.store, step.displaced[i]);
	count_by(COUNT_SESSIONS_DISPLACED, dropped);
	if (more)
		return;
	resettling_settled(j);
	log_event(LOG_INFO, NULL, "sessions resettled", "ms=%" PRId64, now_ms - r->changed_ms);
}

void resettling_tick(struct joining *j, int64_t now_ms)
{
	struct resettling *r = &j->resettling;

	resettling_look(j, now_ms);
	if (r->state == RESETTLING) {
		resettling_go_on(j, now_ms);
	} else if (r->state == MEMBERS_CHANGED && now_ms - r->changed_ms >= SETTLE_MS && !resettling_is_busy(j)) {
		placement_copy(r->after, j->of.peers->placement);
		r->begun_ms = now_ms;
		r->cursor = 0;
		r->state = RESETTLING;
	}
}

/* The agent that had it before @peer came gives it: the next in rank. */
bool resettling_gives(const struct peers *peers, const struct peer *peer, const struct session *session)
{
	struct placement_ranks ranks;
	unsigned first = 0;

	if (!peers->placement)
		return true;
	ranks = placement_rank(peers->placement, session->id, resettling_replicas(peers) + 1);
	first += ranks.agents[0] == peer->index;
	for (unsigned i = 0; i < ranks.count && i < resettling_replicas(peers); i++)
		if (ranks.agents[i] == peer->index)
			return first < ranks.count && ranks.agents[first] == peers->self;
	return false;
}
