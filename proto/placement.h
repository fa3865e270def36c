/* placement.h: which agents hold a session: the members of the cluster that the rendezvous hash ranks highest for its
 * id. When an agent leaves, only its sessions move, each to the next in rank. When one joins, it takes only the
 * sessions for which it ranks high. The agent that made a session holds it too; this file does not know which that is.
 *
 * After the agents are named, any thread may change and read their membership. */
#pragma once

#include <stdbool.h>

#include "proto/session_id.h"

#define PLACEMENT_RANKS_MAX 16u

struct placement;

/* At first no agent is a member. NULL: out of memory. */
struct placement *placement_create(unsigned agents);
void placement_destroy(struct placement *p);
void placement_name(struct placement *p, unsigned agent, const char *name);
/* Copy @from to @p. Both have the same number of agents. */
void placement_copy(struct placement *p, const struct placement *from);

enum membership { MEMBER_AWAY, MEMBER_HERE };
void placement_set(struct placement *p, unsigned agent, enum membership membership);
enum membership placement_get(const struct placement *p, unsigned agent);

/* The members by rank for @id, the highest first, at most @wanted and at most PLACEMENT_RANKS_MAX. */
struct placement_ranks {
	unsigned count;
	uint16_t agents[PLACEMENT_RANKS_MAX];
};
struct placement_ranks placement_rank(
	const struct placement *p, const uint8_t id[static SESSION_ID_LEN], unsigned wanted);

/* 1 if @agent is among them. */
bool placement_has(const struct placement_ranks *ranks, unsigned agent);
