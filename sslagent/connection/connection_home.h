/* connection_home.h: shared by the connections of one worker: pools, limits, and the table of connections. A
 * connection sees nothing else of its worker and the process. Used from the worker's thread, except where a comment
 * says otherwise.
 */
#pragma once

#include <stdatomic.h>

#include "conf/conf.h"
#include "net/loop/turn_share.h"
#include "net/loop/wheel.h"
#include "net/loop/worker.h"
#include "net/memory/holdings.h"
#include "net/memory/slabs.h"
#include "net/memory/table.h"
#include "sslagent/backend/backend.h"
#include "sslagent/service/service.h"

struct backend_pool;
struct cluster;
struct connection;
struct connection_event;
struct handshake_limit;
struct live_pool;
struct tls_contexts;

/* Of a loop turn. The small one, for a full handshake, applies while established connections have records, but for
 * those of services that have time. The large one is short, too: this agent may share its CPU with RAgent and other
 * agents. */
#define HANDSHAKES_SMALL_NS UINT64_C(250000)
#define HANDSHAKES_LARGE_NS UINT64_C(1000000)
/* A connection counts as established so long after its handshake, because the first request comes at once. */
#define ESTABLISHED_MS      100u

/* What stands above the parts of a connection (events/): they call it by these only, so that no part has to know it. */
struct connection_upward {
	const struct backend_user_ops *backend;  /* of its backend connections */
	void (*on_deadline)(struct deadline *d); /* of the connection */
	/* An event of a part's own. May end the connection. */
	void (*happens)(struct connection *c, struct connection_event *e);
};

#define HEAP_TRIM_MS 5000 /* behind the end of a handshake */

struct connection_home {
	/* Set before connection_home_open(). All except the contexts outlive it. */
	struct worker *worker;
	const struct conf *conf;
	const struct conf_agent *self;
	const struct key_ring *agents_key;
	struct cluster *cluster;
	struct tls_contexts *contexts;        /* referenced; replaced on reload */
	struct backend_state *backend_states; /* of each backend of the file, shared by all workers */

	struct live_pool *live_pool;
	struct slabs frozen; /* live parts of frozen connections */
	/* Objects that live as long as a connection have blocks apart from malloc's. Handshakes need many malloc
	 * blocks, and such objects between them would keep their pages after they are freed. */
	struct slabs connection_blocks, facts_blocks;
	struct service_blocks service_blocks; /* for connections with an open request */
	struct backend_home backend_home;
	struct backend_pool *backends;
	const struct connection_upward *up;
	struct table table;        /* of connections by id, from OPEN or SSL_ID to their ends */
	struct table_link *buried; /* ended in this turn, freed at its end */
	struct turn_end burial;
	uint64_t refusal_logged_ms; /* of an SSL_ID */
	uint32_t window_len;
	struct handshake_limit *handshake_places;
	struct turn_share handshake_share; /* a share of each loop turn */
	struct deadline heap_trim;         /* set for a while behind the end of a handshake */
	struct holdings holdings;
	struct holdings held; /* what streams hold of what they sent, of the same budget: it gives way first */
	unsigned handshakes;  /* that are not complete */
	unsigned parked;
	uint32_t handshake_us;            /* mean of the last ones (weight 1/8), for shortest-response */
	_Atomic uint32_t handshake_count; /* other threads read it */
	_Atomic uint32_t handshake_peak;  /* since the main thread's last read; a burst may come and go between */
};

/* 0, or CSSL_E_NO_MEMORY (logged). In both cases connection_home_close() and connection_home_release() have to
 * follow. */
int connection_home_open(struct connection_home *home);
/* Close idle backend connections. Every connection has ended. */
void connection_home_close(struct connection_home *home);
/* Call it after the thread ended. */
void connection_home_release(struct connection_home *home);

/* One handshake more or less (@by 1 or -1). */
static inline void connection_home_count_handshakes(struct connection_home *home, int by)
{
	home->handshakes += (unsigned)by;
	atomic_store_explicit(&home->handshake_count, home->handshakes, memory_order_relaxed);
	if (home->handshakes > atomic_load_explicit(&home->handshake_peak, memory_order_relaxed))
		atomic_store_explicit(&home->handshake_peak, home->handshakes, memory_order_relaxed);
}

/* A connection that was handed off and adopted on the same worker is there twice until its old stream is detached. */
struct connection *connection_table_find(const struct table *t, const struct connection_id *id);
/* The one of this id that seals, or NULL. */
struct connection *connection_table_find_sealing(const struct table *t, const struct connection_id *id);
int connection_table_add(struct table *t, struct connection *c);
