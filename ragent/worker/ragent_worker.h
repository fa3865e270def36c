/* ragent_worker.h: one worker thread of RAgent: its listening sockets, its links to every worker of every agent, its
 * connections, its counters. Used only from its own thread once that runs, except the counters.
 */
#pragma once

#include "ragent/connection/connection_home.h"
#include "ragent/link/requests.h"
#include "ragent/worker/passed_sockets.h"

struct timer;

struct listening {
	struct ragent_worker *home;
	struct front *front;
	const struct sockaddr *configured, *bound; /* @bound: with the real port instead of 0 */
	struct listener *listener;                 /* NULL: closed */
};

#define RAGENT_BACKLOG 4096

enum ragent_worker_state {
	RAGENT_WORKER_RUNNING,
	RAGENT_WORKER_PARKED, /* accepts nothing, has no links: another process has, or gives, the connections */
	RAGENT_WORKER_DRAINING,
	RAGENT_WORKER_CLOSING,
	RAGENT_WORKER_CLOSED
};

struct ragent_worker {
	struct connection_home home;
	struct listening *listening;
	size_t listening_count;
	unsigned open_links; /* links that are not CLOSED */
	unsigned open_listeners;
	struct requests requests;
	struct timer *tick;
	struct deadline drain_deadline;
	uint8_t state; /* enum ragent_worker_state */
	void (*on_closed)(struct ragent_worker *rw);
	void *owner; /* argument of on_closed */
};

/* @shared has to outlive it. NULL: out of memory. */
struct ragent_worker *ragent_worker_create(const struct ragent_shared *shared, struct worker *w);

/* Bind the addresses of all listeners, except those whose socket is in @passed (may be NULL). Call it before the
 * thread runs, while this process may bind low ports. 0 or CSSL_E_SYSTEM with @error. */
int ragent_worker_listen(struct ragent_worker *rw, struct passed_sockets *passed, char *error, size_t error_cap);

/* If the thread never ran: close the listeners, before worker_destroy(). */
void ragent_worker_unlisten(struct ragent_worker *rw);

/* On its thread: start links and health checks. 0 or CSSL_E_NO_MEMORY. */
int ragent_worker_start(struct ragent_worker *rw);

/* On its thread: the process before accepted a client, and read and wrote no byte. The client goes to the listening
 * socket that it connected to; if that is not known, it is reset. Takes over @fd. */
void ragent_worker_welcome(struct ragent_worker *rw, int fd);

/* Accept nothing, and forget every link without a frame: another process has them, or will give them to this one. Do
 * not call it while a callback of a link runs. */
void ragent_worker_park(struct ragent_worker *rw);
/* Accept clients, and connect the links that are not up. @worker: a struct ragent_worker. Others than its thread call
 * it by worker_post(). */
void ragent_worker_unpark(struct worker *w, void *worker);

/* Stop accepting; end connections when that cuts nothing off, and reset the rest after @limit_ms; then close the
 * links. Calls @on_closed when every handle is closed. A second call ends the rest at once. */
void ragent_worker_stop(struct ragent_worker *rw, uint64_t limit_ms, void (*on_closed)(struct ragent_worker *rw));
void ragent_worker_destroy(struct ragent_worker *rw);
