/* placement.c: for an id, each member draws a number: a hash of both. The highest numbers win. All members have the
 * same weight, so the numbers are compared directly, at a few cycles for each member (rendezvous_pick() takes a
 * logarithm for its weights). */
#include "proto/placement.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/rendezvous.h"

struct seat {
	uint64_t hash; /* of its agent's name */
	_Atomic uint8_t membership;
};

struct placement {
	unsigned agents;
	struct seat seats[];
};

struct placement *placement_create(unsigned agents)
{
	struct placement *p = calloc(1, sizeof *p + agents * sizeof(struct seat));

	assert(agents <= UINT16_MAX);
	if (p)
		p->agents = agents;
	return p;
}

void placement_destroy(struct placement *p)
{
	free(p);
}

void placement_name(struct placement *p, unsigned agent, const char *name)
{
	p->seats[agent].hash = rendezvous_hash(name, strlen(name));
}

void placement_copy(struct placement *p, const struct placement *from)
{
	assert(p->agents == from->agents);
	for (unsigned agent = 0; agent < p->agents; agent++) {
		p->seats[agent].hash = from->seats[agent].hash;
		placement_set(p, agent, placement_get(from, agent));
	}
}

void placement_set(struct placement *p, unsigned agent, enum membership membership)
{
	atomic_store_explicit(&p->seats[agent].membership, (uint8_t)membership, memory_order_relaxed);
}

enum membership placement_get(const struct placement *p, unsigned agent)
{
	return atomic_load_explicit(&p->seats[agent].membership, memory_order_relaxed);
}

/* The best so far, by draw. Of two equal draws, which do not happen, the lower agent wins. */
struct ranking {
	uint64_t draws[PLACEMENT_RANKS_MAX];
	struct placement_ranks ranks;
};

static void ranking_insert(struct ranking *r, unsigned wanted, unsigned agent, uint64_t draw)
{
	unsigned at = r->ranks.count < wanted ? r->ranks.count++ : wanted - 1;

	for (; at > 0 && draw > r->draws[at - 1]; at--) {
		r->draws[at] = r->draws[at - 1];
		r->ranks.agents[at] = r->ranks.agents[at - 1];
	}
	r->draws[at] = draw;
	r->ranks.agents[at] = (uint16_t)agent;
}

struct placement_ranks placement_rank(
	const struct placement *p, const uint8_t id[static SESSION_ID_LEN], unsigned wanted)
{
	uint64_t key = rendezvous_hash(id, SESSION_ID_LEN);
	struct ranking r = { .ranks = { 0 } };

	if (wanted > PLACEMENT_RANKS_MAX)
		wanted = PLACEMENT_RANKS_MAX;
	for (unsigned agent = 0; wanted > 0 && agent < p->agents; agent++) {
		uint64_t draw;

		if (placement_get(p, agent) == MEMBER_AWAY)
			continue;
		draw = rendezvous_draw(p->seats[agent].hash, key);
		if (r.ranks.count < wanted || draw > r.draws[wanted - 1])
			ranking_insert(&r, wanted, agent, draw);
	}
	return r.ranks;
}

bool placement_has(const struct placement_ranks *ranks, unsigned agent)
{
	for (unsigned i = 0; i < ranks->count; i++)
		if (ranks->agents[i] == agent)
			return true;
	return false;
}
