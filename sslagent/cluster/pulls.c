/* pulls.c: a pull belongs to the worker that waits. The worker hands it to the main thread. The main thread asks, and
 * hands it back when it is over. Only the worker touches the callback, so to cancel a pull it clears the callback.
 */
#include "sslagent/cluster/pulls.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wire.h"
#include "sslagent/cluster/cluster_internal.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/peer.h"

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

void pulls_free(struct pulls *p)
{
	table_clear(&p->table);
}

/* On the worker again. */
static void report(struct thread_task *task)
{
	struct session_pull *p = container_of(task, struct session_pull, task);

	if (p->done)
		p->done(p->ctx, p->answer);
	free(p);
}

static void drop(struct thread_task *task)
{
	free(container_of(task, struct session_pull, task));
}

static void hand_back(struct session_pull *p, enum session_answer answer, enum agent_counter why)
{
	count(why);
	p->answer = answer;
	p->task.run = report;
	cluster_thread_hand(p->home, &p->task);
}

/* Ids are random at their end. */
static uint64_t hash_of(const uint8_t *id)
{
	return wire_load_u64(id + SESSION_ID_LEN - 8);
}

/* The next pull of that session, or the first. */
static struct session_pull *find(struct pulls *all, const uint8_t *id, struct session_pull *p)
{
	for (struct table_link *l = p ? table_next(&p->link) : table_first(&all->table, hash_of(id)); l;
		l = table_next(l)) {
		p = container_of(l, struct session_pull, link);
		if (memcmp(p->id, id, SESSION_ID_LEN) == 0)
			return p;
	}
	return NULL;
}

static void finish(struct pulls *all, struct session_pull *p, enum session_answer answer, enum agent_counter why)
{
	table_remove(&all->table, &p->link);
	all->waiting--;
	hand_back(p, answer, why);
}

static void say_pull(struct cluster *c, unsigned agent, const uint8_t *id)
{
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_PULL,
		.pull = bytes_of(id, SESSION_ID_LEN) };

	cluster_thread_say(cluster_main_thread(c), (int)agent, &m);
	count(COUNT_PULLS_ASKED);
}

static int pull_over_link(struct cluster *c, unsigned agent, const uint8_t *id)
{
	Cssl__PeerMessage m = { MESSAGE(peer_message), .what_case = CSSL__PEER_MESSAGE__WHAT_PULL,
		.pull = bytes_of(id, SESSION_ID_LEN) };
	int r = peer_send(c->peers[agent], &m);

	if (!r)
		count(COUNT_PULLS_ASKED);
	return r;
}

static bool said_absent(const struct session_pull *p, unsigned agent)
{
	for (unsigned i = 0; i < p->absent_count; i++)
		if (p->absent[i] == agent)
			return true;
	return false;
}

/* Agents that may have it, the likeliest first. */
struct candidates {
	unsigned count, agents[ASKED_MAX];
};

static void add_candidate(const struct cluster *c, const struct session_pull *p, unsigned agent, struct candidates *to)
{
	for (unsigned i = 0; i < to->count; i++)
		if (to->agents[i] == agent)
			return;
	if (to->count < ASKED_MAX && atomic_load(&c->flags[agent].alive) && !said_absent(p, agent))
		to->agents[to->count++] = agent;
}

/* One rank more than replicas: after a change of members the next in rank may still have it. */
static struct candidates candidates(const struct cluster *c, const struct session_pull *p)
{
	struct placement_ranks holders = { 0 };
	struct candidates found = { 0 };

	if (c->placement)
		holders = cluster_holders(c, p->id, c->conf->broadcast.replicas + 1);
	for (unsigned i = 0; i < holders.count; i++)
		add_candidate(c, p, holders.agents[i], &found);
	for (struct peer *peer = peer_next(c, NULL); peer; peer = peer_next(c, peer))
		if (c->flags[peer->index].origin == p->origin)
			add_candidate(c, p, peer->index, &found);
	return found;
}

/* ONE and ALL ask over links, where there are any. */
enum attempt { ASK_ONE, ASK_ALL, ASK_AGAIN };

/* Returns how many agents were or could be asked. */
static unsigned ask(struct cluster *c, struct session_pull *p, enum attempt attempt, int64_t now_ms)
{
	struct candidates who = candidates(c, p);

	for (unsigned i = 0; i < who.count; i++) {
		if (i > 0 && attempt == ASK_ONE && c->placement)
			break;
		if (attempt == ASK_AGAIN || pull_over_link(c, who.agents[i], p->id) != 0)
			say_pull(c, who.agents[i], p->id);
	}
	p->ask_at_ms = now_ms + PULL_EVERY_MS;
	return who.count;
}

/* On the main thread. It waits before it looks: a thread that stores the session after the look then tells. */
static void begin(struct thread_task *task)
{
	struct session_pull *p = container_of(task, struct session_pull, task);
	struct cluster *c = p->cluster;
	int64_t now_ms = cluster_now_ms();

	p->until_ms = now_ms + c->conf->broadcast.park_ms;
	if (table_add(&c->pulls.table, &p->link, hash_of(p->id)) != 0) {
		hand_back(p, SESSION_ABSENT, COUNT_PULLS_ABSENT);
		return;
	}
	c->pulls.waiting++;
	if (store_peek(c->store, p->id, now_ms, NULL, NULL) == 0) /* came meanwhile */
		finish(&c->pulls, p, SESSION_FOUND, COUNT_PULLS_FOUND);
	else if (c->pulls.waiting > WAITING_MAX || ask(c, p, ASK_ONE, now_ms) == 0)
		finish(&c->pulls, p, SESSION_ABSENT, COUNT_PULLS_ABSENT);
	else
		cluster_tick_as_needed(c);
}

struct session_pull *pulls_start(struct cluster *c, struct worker *w, const uint8_t id[static SESSION_ID_LEN],
	void (*done)(void *ctx, enum session_answer answer), void *ctx)
{
	struct cluster_thread *home = cluster_thread_of(c, w);
	struct session_id_facts facts;
	struct session_pull *p;

	if (!home || cluster_id_check(c, id, SESSION_ID_LEN, &facts) != 0)
		return NULL;
	p = calloc(1, sizeof *p);
	if (!p)
		return NULL;
	p->task = (struct thread_task){ .run = begin, .drop = drop };
	p->cluster = c;
	p->home = home;
	memcpy(p->id, id, SESSION_ID_LEN);
	p->origin = facts.origin;
	p->done = done;
	p->ctx = ctx;
	count(COUNT_PULLS);
	cluster_thread_hand(cluster_main_thread(c), &p->task);
	return p;
}

void pulls_cancel(struct session_pull *p)
{
	if (p)
		p->done = NULL;
}

static void found(struct cluster *c, unsigned from, const uint8_t *id)
{
	for (struct session_pull *next, *p = find(&c->pulls, id, NULL); p; p = next) {
		next = find(&c->pulls, id, p);
		finish(&c->pulls, p, SESSION_FOUND, COUNT_PULLS_FOUND);
	}
}

void pulls_found(struct cluster *c, const uint8_t id[static SESSION_ID_LEN])
{
	if (c->pulls.waiting > 0)
		cluster_tell_main(c, found, c->self_index, id, SESSION_ID_LEN);
}

/* 1: no agent is left that may have it. */
static bool note_absent(struct cluster *c, struct session_pull *p, unsigned from)
{
	struct candidates before = candidates(c, p);
	unsigned at = 0;

	while (at < before.count && before.agents[at] != from)
		at++;
	if (at == before.count || p->absent_count == ASKED_MAX)
		return false;
	p->absent[p->absent_count++] = from;
	if (c->placement && p->absent_count == 1) /* the only one asked until now */
		return ask(c, p, ASK_ALL, cluster_now_ms()) == 0;
	return before.count == 1;
}

void pulls_absent(struct cluster *c, unsigned from, const uint8_t id[static SESSION_ID_LEN])
{
	for (struct session_pull *next, *p = find(&c->pulls, id, NULL); p; p = next) {
		next = find(&c->pulls, id, p);
		if (!note_absent(c, p, from))
			continue;
		recent_note(c->negatives, recent_id(id), cluster_now_ms() + NEGATIVE_KEEP_MS);
		finish(&c->pulls, p, SESSION_ABSENT, COUNT_PULLS_ABSENT);
	}
}

void pulls_over_link(struct cluster *c, unsigned from, const uint8_t id[static SESSION_ID_LEN])
{
	struct peer *p = c->peers[from];

	if (store_peek(c->store, id, cluster_now_ms(), NULL, NULL) == 0)
		return;
	if (pull_over_link(c, from, id) == 0)
		p->announced++;
	else
		p->own_due = PEER_OWN_DUE;
}

/* Those whose time is up end, the others ask again where that is due. */
static void look_at_all(struct cluster *c, int64_t now_ms, enum agent_counter over)
{
	struct pulls *all = &c->pulls;

	for (struct table_link *next, *l = table_walk(&all->table, NULL); l; l = next) {
		struct session_pull *p = container_of(l, struct session_pull, link);

		next = table_walk(&all->table, l);
		if (now_ms >= p->until_ms)
			finish(all, p, SESSION_ABSENT, over);
		else if (now_ms >= p->ask_at_ms && ask(c, p, ASK_AGAIN, now_ms) == 0)
			finish(all, p, SESSION_ABSENT, COUNT_PULLS_ABSENT);
	}
}

void pulls_tick(struct cluster *c, int64_t now_ms)
{
	if (c->pulls.waiting > 0)
		look_at_all(c, now_ms, COUNT_PULLS_TIMED_OUT);
}

bool pulls_wait(const struct cluster *c)
{
	return c->pulls.waiting > 0;
}

void pulls_finish(struct cluster *c)
{
	look_at_all(c, INT64_MAX, COUNT_PULLS_ABSENT);
}
