/* handover_giver.h: the side of the running RAgent process, which will be replaced. It listens on the handover socket.
 * It gives everything to a new process that asks, worker by worker. handover_message.h has the conversation.
 *
 *     ALONE --> GREETED --> OFFERED <--> GIVING
 *       ^          |           |           |
 *       +----------+-----------+-----------+ the other process went away or was refused
 *                              |
 *                              v
 *                           REPLACED
 *
 * Runs on the main loop. A worker gives on its own thread, and stands still meanwhile.
 */
#pragma once

#include <sys/types.h>

#include "ragent/handover/handover_message.h"
#include "ragent/worker/ragent_worker.h"

enum giver_state { GIVER_ALONE, GIVER_GREETED, GIVER_OFFERED, GIVER_GIVING, GIVER_REPLACED };
#define GIVER_STATE_COUNT (GIVER_REPLACED + 1)

struct handover_giver;

struct handover_giver_params {
	struct worker *main;
	struct ragent_shared *shared;
	struct worker *const *threads;
	struct ragent_worker *const *workers;
	unsigned worker_count;
	/* Put the main loop's own sockets into a SOCKETS message. 0 or negative. */
	int (*put_sockets)(void *ctx, struct handover_message *m);
	/* NULL: a handover may begin; else the reason against it (the process stops, ...). */
	const char *(*why_not)(void *ctx);
	/* The other process has everything: this process serves no more and ends. The giver stays. */
	void (*on_replaced)(void *ctx);
	void *ctx;
};

/* Listen on @path, mode 0600, or use @fd (> 0), which listens there already. NULL with @error. */
struct handover_giver *handover_giver_create(
	const struct handover_giver_params *p, const char *path, int fd, char *error, size_t error_cap);
/* Call it while this process itself takes over: accept no connection; the path belongs to the other process. */
void handover_giver_pause(struct handover_giver *g);
void handover_giver_resume(struct handover_giver *g);
/* The listening socket; the giver owns it. */
int handover_giver_fd(const struct handover_giver *g);
/* Close, and remove the socket file unless another process has the socket. May be NULL. The giver frees itself later.
 */
void handover_giver_destroy(struct handover_giver *g);

/* 1 when the drawing above has this change, else 0. */
bool handover_giver_may_go(enum giver_state from, enum giver_state to);
