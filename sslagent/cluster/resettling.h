/* resettling.h: who is a member of the cluster, and sessions that follow the membership (conf replicas).
 *
 * An agent that lives is a member; one that is away for left_after is none any more. When that changed and has settled,
 * each agent goes through its store: a session for which others hold a place that a lost one held is told to them, by
 * the first of its remaining holders or, when there is none, by the agent that made it; a session heard of that others
 * hold now is dropped. An agent that enters asks for its part itself (joining.h).
 *
 * Main thread. Where every agent holds everything it does nothing. */
#ifndef CSSL_SSLAGENT_RESETTLING_H
#define CSSL_SSLAGENT_RESETTLING_H

#include <stdint.h>

#include "proto/placement.h"

struct cluster;
struct peer;
struct stored;

struct resettling {
	struct placement *before, *after; /* members since the store was settled; those it is being settled for */
	int64_t changed_ms, begun_ms;     /* the membership, last; the walk */
	uint64_t cursor;
	enum { RESETTLED, MEMBERS_CHANGED, RESETTLING } state;
};

/* Name the members, and this agent one. 0 or CSSL_E_NO_MEMORY. */
int resettling_start(struct cluster *c);
void resettling_free(struct cluster *c);

/* Every few milliseconds, a bounded part of the work. */
void resettling_tick(struct cluster *c, int64_t now_ms);

/* See who is a member now, before a peer that has just come is given its part. */
void resettling_look(struct cluster *c, int64_t now_ms);

/* Is it for this agent to give @session to @peer, which asked for its part? */
int resettling_gives(struct cluster *c, const struct peer *peer, const struct stored *session);

#endif
