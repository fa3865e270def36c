/* mover.h: moves connections of a worker to other agents for three purposes. No order names a single connection.
 *
 * Drain: an agent gives up all its connections. Idle ones rest, others move now or at their next checkpoint. At the
 * deadline, the agent says goodbye to the clients of those that are left.
 *
 * Rebalance: agents joined, came back or got another weight. Connections move to the agent of their address, at a
 * bounded rate.
 *
 * Rest: an idle connection gives up its agent. The connection's own deadline asks for that.
 *
 * A sweep visits a bounded number of the worker's connections in each turn, and runs only while there is something
 * to do. Embedded in the worker; used only from its thread.
 */
#pragma once

#include "net/loop/wheel.h"
#include "ragent/connection/connection.h"

enum mover_purpose {
	MOVER_DRAIN,         /* now, or not at all */
	MOVER_DRAIN_PATIENT, /* its owner may wait for a checkpoint */
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
	struct deadline turn; /* set while there is something to do */
	struct mover_order orders[MOVER_PURPOSE_COUNT];
	struct connection *next;  /* the next one in this pass */
	uint64_t pass_began_ms;   /* when the last pass began */
	unsigned pass;            /* since the last change of agents, from 1 */
	uint64_t generation;      /* generation of the agents at the last check */
	uint64_t rebalance_at_ms; /* when the next rebalancing pass may begin; 0: none is needed */
	unsigned rebalance_passes;
	unsigned misplaced; /* found in this pass at another agent than their own */
	enum { PASS_DRAINS, PASS_REBALANCES } pass_kind;
	double tokens; /* so many rebalances may begin now */
	uint64_t tokens_ms;
};

void mover_init(struct mover *m, struct connection_home *home);
/* Call it before the loop ends. */
void mover_stop(struct mover *m);

/* Agents or weights may have changed: check whether there is something to do. It is cheap. */
void mover_look(struct mover *m);

/* @c is at a checkpoint and has been silent for long: let it rest. True: not now, ask again a little later. */
bool mover_rest(struct mover *m, struct connection *c);

/* @c is about to be freed. */
void mover_forget(struct mover *m, const struct connection *c);
