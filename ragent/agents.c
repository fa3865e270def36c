/* agents.c: one row of relaxed atomics per agent. Nothing here orders memory: a choice made on a count that is a moment
 * old is a good choice still.
 */
#include "ragent/agents.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct agent_row {
	const struct conf_agent *conf;
	struct rendezvous_node node;
	_Atomic uint32_t links_up, links_suspect;
	_Atomic uint64_t boot_id;
	_Atomic uint32_t ready, leaving;
	_Atomic uint64_t handshakes, connections;
	_Atomic uint64_t sessions;
	_Atomic uint32_t handshake_us, busy_permille;
};

struct agents {
	unsigned count;
	struct agent_row rows[];
};

#define GET(field)    atomic_load_explicit(&(field), memory_order_relaxed)
#define SET(field, v) atomic_store_explicit(&(field), (v), memory_order_relaxed)
#define ADD(field, n) atomic_fetch_add_explicit(&(field), (n), memory_order_relaxed)
#define SUB(field, n) atomic_fetch_sub_explicit(&(field), (n), memory_order_relaxed)

struct agents *agents_create(const struct conf *conf)
{
	if (conf->agent_count > AGENTS_MAX)
		return NULL;
	struct agents *a = calloc(1, sizeof *a + conf->agent_count * sizeof a->rows[0]);
	if (!a)
		return NULL;
	a->count = (unsigned)conf->agent_count;
	for (unsigned i = 0; i < a->count; i++) {
		const struct conf_agent *c = &conf->agents[i];
		a->rows[i].conf = c;
		a->rows[i].node.hash = rendezvous_hash(c->name, strlen(c->name));
		a->rows[i].node.weight = c->weight;
	}
	return a;
}

void agents_destroy(struct agents *a)
{
	free(a);
}

unsigned agents_count(const struct agents *a)
{
	return a->count;
}

const struct conf_agent *agents_conf(const struct agents *a, int agent)
{
	return a->rows[agent].conf;
}

const char *agents_name(const struct agents *a, int agent)
{
	return agent == NO_AGENT ? "none" : a->rows[agent].conf->name;
}

int agents_find(const struct agents *a, const char *name)
{
	for (unsigned i = 0; i < a->count; i++)
		if (strcmp(a->rows[i].conf->name, name) == 0)
			return (int)i;
	return NO_AGENT;
}

void agents_link_up(struct agents *a, int agent, uint64_t boot_id)
{
	struct agent_row *r = &a->rows[agent];
	uint64_t before = atomic_exchange_explicit(&r->boot_id, boot_id, memory_order_relaxed);

	if (ADD(r->links_up, 1) == 0 || before != boot_id) {
		SET(r->ready, 0);
		SET(r->leaving, 0);
		SET(r->handshake_us, 0);
	}
}

void agents_link_down(struct agents *a, int agent)
{
	SUB(a->rows[agent].links_up, 1);
}

void agents_link_suspect(struct agents *a, int agent)
{
	ADD(a->rows[agent].links_suspect, 1);
}

void agents_link_recovered(struct agents *a, int agent)
{
	SUB(a->rows[agent].links_suspect, 1);
}

void agents_set_load(struct agents *a, int agent, const struct agent_load *load)
{
	struct agent_row *r = &a->rows[agent];

	SET(r->sessions, load->sessions);
	SET(r->handshake_us, load->handshake_us);
	SET(r->busy_permille, load->busy_permille);
	SET(r->ready, load->ready == AGENT_READY);
}

void agents_set_leaving(struct agents *a, int agent)
{
	SET(a->rows[agent].leaving, 1);
}

int agents_take_new(const struct agents *a, int agent)
{
	const struct agent_row *r = &a->rows[agent];

	return GET(r->ready) && !GET(r->leaving);
}

static _Atomic uint64_t *share_of(struct agents *a, int agent, enum agent_share share)
{
	return share == AGENT_HANDSHAKES ? &a->rows[agent].handshakes : &a->rows[agent].connections;
}

void agents_enter(struct agents *a, int agent, enum agent_share share)
{
	ADD(*share_of(a, agent, share), 1);
}

void agents_leave(struct agents *a, int agent, enum agent_share share)
{
	SUB(*share_of(a, agent, share), 1);
}

void agents_candidate(const struct agents *a, int agent, struct candidate *out)
{
	const struct agent_row *r = &a->rows[agent];

	out->agent = agent;
	out->node = r->node;
	out->connections = GET(r->connections);
	out->handshakes = GET(r->handshakes);
	out->handshake_us = GET(r->handshake_us);
}

static const char *state_of(const struct agent_row *r)
{
	if (GET(r->links_up) == 0)
		return "lost";
	if (GET(r->leaving))
		return "leaving";
	if (GET(r->links_suspect) >= GET(r->links_up))
		return "suspect";
	return GET(r->ready) ? "up" : "joining";
}

void agents_status(const struct agents *a, int agent, struct agent_status *out)
{
	const struct agent_row *r = &a->rows[agent];

	out->name = r->conf->name;
	out->state = state_of(r);
	out->links_up = GET(r->links_up);
	out->links_suspect = GET(r->links_suspect);
	out->connections = GET(r->connections);
	out->handshakes = GET(r->handshakes);
	out->sessions = GET(r->sessions);
	out->busy_permille = GET(r->busy_permille);
	out->handshake_us = GET(r->handshake_us);
}
