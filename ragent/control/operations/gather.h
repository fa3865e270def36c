/* gather.h: asks every worker on its own thread, and continues with all answers on the main loop. It is a part of its
 * own because it is the only place of the control API where threads meet.
 */
#pragma once

#include "ragent/worker/ragent_worker.h"

struct gather;

/* The part of one worker. */
struct gather_part {
	struct gather *gather;
	struct ragent_worker *rw;
	void *result; /* owned by the asker; NULL: the worker could not be asked */
};

struct gather {
	struct worker *main;
	void (*ask)(struct gather_part *p); /* on the worker's thread: calls gather_answer() once, now or later */
	void (*done)(struct gather *g);     /* on the main loop; afterwards it is freed */
	void *ctx;
	unsigned count, waiting;
	struct gather_part parts[];
};

/* On the main loop. NULL: out of memory, @done will not come. */
struct gather *gather_start(struct worker *main, struct ragent_worker *const *workers, unsigned count,
	void (*ask)(struct gather_part *p), void (*done)(struct gather *g), void *ctx);

/* On the worker's thread. */
void gather_answer(struct gather_part *p);
