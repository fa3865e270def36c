/* cluster_internal.h: the root object of the cluster membership, for its own files only (cluster*.c, peer*.c, pulls.c,
 * ...).
 *
 *   cluster.c            life: create, join and leave of workers, timer, state
 *   cluster_hear.c       datagrams heard, on the workers: hands each message to its part
 *   cluster_sessions.c   the session source of the TLS side; import of sessions and live parts
 *   cluster_links.c      agent-agent links accepted and refused
 *   joining.c            snapshots to take, when this agent is ready
 *   resettling.c         members; moves sessions when members change
 *   peer.c, peer_messages.c, snapshot_*.c, pulls.c, passed_backends.c, revocations.c
 *
 * The main thread owns everything that is not marked otherwise.
 */
#ifndef CSSL_SSLAGENT_CLUSTER_INTERNAL_H
#define CSSL_SSLAGENT_CLUSTER_INTERNAL_H

#include <stdatomic.h>
#include <stddef.h>
#include <uv.h>

#include "net/container_of.h"
#include "net/newcomers.h"
#include "sslagent/cluster/broadcast/broadcast_receiver.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/cluster/cluster_thread.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/cluster/joining.h"
#include "sslagent/cluster/pulls.h"
#include "sslagent/cluster/resettling.h"
#include "sslagent/cluster/revocations.h"
#include "sslagent/sessions/live_table.h"
#include "sslagent/sessions/recent.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/ticket_keys.h"
#include "sslagent/sessions/tombstones.h"

#define PEER_LOST_MS 3000 /* a link silent for so long is gone */

struct listener;
struct passed_backends;
struct peer;

/* Facts about another agent that every thread may read. */
struct peer_flags {
	_Atomic uint8_t alive;   /* it has a link or is heard */
	_Atomic uint8_t listens; /* alive, and holds the key under which this agent seals */
	_Atomic uint8_t passes;  /* its link carries descriptors */
	uint16_t origin;         /* its number in session ids */
};

enum tick_wish { TICK_UNASKED, TICK_ASKED };

struct cluster {
	/* set once */
	struct worker *main;
	const struct conf *conf;
	const struct conf_agent *self;
	const struct key_ring *ring;
	agent_index self_index;
	uint16_t self_origin;
	unsigned agent_count;
	uint64_t boot_id;
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
	struct passed_backends *passed;
	struct broadcast_receiver *receiver;
	struct peer_flags *flags;       /* by agent */
	struct placement *placement;    /* NULL: every agent holds every session */
	struct cluster_thread *threads; /* workers, then main */
	_Atomic int tick_wish; /* enum tick_wish: another thread wants the main thread's timer to tick sooner */

	/* the main thread's own */
	struct peer **peers; /* by agent; NULL: this one */
	struct pulls pulls;
	struct revocations revocations;
	struct joining joining;
	struct resettling resettling;
	struct timer *timer;
	_Atomic int64_t tick_ms; /* between its ticks; every thread may read it */
	struct listener *tcp, *unix_socket;
	struct newcomers newcomers; /* links whose other side has no proof yet */
	uint64_t refused_before;    /* links, while another agent was up; UINT64_MAX: it was told that none is */
	int64_t heartbeat_at_ms, peers_at_ms, house_at_ms, tombstones_looked_at_ms, refused_logged_ms;
	unsigned handles; /* sockets, listeners and links that are open or closing */
	void (*on_closed)(void *ctx);
	void *closed_ctx;
};

/* The clock for every thread here. It is precise, so that a later event never has a lower time. */
static inline int64_t cluster_now_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

static inline struct cluster_thread *cluster_main_thread(struct cluster *c)
{
	return &c->threads[c->self->workers];
}

/* Something may have become due soon. as_needed: on the main thread. sooner: on any thread. */
void cluster_tick_as_needed(struct cluster *c);
void cluster_tick_sooner(struct cluster *c);

/* On the main thread: makes a key and gives it to all peers. */
void cluster_make_ticket_key(struct cluster *c, int64_t now_ms);

/* NULL: @w is no worker of this agent, or has not joined. */
struct cluster_thread *cluster_thread_of(struct cluster *c, const struct worker *w);

static inline int peer_listens(const struct cluster *c, unsigned agent)
{
	return atomic_load_explicit(&c->flags[agent].listens, memory_order_relaxed);
}

/* As session_id_check(), under any key of the ring. */
int cluster_id_check(const struct cluster *c, const uint8_t *id, size_t len, struct session_id_facts *out);

/* The random end of a session's id. */
static inline const uint8_t *recent_id(const uint8_t *session_id)
{
	return session_id + SESSION_ID_LEN - RECENT_ID_LEN;
}

/* The index of an agent of the cluster file by its name, or -1. */
int cluster_agent_index(const struct cluster *c, const char *name);

/* The other agents among the first @wanted ranks of holders of that session. Only for clusters with replicas. */
struct placement_ranks cluster_holders(const struct cluster *c, const uint8_t *id, unsigned wanted);

/* One handle is closed. */
void cluster_handle_closed(void *cluster);

/* cluster_hear.c */
extern const struct broadcast_receiver_ops cluster_hear_ops;                /* ctx: the cluster */
extern const struct udp_ops cluster_udp_ops;                                /* of workers' sockets; ctx: the cluster */
const char *cluster_peer_at(void *cluster, const struct sockaddr *address); /* the agent's name or NULL */
/* Bind the workers' sockets. 0 or CSSL_E_SYSTEM with a message. */
int cluster_bind_receiving(struct cluster *c, char *error, size_t error_cap);
/* From any thread: @t calls @fn with agent @from and a copy of what it is @about, such as a session id; not if it has
 * left. 0 or CSSL_E_NO_MEMORY. tell_main: the main thread does; a failure is logged. */
#define NEWS_ABOUT_MAX SESSION_ID_LEN
typedef void (*news_fn)(struct cluster *c, unsigned from, const uint8_t *about);
int cluster_tell(struct cluster_thread *t, news_fn fn, unsigned from, const void *about, size_t about_len);
void cluster_tell_main(struct cluster *c, news_fn fn, unsigned from, const uint8_t *about, size_t about_len);

/* cluster_sessions.c */
void cluster_source_init(struct cluster *c);
/* Any thread: import an encoded SESS_OBJ of another agent, with its times on this agent's clock. */
void cluster_import(struct cluster *c, agent_index from, const ProtobufCBinaryData *encoded, int64_t made_ms,
	int64_t family_made_ms, int64_t now_ms);
/* Tell this owner, as connections_seen_hear() names it, of the epoch of another one. SEEN_NO_OWNER: nothing to do. */
void cluster_supersede(struct cluster *c, unsigned owner, const struct connection_id *id, uint16_t of);

/* cluster_links.c */
void cluster_links_init(struct cluster *c);
int cluster_links_listen(struct cluster *c, char *error, size_t error_cap);
void cluster_links_close(struct cluster *c);

#endif
