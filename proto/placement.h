/* placement.h: which agents hold a session: of the members of the cluster, those that the rendezvous hash ranks highest
 * for its id. An agent that leaves moves only what it held, to the next in rank; one that joins takes only what it
 * ranks high for. Who makes a session always holds it as well; that is not asked here.
 *
 * Made and named once, then shared: membership may change and be asked from any thread. */
#ifndef CSSL_PROTO_PLACEMENT_H
#define CSSL_PROTO_PLACEMENT_H

#include "proto/session_id.h"

#define PLACEMENT_RANKS_MAX 16u

struct placement;

/* Nobody is a member yet. NULL: out of memory. */
struct placement *placement_create(unsigned agents);
void placement_destroy(struct placement *p);
void placement_name(struct placement *p, unsigned agent, const char *name);
/* Become what @from is. Both are of as many agents with the same names. */
void placement_copy(struct placement *p, const struct placement *from);

enum membership { MEMBER_AWAY, MEMBER_HERE };
void placement_set(struct placement *p, unsigned agent, enum membership membership);
enum membership placement_get(const struct placement *p, unsigned agent);
unsigned placement_agents(const struct placement *p);

/* Members by rank for @id, the highest first, at most @wanted (and PLACEMENT_RANKS_MAX). How many. */
struct placement_ranks {
	unsigned count;
	uint16_t agents[PLACEMENT_RANKS_MAX];
};
struct placement_ranks placement_rank(
	const struct placement *p, const uint8_t id[static SESSION_ID_LEN], unsigned wanted);

/* 1 if @agent is among them. */
int placement_has(const struct placement_ranks *ranks, unsigned agent);

#endif
