/* mover.h: what changes the agent of a worker's connections without anybody's asking for one of them. Three purposes:
 *
 * Drain: an agent gives away all it has. Idle connections rest, others move now or at their next checkpoint; what is
 * left at the deadline says goodbye to its client.
 *
 * Rebalance: agents joined, came back or got another weight. Connections follow their address, at a bounded rate.
 *
 * Rest: an idle connection gives its agent back. Asked for by the connection's own deadline.
 *
 * A sweep goes over the worker's connections a bounded number in each turn, and only while there is something to do.
 * Embedded in the worker; used only from its thread.
 */
#ifndef CSSL_RAGENT_MOVER_H
#define CSSL_RAGENT_MOVER_H

#include "net/timer.h"
#include "ragent/connection/connection.h"

enum mover_purpose {
	MOVER_DRAIN,         /* at once, or not */
	MOVER_DRAIN_PATIENT, /* its owner waits for a checkpoint */
	MOVER_REBALANCE,
	MOVER_REST,
	MOVER_PURPOSE_COUNT
};

struct mover;

struct mover_order {
	struct move_order order;
	struct mover *mover;
	unsigned under_way;
};

struct mover {
	struct connection_home *home;
	struct deadline turn; /* set: there is something to do */
	struct mover_order orders[MOVER_PURPOSE_COUNT];
	struct connection *next;  /* the next of this pass */
	uint64_t pass_began_ms;   /* of the last one */
	unsigned pass;            /* since agents changed last, from 1 */
	uint64_t generation;      /* of the agents, as they were last looked at */
	uint64_t rebalance_at_ms; /* the next pass that rebalances, or later; 0: everybody is where it belongs */
	unsigned rebalance_passes;
	unsigned misplaced; /* met in this pass */
	enum { PASS_DRAINS, PASS_REBALANCES } pass_kind;
	double tokens; /* rebalances that may begin now */
	uint64_t tokens_ms;
};

void mover_init(struct mover *m, struct connection_home *home);
/* Before the loop ends. */
void mover_stop(struct mover *m);

/* Agents or weights may have changed: look for something to do. Cheap, as often as one likes. */
void mover_look(struct mover *m);

/* It is at a checkpoint and has been silent for long: let it rest. 0; or 1: not now, ask again a little later. */
int mover_rest(struct mover *m, struct connection *c);

/* @c is about to be freed. */
void mover_forget(struct mover *m, const struct connection *c);

#endif
