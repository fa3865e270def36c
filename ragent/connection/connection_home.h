/* connection_home.h: shared by the connections of one worker: the agents and links that they can use, memory,
 * limits, counters. A connection sees nothing else of its worker. Used only from the worker's thread, except the
 * counters.
 */
#pragma once

#include "net/memory/holdings.h"
#include "net/memory/slabs.h"
#include "net/report/log_pace.h"
#include "ragent/connection/bytes/blocks.h"
#include "ragent/connection/limits/pace.h"
#include "ragent/connection/limits/partials.h"
#include "ragent/connection/limits/storm.h"
#include "ragent/connection/mover.h"
#include "ragent/connection/ownership/ownerships.h"
#include "ragent/counters.h"
#include "ragent/dispatch/links.h"
#include "ragent/keeper/notes.h"
#include "ragent/keeper/slot_table.h"
#include "ragent/listener_counters.h"

struct admission;
struct dormant;
struct handshake_limit;

/* Shared by all workers. Made before them and destroyed after them. */
struct ragent_shared {
	const struct conf *conf;
	const struct conf_ragent *self;
	const struct key_ring *link_key;
	uint64_t boot_id;
	struct agents *agents;
	struct admission *admission;
	struct front *fronts;
	size_t front_count;
	struct notes *notes;     /* NULL: there is no keeper */
	bool is_given;           /* main thread: another process has been told all this, or has it */
	struct blocked *blocked; /* clients that an operator keeps out; of the notes where there are some */
};

struct restoring;

enum connection_home_state {
	HOME_RUNNING,
	HOME_PARKED,  /* another process has the connections, or is giving them to this one: none may move */
	HOME_DRAINING /* each connection ends as soon as that cuts nothing off */
};

/* Added to @working while the work is not on bytes of the client. Addresses of connections are even. */
#define WORK_NOT_ON_BYTES 1u

/* Embedded in its worker. */
struct connection_home {
	const struct ragent_shared *shared;
	struct worker *worker;
	struct links links;
	struct ragent_counters counters;
	struct ownership_counters *of_agents;   /* by agent */
	struct listener_counters *of_listeners; /* by front */
	struct connection *connections;
	struct partials partials;
	struct handshake_limit *handshakes;
	struct handshake_limit *preambles; /* before STARTTLS, which is not counted as a handshake */
	struct holdings holdings;
	struct slabs connection_blocks;
	struct blocks blocks;        /* sealed copies, names, notes; bytes that are kept */
	struct slabs trails;         /* of the busy connections, for the next process */
	unsigned reattaching;        /* connections in state REATTACHING */
	unsigned went_on;            /* connections of the process before that this one has restored */
	struct restoring *restoring; /* connections of the process before are left; NULL: none is */
	struct slabs busy_parts;     /* of the connections that are not compact */
	/* With a keeper, the memory of connections, their parts and the small blocks outlives the process. */
	struct slot_table *table; /* NULL: it does not */
	struct table_share connection_share, belonging_share;
	const void *_Atomic *working; /* the connection that it works on, for the process after a crash */
	const void *_Atomic nobody;   /* where that stands without a keeper */
	struct dormant *dormant;      /* its worker makes it on its thread, before the first connection */
	struct mover mover;
	struct pace takeovers;
	struct storm storm;
	struct log_pace ended_lines[END_REASON_COUNT];
	struct ownerships *ownerships;
	uint8_t *hello_scratch;
	const char *cause;                              /* of the END at work: link_cause() */
	uint8_t id_check_key[SESSION_ID_CHECK_KEY_LEN]; /* from the agents' opening; zero before it */
	uint8_t state;                                  /* enum connection_home_state */
	/* A connection is closed and freed. */
	void (*on_left)(struct connection_home *home);
	/* No connection of the process before is left. Not called in a process that restores none. */
	void (*on_restored)(struct connection_home *home);
};

/* @shared and @w outlive it. 0, or CSSL_E_NO_MEMORY. In both cases connection_home_clear() frees the rest. */
int connection_home_init(struct connection_home *home, const struct ragent_shared *shared, struct worker *w);
void connection_home_clear(struct connection_home *home);

/* This process stops: ends each connection as soon as that cuts nothing off (now, or at its next checkpoint). */
void connection_home_drain(struct connection_home *home);
/* @fn may free the connection. */
void connection_home_each(struct connection_home *home, void (*fn)(struct connection *c));

/* Call it every ping_ms: it updates gauges, ends clients that are too slow, logs how many lines were left out, and
 * begins moves that are due. */
void connection_home_tick(struct connection_home *home);
/* A handshake has begun. In a storm (storm.h) the worker interrupts agents. */
void connection_home_look_for_storm(struct connection_home *home);
