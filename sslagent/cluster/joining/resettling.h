/* resettling.h: the members of the cluster, and sessions that follow the membership (conf replicas).
 *
 * A living agent is a member. An agent that is away for left_after is no member any more. After a change, when the
 * membership has settled, each agent goes through its store. When an agent is lost, its sessions are sent to the agents
 * that take over its places. The first remaining holder sends a session, or, without one, the agent that made it. A
 * session from another agent is dropped when only others hold it now. An entering agent asks for its part itself
 * (joining.h). Part of joining/: nobody drops or moves a session while another agent still takes it.
 *
 * Main thread. Where every agent holds everything it does nothing. */
#ifndef CSSL_SSLAGENT_RESETTLING_H
#define CSSL_SSLAGENT_RESETTLING_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/placement.h"

struct joining;
struct peer;
struct peers;
struct session;

/* joining_init() makes it. */
struct resettling {
	struct placement *before,
		*after; /* members for which the store is settled; members for which it is being settled */
	int64_t changed_ms, begun_ms; /* last change of the membership; begin of the walk */
	uint64_t cursor;
	enum { RESETTLED, MEMBERS_CHANGED, RESETTLING } state;
};

/* Every few milliseconds, a bounded part of the work; and before a new peer gets its part. */
void resettling_tick(struct joining *j, int64_t now_ms);

/* 1 when this agent has to give @session to @peer, which asked for its part, else 0. */
bool resettling_gives(const struct peers *peers, const struct peer *peer, const struct session *session);

#endif
