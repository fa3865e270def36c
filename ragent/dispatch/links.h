/* links.h: the links of one worker of RAgent to every worker of every agent, and the agents that can get new work over
 * them. Used only from the worker's thread.
 */
#pragma once

#include "proto/ids.h"
#include "ragent/dispatch/agents.h"
#include "ragent/link/link.h"

struct agent_links {
	struct link **at; /* by the agent's worker */
	unsigned count;
};

/* Embedded; all zero: no links; may be cleared. */
struct links {
	struct agents *agents;
	struct agent_links *of;                  /* by agent */
	unsigned self, workers;                  /* index of this worker of RAgent, of so many workers */
	struct candidate candidates[AGENTS_MAX]; /* result of the last links_candidates() */
};

/* @agents outlives it. 0 or CSSL_E_NO_MEMORY. */
int links_init(struct links *all, struct agents *agents, unsigned self, unsigned workers);
/* One link to each worker of the agent that @p names, each with its own agent_worker. @p as for link_create(). Returns
 * how many there are now, or CSSL_E_NO_MEMORY: those that were made stay. */
int links_create(struct links *all, const struct link_params *p);
/* Call it after each link was closed, or before the first turn of the loop. */
void links_destroy(struct links *all);
/* Free what links_init() made. */
void links_clear(struct links *all);

void links_each(struct links *all, void (*fn)(struct link *l));

/* The agent's worker for a connection, as long as that agent has it. @self is the index of RAgent's worker, of @ours
 * workers; the agent has @theirs workers; @hash is the connection's. Pure. */
unsigned links_worker_choice(unsigned ours, unsigned self, unsigned theirs, uint64_t hash);

/* A link to @agent for a new stream. links_worker_choice() names the agent's worker; if its link is not up, another
 * worker is taken. NULL: none. */
struct link *links_choose(struct links *all, int agent, const struct connection_id *id);
/* Any open link to @agent. NULL: none. */
struct link *links_any_open(const struct links *all, int agent);

/* Write the agents that this worker may give new work to @all->candidates. Returns how many. @except: an agent to leave
 * out, or NO_AGENT. */
size_t links_candidates(struct links *all, int except);

/* Bytes that wait for the network on all links. */
uint64_t links_queued(const struct links *all);
