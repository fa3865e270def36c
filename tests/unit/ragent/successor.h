/* successor.h: another RAgent process that takes over from the dispatcher's: here a second worker with everything of
 * its own, on the same loop.
 */
#pragma once

#include "ragent/handover/handover_worker.h"
#include "tests/unit/ragent/dispatcher.h"

/* All that d.rw has is the successor's from now on, which is d.rw; the old one is gone without a trace. */
void successor_takes_over(void);

/* The messages of it, one by one. */
struct successor {
	struct successor *before;
	struct ragent_shared shared;
	struct ragent_worker *rw;
	struct handover_map map;
	unsigned messages, refuse_at; /* refuse the message of that number, from 1; 0: none */
};
/* Parked; dispatcher_stop() is its end. */
struct successor *successor_create(void);
/* A handover_send whose ctx is a successor. */
int successor_hears(void *ctx, const struct handover_message *m);
/* It got all; the old worker forgets. */
void successor_commit(struct successor *s);
