/* ragent_internal.h: shared by the files of the root object only: ragent.c (life) and ragent_handover.c (replacing,
 * being replaced, and after a death).
 */
#pragma once

#include "ragent/control/operations/operations.h"
#include "ragent/keeper/leftovers.h"

struct control;
struct handover_giver;
struct handover_taker;

struct ragent {
	struct ragent_shared shared;
	struct worker *main;
	struct worker **threads;
	struct ragent_worker **workers;
	unsigned worker_count;
	unsigned running;  /* workers whose thread has started, and that are not closed */
	unsigned restored; /* workers that have restored all connections of the process before */
	struct signals *signals;
	struct control *control;
	struct handover_giver *giver;      /* NULL: without a control socket */
	struct handover_taker *taker;      /* NULL: it did not replace another process */
	const struct leftovers *leftovers; /* NULL: no process died before */
	struct timer *heartbeat;
	struct operations operations;
	int result;
};

/* ragent.c */
void ragent_stop(struct ragent *r);
/* This process serves from now on: tell the keeper and the service manager. */
void ragent_serve(struct ragent *r);

/* ragent_handover.c */
/* The control API and the handover socket accept clients from now on. */
void ragent_open_control(struct ragent *r);
/* Find the running process. 0 or negative with @error. */
int ragent_ask_running(struct ragent *r, char *error, size_t error_cap);
/* Bind the sockets of the control API and of the handover, or take them out of @passed (then they accept no client
 * yet). 0 or negative with @error. */
int ragent_bind_control(struct ragent *r, struct passed_sockets *passed, char *error, size_t error_cap);
/* The workers run, parked: take everything over. */
void ragent_take_over(struct ragent *r);

/* Note the listening sockets for the next process. 0 or negative. */
int ragent_note_sockets(struct ragent *r);
/* The main loop begins to show its progress to the keeper. 0 or CSSL_E_NO_MEMORY. */
int ragent_begin_heartbeat(struct ragent *r);
/* Take the noted sockets. Their numbers stay in the notes. 0 or negative. */
int ragent_take_noted(const struct notes *n, struct passed_sockets *out);
/* On the worker's thread: it takes its share of the clients that the dead process had only accepted. */
void ragent_welcome_fresh(struct ragent *r, unsigned worker);
/* The same: it begins to restore the connections of the dead process. When all workers have restored theirs, this
 * process opens its control API, and has all. 0 or CSSL_E_NO_MEMORY. */
int ragent_begin_restoring(struct ragent *r, struct ragent_worker *rw);
void ragent_say_running_again(const struct ragent *r);
