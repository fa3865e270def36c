/* cluster_root.h: the root object of the membership: the parts that it embeds, and what they share. Only for the files
 * of this folder; the parts below it (broadcast/, peers/, joining/) do not know it.
 *
 *   cluster.c              life: create, close, destroy; the timer of the main thread
 *   cluster_hear.c         sockets, and what is heard by datagram: each message goes to its part
 *   cluster_links.c        what comes over links, and what becomes of them: likewise; the keys of all agents
 *   cluster_sessions.c     the session source of the TLS side
 *   cluster_connections.c  live parts, epochs: what agents tell each other of connections
 *   cluster_thread.c       threads until they leave, tasks and news between them
 *   pulls.c, passed_backends.c, revocations.c
 *
 * The main thread owns everything that is not marked otherwise.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

#include "sslagent/cluster/cluster_thread.h"
#include "sslagent/cluster/joining/joining.h"
#include "sslagent/cluster/passed_backends.h"
#include "sslagent/cluster/peers/peers.h"
#include "sslagent/cluster/pulls.h"
#include "sslagent/cluster/revocations.h"
#include "sslagent/sessions/recent.h"

struct ticket_keys;
struct timer;

#define PEERS_EVERY_MS 20 /* between two looks at the peers, while anything is on its way */

struct cluster {
	/* set once */
	struct worker *main;
	const struct conf *conf;
	const struct conf_agent *self;
	const struct key_ring *ring;
	uint16_t self_origin;
	struct cluster_identity identity;
	uint8_t id_check_keys[KEY_RING_MAX][SESSION_ID_CHECK_KEY_LEN]; /* the first makes ids */
	enum { TICKETS_UNUSED, TICKETS_USED } ticket_use;
	struct session_source source;

	/* thread-safe objects */
	_Atomic int state; /* enum cluster_state */
	struct tombstones *tombstones;
	struct store *store;
	struct connections_seen *seen;
	_Atomic int64_t shared_clock_ahead_ms; /* ahead of this agent's own clock */
	struct shelf *live;                    /* live_table.h */
	struct recent *families;               /* when each began: their SESS_OBJs give their age in seconds only */
	struct recent *negatives; /* by recent_id(): until when no handshake waits for a session that nobody has */
	struct sending_keys *sending;
	struct ticket_keys *tickets;
	struct passed_backends passed;
	struct broadcast_receiver *receiver;
	struct cluster_thread *threads; /* workers, then main */
	_Atomic int tick_wish;          /* another thread wants the main thread's timer to tick sooner */

	/* the main thread's own */
	struct peers peers; /* flags and placement: any thread */
	struct pulls pulls;
	struct revocations revocations;
	struct joining joining;
	struct timer *timer;
	_Atomic int64_t tick_ms;  /* between its ticks; every thread may read it */
	uint64_t refused_before;  /* links, while another agent was up; UINT64_MAX: it was told that none is */
	int64_t sending_since_ms; /* the current sending key */
	int64_t heartbeat_at_ms, peers_at_ms, house_at_ms, keys_at_ms, tombstones_looked_at_ms;
	unsigned handles; /* sockets that are open or closing, and peers */
	void (*on_closed)(void *ctx);
	void *closed_ctx;
};

static inline struct cluster_thread *cluster_main_thread(struct cluster *c)
{
	return &c->threads[c->self->workers];
}

/* The random end of a session's id. */
static inline const uint8_t *recent_id(const uint8_t *session_id)
{
	return session_id + SESSION_ID_LEN - RECENT_ID_LEN;
}

/* cluster_links.c; ctx: the cluster. keys_tick: every PEERS_EVERY_MS or so, renews keys in time. */
extern const struct peers_ops cluster_peers_ops;
extern const struct joining_ops cluster_joining_ops;
void cluster_keys_tick(struct cluster *c, int64_t now_ms);

/* cluster_hear.c. open: bind the workers' sockets, and open that of the main thread. 0 or CSSL_E_SYSTEM with a message.
 */
extern const struct broadcast_receiver_ops cluster_hear_ops; /* ctx: the cluster */
int cluster_hear_open(struct cluster *c, char *error, size_t error_cap);
void cluster_handle_closed(void *cluster);

/* cluster_sessions.c */
extern const struct session_source cluster_source;
/* Any thread: import an encoded SESS_OBJ of another agent, with its times on this agent's clock. */
void cluster_import(
	void *cluster, agent_index from, const ProtobufCBinaryData *encoded, const struct heard_times *times);

/* cluster_connections.c. Any thread. import_live: @o has a live part and no session. supersede: tell this owner, as
 * connections_seen_hear() names it, of the epoch of another one; SEEN_NO_OWNER: nothing to do. */
void cluster_import_live(struct cluster *c, const struct offer *o, int64_t now_ms);
void cluster_supersede(void *cluster, unsigned owner, const struct connection_id *id, uint16_t of);
