/* ragent_internal.h: what the files of the root object say to each other: ragent.c (life) and ragent_handover.c (being
 * replaced, replacing). Nobody else looks inside.
 */
#ifndef CSSL_RAGENT_RAGENT_INTERNAL_H
#define CSSL_RAGENT_RAGENT_INTERNAL_H

#include "ragent/handover/handover_giver.h"
#include "ragent/handover/handover_taker.h"
#include "ragent/control/operations.h"
#include "ragent/process/ragent.h"

struct ragent {
	struct ragent_shared shared;
	struct key_ring *link_key;
	struct worker *main;
	struct worker **threads;
	struct ragent_worker **workers;
	unsigned worker_count;
	unsigned running; /* workers whose thread has started and which are not closed */
	struct signals *signals;
	struct control *control;
	struct handover_giver *giver; /* NULL: without a control socket */
	struct handover_taker *taker; /* NULL: it did not replace another process */
	struct operations operations;
	int result;
};

/* ragent.c */
void ragent_stop(struct ragent *r);

/* ragent_handover.c */
/* Find the running process. 0 or negative with @error. */
int ragent_ask_running(struct ragent *r, char *error, size_t error_cap);
/* The control API's sockets and that of the handover, bound, or taken out of @passed (then they let nobody in yet). 0
 * or negative with @error. */
int ragent_bind_control(struct ragent *r, struct passed_sockets *passed, char *error, size_t error_cap);
/* The workers run, parked: take everything. */
void ragent_take_over(struct ragent *r);

#endif
