/* links.c: a table of links, by agent and by the agent's worker. */
#include "ragent/dispatch/links.h"

#include <stdlib.h>

#include "proto/error.h"

int links_init(struct links *all, struct agents *agents, unsigned self, unsigned workers)
{
	all->agents = agents;
	all->self = self;
	all->workers = workers;
	all->of = calloc(agents_count(agents) + 1, sizeof *all->of);
	return all->of ? 0 : CSSL_E_NO_MEMORY;
}

int links_create(struct links *all, const struct link_params *p)
{
	struct agent_links *links = &all->of[p->agent_index];
	struct link_params each = *p;

	links->at = calloc(p->agent->workers, sizeof *links->at);
	if (!links->at)
		return CSSL_E_NO_MEMORY;
	for (; links->count < p->agent->workers; links->count++) {
		each.agent_worker = links->count;
		links->at[links->count] = link_create(&each);
		if (!links->at[links->count])
			return CSSL_E_NO_MEMORY;
	}
	return (int)links->count;
}

void links_destroy(struct links *all)
{
	for (unsigned a = 0; all->of && a < agents_count(all->agents); a++) {
		for (unsigned i = 0; i < all->of[a].count; i++)
			link_destroy(all->of[a].at[i]);
		free(all->of[a].at);
		all->of[a] = (struct agent_links){ 0 };
	}
}

void links_clear(struct links *all)
{
	free(all->of);
	all->of = NULL;
}

void links_each(struct links *all, void (*fn)(struct link *l))
{
	for (unsigned a = 0; a < agents_count(all->agents); a++)
		for (unsigned i = 0; i < all->of[a].count; i++)
			fn(all->of[a].at[i]);
}

/* Where the workers of RAgent divide evenly among an agent's workers, each agent worker serves as few of them as
 * possible: then fewer links carry more records at a time. Elsewhere connections are spread over all. */
unsigned links_worker_choice(unsigned ours, unsigned self, unsigned theirs, uint64_t hash)
{
	if (ours % theirs == 0)
		return self % theirs;
	if (theirs % ours == 0)
		return self + ours * (unsigned)(hash % (theirs / ours));
	return (unsigned)(hash % theirs);
}

static bool takes_new(const struct link *l)
{
	return link_state(l) == LINK_UP && link_open(l);
}

struct link *links_choose(struct links *all, int agent, const struct connection_id *id)
{
	const struct agent_links *links = &all->of[agent];
	unsigned first = links_worker_choice(
		all->workers, all->self, links->count, rendezvous_hash(id->bytes, sizeof id->bytes));

	for (unsigned n = 0; n < links->count; n++) {
		struct link *l = links->at[(first + n) % links->count];
		if (takes_new(l))
			return l;
	}
	return NULL;
}

struct link *links_any_open(const struct links *all, int agent)
{
	for (unsigned i = 0; i < all->of[agent].count; i++)
		if (link_open(all->of[agent].at[i]))
			return all->of[agent].at[i];
	return NULL;
}

static bool has_link(const struct agent_links *links)
{
	for (unsigned i = 0; i < links->count; i++)
		if (takes_new(links->at[i]))
			return true;
	return false;
}

size_t links_candidates(struct links *all, int except)
{
	size_t count = 0;

	for (int a = 0; a < (int)agents_count(all->agents); a++)
		if (a != except && agents_take_new(all->agents, a) && has_link(&all->of[a]))
			agents_candidate(all->agents, a, &all->candidates[count++]);
	return count;
}

uint64_t links_queued(const struct links *all)
{
	uint64_t queued = 0;

	for (unsigned a = 0; a < agents_count(all->agents); a++)
		for (unsigned i = 0; i < all->of[a].count; i++)
			queued += link_queued(all->of[a].at[i]);
	return queued;
}
