/* ragent_worker.h: what one worker thread of RAgent has: its listening sockets, its links to every worker of every
 * agent, its connections, its counters. And what all workers share. Used only from its own thread once that runs, but
 * for the counters.
 */
#ifndef CSSL_RAGENT_RAGENT_WORKER_H
#define CSSL_RAGENT_RAGENT_WORKER_H

#include "net/admission.h"
#include "net/dormant.h"
#include "net/handshake_limit.h"
#include "net/holdings.h"
#include "net/log_pace.h"
#include "net/slabs.h"
#include "net/timer.h"
#include "net/worker.h"
#include "ragent/connection/block_pool.h"
#include "ragent/connection/connection.h"
#include "ragent/counters.h"
#include "ragent/connection/mover.h"
#include "ragent/connection/ownerships.h"
#include "ragent/connection/pace.h"
#include "ragent/connection/partials.h"
#include "ragent/worker/passed_sockets.h"
#include "ragent/link/requests.h"

/* Shared by all workers; made before and destroyed after them. */
struct ragent_shared {
	const struct conf *conf;
	const struct conf_ragent *self;
	const struct key_ring *link_key;
	uint64_t boot_id;
	struct agents *agents;
	struct admission *admission;
	struct front *fronts;
	size_t front_count;
};

struct agent_links {
	struct link **at;
	unsigned count;
};

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
	const struct ragent_shared *shared;
	struct worker *worker;
	struct ragent_counters counters;
	struct ownership_counters *of_agents; /* by agent */
	struct listening *listening;
	size_t listening_count;
	struct agent_links *links; /* by agent */
	unsigned open_links;       /* not CLOSED */
	unsigned open_listeners;
	struct connection *connections;
	struct requests requests;
	struct block_pool blocks;
	struct partials partials;
	struct handshake_limit *handshakes;
	struct holdings holdings;
	struct slabs connection_blocks;
	struct slabs awake; /* of the connections that are not dormant */
	struct dormant *dormant;
	struct mover mover;
	struct pace takeovers;
	struct log_pace ended_lines[END_REASON_COUNT];
	struct ownerships *ownerships;
	struct timer *tick;
	struct deadline drain_deadline;
	uint8_t *hello_scratch;
	uint8_t id_check_key[SESSION_ID_CHECK_KEY_LEN]; /* from the agents' opening; zero before */
	struct candidate candidates[AGENTS_MAX];
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

/* Accept nothing, lose every link without a word: whatever was here is another process's, or will come from there. Not
 * while a callback of a link runs. */
void ragent_worker_park(struct ragent_worker *rw);
/* Accept, and connect the links that are not up. */
void ragent_worker_unpark(struct ragent_worker *rw);

/* Stop accepting, end what can end without a cut, the rest by reset within @limit_ms; then links. @on_closed once every
 * handle is closed. Calling it again ends what is left at once. */
void ragent_worker_stop(struct ragent_worker *rw, uint64_t limit_ms, void (*on_closed)(struct ragent_worker *rw));
void ragent_worker_destroy(struct ragent_worker *rw);

/* A link to @agent on which something new may begin; the agent's worker is worker_choice()'s, or another where its link
 * is not up. NULL: none. */
struct link *ragent_worker_link(struct ragent_worker *rw, int agent, const struct connection_id *id);

/* The agents that may get something new from this worker, into rw->candidates; returns how many. @except: an agent to
 * leave out, or NO_AGENT. */
size_t ragent_worker_candidates(struct ragent_worker *rw, int except);

/* A connection begins; a connection is closed (@c is freed already). */
void ragent_worker_joined(struct ragent_worker *rw);
void ragent_worker_left(struct ragent_worker *rw);

#endif
