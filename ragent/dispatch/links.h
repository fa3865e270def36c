/* links.h: the links of one worker of RAgent to every worker of every agent, and which agents can get something new
 * over them. Used only from the worker's thread.
 */
#ifndef CSSL_RAGENT_LINKS_H
#define CSSL_RAGENT_LINKS_H

#include "proto/sess_obj.h"
#include "ragent/dispatch/agents.h"
#include "ragent/link/link.h"

struct agent_links {
	struct link **at; /* by the agent's worker */
	unsigned count;
};

/* Embedded; zero has none and may be cleared. */
struct links {
	struct agents *agents;
	struct agent_links *of;                  /* by agent */
	unsigned self, workers;                  /* which of how many workers of RAgent this one is */
	struct candidate candidates[AGENTS_MAX]; /* as links_candidates() found them last */
};

/* @agents outlives it. 0 or CSSL_E_NO_MEMORY. */
int links_init(struct links *all, struct agents *agents, unsigned self, unsigned workers);
/* One link to each worker of the agent that @p names, each with its own agent_worker. @p as for link_create(). Returns
 * how many there are now, or CSSL_E_NO_MEMORY: those that were made stay. */
int links_create(struct links *all, const struct link_params *p);
/* After each of them was closed, or before the loop first turned. */
void links_destroy(struct links *all);
/* Free what links_init() made. */
void links_clear(struct links *all);

void links_each(struct links *all, void (*fn)(struct link *l));

/* Which of an agent's workers has a connection, for as long as that agent has it: for worker @self of RAgent's @ours,
 * at an agent of @theirs workers, by the connection's @hash. Pure. */
unsigned worker_choice(unsigned ours, unsigned self, unsigned theirs, uint64_t hash);

/* A link to @agent on which something new may begin; the agent's worker is worker_choice()'s, or another where its link
 * is not up. NULL: none. */
struct link *links_choose(struct links *all, int agent, const struct connection_id *id);
/* Any open link to @agent. NULL: none. */
struct link *links_any_open(const struct links *all, int agent);

/* The agents that may get something new from this worker, into @all->candidates; returns how many. @except: an agent to
 * leave out, or NO_AGENT. */
size_t links_candidates(struct links *all, int except);

/* Bytes that wait for the network, on all of them. */
uint64_t links_queued(const struct links *all);

#endif
