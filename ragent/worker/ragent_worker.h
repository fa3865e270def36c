/* ragent_worker.h: what one worker thread of RAgent has: its listening sockets, its links to every worker of every
 * agent, its connections, its counters. Used only from its own thread once that runs, but for the counters.
 */
#ifndef CSSL_RAGENT_RAGENT_WORKER_H
#define CSSL_RAGENT_RAGENT_WORKER_H

#include "net/timer.h"
#include "ragent/connection/connection_home.h"
#include "ragent/link/requests.h"
#include "ragent/worker/passed_sockets.h"

struct listening {
	struct ragent_worker *home;
	struct front *front;
	const struct sockaddr *configured;
	struct listener *listener; /* NULL: closed */
};

#define RAGENT_BACKLOG 4096

enum ragent_worker_state {
	RAGENT_WORKER_RUNNING,
	RAGENT_WORKER_PARKED, /* nothing is accepted, no link is up: the connections are, or come from, another
				 process's */
	RAGENT_WORKER_DRAINING,
	RAGENT_WORKER_CLOSING,
	RAGENT_WORKER_CLOSED
};

struct ragent_worker {
	struct connection_home home;
	struct listening *listening;
	size_t listening_count;
	unsigned open_links; /* not CLOSED */
	unsigned open_listeners;
	struct requests requests;
	struct timer *tick;
	struct deadline drain_deadline;
	uint8_t state; /* enum ragent_worker_state */
	void (*on_closed)(struct ragent_worker *rw);
	void *owner; /* for on_closed */
};

/* @shared outlives it. NULL: out of memory. */
struct ragent_worker *ragent_worker_create(const struct ragent_shared *shared, struct worker *w);

/* Bind every listener's addresses, but for those of which @passed (may be NULL) has the socket; before the thread runs,
 * as long as this process may bind low ports. 0 or CSSL_E_SYSTEM with @error. */
int ragent_worker_listen(struct ragent_worker *rw, struct passed_sockets *passed, char *error, size_t error_cap);

/* Where the thread never ran: close them; before worker_destroy(). */
void ragent_worker_unlisten(struct ragent_worker *rw);

/* Links and health; on its thread. 0 or CSSL_E_NO_MEMORY. */
int ragent_worker_start(struct ragent_worker *rw);

/* On its thread: a client that a process before accepted, without a byte read or written, comes to the listening socket
 * that it connected to; if there is none it is reset. @fd is taken over. */
void ragent_worker_welcome(struct ragent_worker *rw, int fd);

/* Accept nothing, lose every link without a word: whatever was here is another process's, or will come from there. Not
 * while a callback of a link runs. */
void ragent_worker_park(struct ragent_worker *rw);
/* Accept, and connect the links that are not up. */
void ragent_worker_unpark(struct ragent_worker *rw);

/* Stop accepting, end what can end without a cut, the rest by reset within @limit_ms; then links. @on_closed once every
 * handle is closed. Calling it again ends what is left at once. */
void ragent_worker_stop(struct ragent_worker *rw, uint64_t limit_ms, void (*on_closed)(struct ragent_worker *rw));
void ragent_worker_destroy(struct ragent_worker *rw);

#endif
