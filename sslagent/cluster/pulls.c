/* pulls.c: a pull belongs to the worker that waits. The worker hands it to the main thread. The main thread asks, and
 * hands it back when it is over. Only the worker touches the callback, so to cancel a pull it clears the callback.
 */
#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "proto/error.h"
#include "proto/scratch.h"
#include "proto/wire.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/store.h"

#define ASKED_MAX        16u /* more than all holders and agents with the origin's number */
#define WAITING_MAX      8192u
#define NEGATIVE_KEEP_MS 2000

struct session_pull {
	struct thread_task task;
	struct table_link link; /* by its id */
	struct cluster *cluster;
	struct cluster_thread *home;
	uint8_t id[SESSION_ID_LEN];
	uint16_t origin;
	enum session_answer answer;
	int64_t until_ms, ask_at_ms;
	unsigned absent[ASKED_MAX], absent_count;
	/* the worker's */
	void (*done)(void *ctx, enum session_answer answer); /* NULL: cancelled */
	void *ctx;
};

/* On the worker again. */
static void pull_report(struct thread_task *task)
{
	struct session_pull *p = container_of(task, struct session_pull, task);

	if (p->done)
		p->done(p->ctx, p->answer);
	free(p);
}

static void pull_drop(struct thread_task *task)
{
	free(container_of(task, struct session_pull, task));
}

static void pull_hand_back(struct session_pull *p, enum session_answer answer, enum agent_counter why)
{
	count(why);
	p->answer = answer;
	p->task.run = pull_report;
	cluster_thread_hand(p->home, &p->task);
}

/* Ids are random at their end. */
static uint64_t pull_hash(const uint8_t *id)
{
	return wire_load_u64(id + SESSION_ID_LEN - 8);
}

/* The next pull of that session, or the first. */
static struct session_pull *pulls_find(struct pulls *all, const uint8_t *id, struct session_pull *p)
{
	for (struct table_link *l = p ? table_next(&p->link) : table_first(&all->table, pull_hash(id)); l;
		l = table_next(l)) {
		p = container_of(l, struct session_pull, link);
		if (memcmp(p->id, id, SESSION_ID_LEN) == 0)
			return p;
	}
	return NULL;
}

static void pull_finish(struct pulls *all, struct session_pull *p, enum session_answer answer, enum agent_counter why)
{
	table_remove(&all->table, &p->link);
	all->waiting--;
	pull_hand_back(p, answer, why);
}

static void pull_by_datagram(struct cluster *c, unsigned agent, const uint8_t *id)
{
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = cluster_now_ms(),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_PULL, .pull = bytes_of(id, SESSION_ID_LEN) };

	broadcast_sender_say(cluster_main_thread(c)->sender, (int)agent, &m);
	count(COUNT_PULLS_ASKED);
}

static int pull_over_link(struct cluster *c, unsigned agent, const uint8_t *id)
{
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PULL,
		.pull = bytes_of(id, SESSION_ID_LEN) };
	int r = peer_send(c->peers.at[agent], &m);

	if (!r)
		count(COUNT_PULLS_ASKED);
	return r;
}

/* Agents that may have it, the likeliest first. */
struct candidates {
	unsigned count, agents[ASKED_MAX];
};

static void pull_add_candidate(
	const struct cluster *c, const struct session_pull *p, unsigned agent, struct candidates *to)
{
	bool is_left_out = to->count == ASKED_MAX || !peers_alive(&c->peers, agent);

	for (unsigned i = 0; i < to->count; i++)
		is_left_out |= to->agents[i] == agent;
	for (unsigned i = 0; i < p->absent_count; i++)
		is_left_out |= p->absent[i] == agent;
	if (!is_left_out)
		to->agents[to->count++] = agent;
}

/* One rank more than replicas: after a change of members the next in rank may still have it. */
static struct candidates pull_candidates(const struct cluster *c, const struct session_pull *p)
{
	struct placement_ranks holders = { 0 };
	struct candidates found = { 0 };

	if (c->peers.placement)
		holders = peers_holders(&c->peers, p->id, c->conf->broadcast.replicas + 1);
	for (unsigned i = 0; i < holders.count; i++)
		pull_add_candidate(c, p, holders.agents[i], &found);
	for (struct peer *peer = peers_next(&c->peers, NULL); peer; peer = peers_next(&c->peers, peer))
		if (peer->origin == p->origin)
			pull_add_candidate(c, p, peer->index, &found);
	return found;
}

/* ONE and ALL ask over links, where there are any. */
enum attempt { ASK_ONE, ASK_ALL, ASK_AGAIN };

/* Returns how many agents were or could be asked. */
static unsigned pull_ask(struct cluster *c, struct session_pull *p, enum attempt attempt, int64_t now_ms)
{
	struct candidates who = pull_candidates(c, p);

	for (unsigned i = 0; i < who.count; i++) {
		if (i > 0 && attempt == ASK_ONE && c->peers.placement)
			break;
		if (attempt == ASK_AGAIN || pull_over_link(c, who.agents[i], p->id) != 0)
			pull_by_datagram(c, who.agents[i], p->id);
	}
	p->ask_at_ms = now_ms + PULL_EVERY_MS;
	return who.count;
}

/* On the main thread. It waits before it looks: a thread that stores the session after the look then tells. */
static void pull_begin(struct thread_task *task)
{
	struct session_pull *p = container_of(task, struct session_pull, task);
	struct cluster *c = p->cluster;
	int64_t now_ms = cluster_now_ms();

	p->until_ms = now_ms + c->conf->broadcast.park_ms;
	if (table_add(&c->pulls.table, &p->link, pull_hash(p->id)) != 0) {
		pull_hand_back(p, SESSION_ABSENT, COUNT_PULLS_ABSENT);
		return;
	}
	c->pulls.waiting++;
	if (store_peek(c->store, p->id, now_ms, NULL, NULL) == 0) /* came meanwhile */
		pull_finish(&c->pulls, p, SESSION_FOUND, COUNT_PULLS_FOUND);
	else if (c->pulls.waiting > WAITING_MAX || pull_ask(c, p, ASK_ONE, now_ms) == 0)
		pull_finish(&c->pulls, p, SESSION_ABSENT, COUNT_PULLS_ABSENT);
	else
		cluster_thread_tick_within(c, BROADCAST_TICK_MS);
}

struct session_pull *pulls_start(struct cluster *c, struct worker *w, const uint8_t id[static SESSION_ID_LEN],
	uint16_t origin, void (*done)(void *ctx, enum session_answer answer), void *ctx)
{
	struct cluster_thread *home = cluster_thread_of(c, w);
	struct session_pull *p;

	if (!home)
		return NULL;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->task = (struct thread_task){ .run = pull_begin, .drop = pull_drop };
	p->cluster = c;
	p->home = home;
	memcpy(p->id, id, SESSION_ID_LEN);
	p->origin = origin;
	p->done = done;
	p->ctx = ctx;
	count(COUNT_PULLS);
	cluster_thread_hand(cluster_main_thread(c), &p->task);
	return p;
}

void pulls_cancel(struct session_source *s, struct session_pull *p)
{
	if (p)
		p->done = NULL;
}

static void pulls_end_found(struct cluster *c, unsigned from, const uint8_t *id)
{
	for (struct session_pull *next, *p = pulls_find(&c->pulls, id, NULL); p; p = next) {
		next = pulls_find(&c->pulls, id, p);
		pull_finish(&c->pulls, p, SESSION_FOUND, COUNT_PULLS_FOUND);
	}
}

void pulls_found(struct cluster *c, const uint8_t id[static SESSION_ID_LEN])
{
	if (c->pulls.waiting > 0)
		cluster_thread_tell_main(c, pulls_end_found, c->peers.self, id, SESSION_ID_LEN);
}

/* 1: no agent is left that may have it. */
static bool pull_note_absent(struct cluster *c, struct session_pull *p, unsigned from)
{
	struct candidates before = pull_candidates(c, p);
	unsigned at = 0;

	while (at < before.count && before.agents[at] != from)
		at++;
	if (at == before.count || p->absent_count == ASKED_MAX)
		return false;
	p->absent[p->absent_count++] = from;
	if (c->peers.placement && p->absent_count == 1) /* the only one asked until now */
		return pull_ask(c, p, ASK_ALL, cluster_now_ms()) == 0;
	return before.count == 1;
}

static void pulls_end_absent(struct cluster *c, unsigned from, const uint8_t *id)
{
	for (struct session_pull *next, *p = pulls_find(&c->pulls, id, NULL); p; p = next) {
		next = pulls_find(&c->pulls, id, p);
		if (!pull_note_absent(c, p, from))
			continue;
		recent_note(c->negatives, recent_id(id), cluster_now_ms() + NEGATIVE_KEEP_MS);
		pull_finish(&c->pulls, p, SESSION_ABSENT, COUNT_PULLS_ABSENT);
	}
}

/* It has the session, but it does not fit a datagram: ask over the link now, or take all its sessions later. */
static void pulls_fetch(struct cluster *c, unsigned from, const uint8_t *id)
{
	joining_fetch(&c->joining, c->peers.at[from], id);
}

/* Questions of others */

struct answer {
	struct cluster *cluster;
	unsigned to;
};

static void pulls_say_object(void *ctx, const struct session *session)
{
	const struct answer *a = ctx;
	struct broadcast_sender *mine = cluster_main_thread(a->cluster)->sender;
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = session->shelved.made_ms,
		.family_made_ms = session->shelved.family_made_ms, .what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ };
	Cssl__BroadcastMessage too_large = { MESSAGE(broadcast_message), .made_ms = cluster_now_ms(),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_TOO_LARGE,
		.too_large = bytes_of(session->id, SESSION_ID_LEN) };

	m.ssl_obj.data = (uint8_t *)session_encoded(session, &m.ssl_obj.len);
	if (broadcast_sender_say(mine, (int)a->to, &m) != 0)
		broadcast_sender_say(mine, (int)a->to, &too_large);
}

static void pulls_answer(struct cluster *c, unsigned sender, const uint8_t *id)
{
	Cssl__BroadcastMessage absent = { MESSAGE(broadcast_message), .made_ms = cluster_now_ms(),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_ABSENT, .absent = bytes_of(id, SESSION_ID_LEN) };
	struct answer a = { c, sender };

	count(COUNT_PULLS_ANSWERED);
	if (store_peek(c->store, id, cluster_now_ms(), pulls_say_object, &a) != 0)
		broadcast_sender_say(cluster_main_thread(c)->sender, (int)sender, &absent);
}

void pulls_heard(struct cluster *c, unsigned from, const Cssl__BroadcastMessage *m)
{
	if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_PULL)
		cluster_thread_tell_main(c, pulls_answer, from, m->pull.data, SESSION_ID_LEN);
	else if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_ABSENT)
		cluster_thread_tell_main(c, pulls_end_absent, from, m->absent.data, SESSION_ID_LEN);
	else
		cluster_thread_tell_main(c, pulls_fetch, from, m->too_large.data, SESSION_ID_LEN);
}

static void pulls_send_object(void *peer, const struct session *session)
{
	size_t len;
	const uint8_t *encoded = session_encoded(session, &len);

	peer_send_object(peer, &session->shelved, encoded, len, false);
}

static int pulls_answer_over_link(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m)
{
	Cssl__PeerMessage absent = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_ABSENT,
		.absent = m->pull };

	if (m->pull.len != SESSION_ID_LEN)
		return CSSL_E_RANGE;
	count(COUNT_PULLS_ANSWERED);
	if (store_peek(c->store, m->pull.data, cluster_now_ms(), pulls_send_object, p) != 0)
		peer_send(p, &absent);
	return 0;
}

int pulls_on_message(struct cluster *c, struct peer *p, const Cssl__PeerMessage *m)
{
	if (m->what_case == CSSL__PEER_MESSAGE__WHAT_PULL)
		return pulls_answer_over_link(c, p, m);
	if (m->what_case != CSSL__PEER_MESSAGE__WHAT_ABSENT)
		return 0;
	if (m->absent.len != SESSION_ID_LEN)
		return CSSL_E_RANGE;
	pulls_end_absent(c, p->index, m->absent.data);
	return 0;
}

/* Those whose time is up end, the others ask again where that is due. */
void pulls_tick(struct cluster *c, int64_t now_ms)
{
	const enum agent_counter over = now_ms == PULLS_END ? COUNT_PULLS_ABSENT : COUNT_PULLS_TIMED_OUT;
	struct pulls *all = &c->pulls;

	for (struct table_link *next, *l = table_walk(&all->table, NULL); l; l = next) {
		struct session_pull *p = container_of(l, struct session_pull, link);

		next = table_walk(&all->table, l);
		if (now_ms >= p->until_ms)
			pull_finish(all, p, SESSION_ABSENT, over);
		else if (now_ms >= p->ask_at_ms && pull_ask(c, p, ASK_AGAIN, now_ms) == 0)
			pull_finish(all, p, SESSION_ABSENT, COUNT_PULLS_ABSENT);
	}
}
