/* agent_worker.h: what one worker thread of an agent has: its TLS contexts, its record-layer pool, its links, its
 * direct listeners, its idle backend connections and its table of connections. Used only from its own thread, but for
 * what says otherwise.
 */
#ifndef CSSL_SSLAGENT_AGENT_WORKER_H
#define CSSL_SSLAGENT_AGENT_WORKER_H

#include <stdatomic.h>

#include "conf/conf.h"
#include "net/holdings.h"
#include "net/slabs.h"
#include "net/turn_share.h"
#include "net/worker.h"
#include "proto/sess_obj.h"
#include "sslagent/service/service.h"

struct admission;
struct agent;
struct arena;
struct backend_pool;
struct cluster;
struct connection;
struct handshake_limit;
struct direct_listener;
struct link;
struct live_pool;
struct tls_contexts;

#define CONNECTION_TABLE_MIN 64u
#define HANDSHAKE_TURN_NS    UINT64_C(250000) /* of a loop turn: one full handshake, or a few resumptions */

/* Connections by id; a connection is in it from OPEN or SSL_ID to its end. */
struct connection_table {
	struct connection **buckets;
	size_t bucket_count, count;
};

struct agent_worker {
	struct agent *agent;
	struct worker *worker;
	const struct conf *conf;
	const struct conf_agent *self;
	const struct key_ring *agents_key;
	struct admission *admission; /* of direct connections, to all workers */
	struct cluster *cluster;
	struct tls_contexts *contexts; /* referenced; replaced on reload */
	struct live_pool *live_pool;
	struct arena *frozen; /* live parts of frozen connections */
	struct arena *handshakes_arena;
	/* What lasts as long as a connection does has blocks apart from malloc's, which a handshake needs many of:
	 * among those it would keep their pages when they are free. */
	struct slabs connection_blocks, facts_blocks;
	struct service_blocks service_blocks; /* for the connections that are asked something */
	struct backend_pool *backends;
	struct link *links;              /* list */
	struct direct_listener *directs; /* list */
	struct connection *buried;       /* ended in this turn, freed at its end */
	struct turn_end burial;
	struct connection_table connections;
	uint64_t links_begun;
	uint64_t refusal_logged_ms; /* of an SSL_ID */
	uint32_t window_len;
	struct handshake_limit *handshake_places;
	struct turn_share handshake_share; /* of a loop turn */
	struct holdings holdings;
	unsigned handshakes; /* under way */
	unsigned parked;
	uint32_t handshake_us;             /* mean of the last ones (weight 1/8), for shortest-response */
	_Atomic uint32_t connection_count; /* read by other threads */
	_Atomic uint32_t handshake_count;
	_Atomic uint32_t handshake_peak; /* the most since the main thread looked; a burst may come and go between */
	_Atomic uint32_t link_count, lingering_count; /* while the agent leaves */
	_Atomic uint32_t busy_permille;
};

/* On its own thread. 0 or negative (logged); then agent_worker_close() is due all the same. */
int agent_worker_open(struct agent_worker *home);
/* Give up links, listeners, connections, idle backends; the loop ends when their handles closed. */
void agent_worker_close(struct agent_worker *home);
/* After the thread ended. */
void agent_worker_release(struct agent_worker *home);

/* One more or less (@by 1 or -1) is under way. */
static inline void agent_worker_count_handshakes(struct agent_worker *home, int by)
{
	home->handshakes += (unsigned)by;
	atomic_store_explicit(&home->handshake_count, home->handshakes, memory_order_relaxed);
	if (home->handshakes > atomic_load_explicit(&home->handshake_peak, memory_order_relaxed))
		atomic_store_explicit(&home->handshake_peak, home->handshakes, memory_order_relaxed);
}

/* Free @c at the end of this loop turn. */
void agent_worker_bury(struct agent_worker *home, struct connection *c);

uint64_t agent_worker_add_link(struct agent_worker *home, struct link *l); /* its number */
void agent_worker_remove_link(struct agent_worker *home, struct link *l);
struct link *agent_worker_find_link(struct agent_worker *home, uint64_t number); /* NULL: gone */

struct connection *connection_table_find(const struct connection_table *t, const struct connection_id *id);
int connection_table_add(struct connection_table *t, struct connection *c);
void connection_table_remove(struct connection_table *t, struct connection *c);

#endif
