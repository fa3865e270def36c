/* peers.h: the other agents of the cluster: who they are, which of them live, and the link to each. It is a part of its
 * own because a link lives, breaks and comes back by the same rules whatever is said over it. On the main thread, but
 * for the flags, the placement and peers_holders(), which every thread may read.
 *
 * peers.c has the set and accepts links; peer.c has the life of one peer; peer_link.h is one link; peer_way.h says
 * which address is tried. Of two agents the one with the lower name makes the link, and makes it again when it is lost.
 *
 *   AWAY --> CONNECTING --> UP --> AWAY       (CONNECTING only where this agent connects)
 */
#pragma once

#include <stdatomic.h>

#include "net/limits/newcomers.h"
#include "proto/placement.h"
#include "sslagent/cluster/peers/peer_link.h"
#include "sslagent/cluster/peers/peer_way.h"
#include "sslagent/sessions/shelf.h"

struct broadcast_receiver;
struct sending_keys;
struct listener;
struct peer;

/* Each operation gets the context of peers_conf. None closes a link or sends to another peer than @p. */
struct peers_ops {
	/* The link is open: give the peer what it needs. */
	void (*on_up)(void *ctx, struct peer *p);
	/* 0 or negative: the peer broke the protocol. PING, PONG and READY were done before. */
	int (*on_message)(void *ctx, struct peer *p, const Cssl__PeerMessage *m);
	/* The link may have room for more. Also from time to time. */
	void (*on_room)(void *ctx, struct peer *p);
	/* The link is lost, or an attempt to make one has failed. */
	void (*on_down)(void *ctx, struct peer *p);
	/* Is nothing on its way, so that another link may replace this one? */
	bool (*is_quiet)(void *ctx, const struct peer *p);
	/* Every handle is closed, after peers_close(). */
	void (*on_closed)(void *ctx);
};

/* All outlive the peers. */
struct peers_conf {
	struct peer_link_conf link; /* as a link is made, without ops and ctx */
	const struct conf *conf;
	const struct conf_agent *self;
	struct broadcast_receiver *receiver;
	struct sending_keys *sending;
	const struct peers_ops *ops;
	void *ctx;
};

/* Facts about another agent that every thread may read. */
struct peer_flags {
	_Atomic uint8_t alive;   /* it has a link or is heard */
	_Atomic uint8_t listens; /* alive, and holds the key under which this agent seals */
	_Atomic uint8_t passes;  /* its link carries descriptors */
};

/* Embedded. Other parts read of, self, count, at, flags and placement. */
struct peers {
	struct peers_conf of;
	agent_index self; /* this agent */
	unsigned count;   /* of agents */
	struct peer **at; /* by agent; NULL: this one */
	struct peer_flags *flags;
	struct placement *placement; /* the members (joining.h); NULL: every agent holds every session */
	struct listener *tcp, *unix_socket;
	struct newcomers newcomers; /* links whose other side has not yet proved who it is */
	int64_t refused_logged_ms;
	unsigned handles; /* listeners and links that are open or closing */
	enum { PEERS_OPEN, PEERS_CLOSING } life;
};

enum peer_state { PEER_AWAY, PEER_CONNECTING, PEER_UP, PEER_STATE_COUNT };
enum peer_readiness { PEER_NOT_READY, PEER_READY };

#define LOST_FOR_GOOD         INT64_MAX
#define PEER_RETRY_FIRST_MS   50
#define PEER_REFUSED_EVERY_MS 10000 /* between log lines of the same refusal */

/* Other parts set key_held; they read index, origin, conf, state, readiness, is_unheard, and of link what waits to be
 * sent and its descriptors. */
struct peer {
	struct peers *all;
	agent_index index;
	uint16_t origin; /* its number in session ids */
	const struct conf_agent *conf;
	uint8_t state;     /* enum peer_state */
	uint8_t readiness; /* enum peer_readiness: as the peer says */
	struct peer_way way;
	struct peer_link *link;
	struct peer_link *shorter; /* by the UNIX socket, not open yet; replaces @link, which is by TCP or lost */
	int64_t retry_at_ms, retry_every_ms;
	int64_t ping_at_ms, ping_sent_ms; /* of the ping without an answer; 0: none */
	uint64_t ping_token;
	uint32_t key_held; /* the generation of the last key of this agent that it has confirmed; 0: none */
	int64_t lost_ms; /* since then it has no link and is not heard; 0: it is alive; LOST_FOR_GOOD: too long for live
			  * parts
			  */
	int64_t refused_logged_ms;
	int64_t heard_ms; /* when it last had no link, or was heard by datagram */
	bool is_unheard;  /* it has a link, and no datagram came for UNHEARD_MS */
};

/* 0 or CSSL_E_NO_MEMORY; free it in both cases. */
int peers_init(struct peers *all, const struct peers_conf *conf);
/* Every handle is closed. Legal on a zeroed one. */
void peers_free(struct peers *all);

/* Accept links. 0, CSSL_E_SYSTEM or CSSL_E_CONFIG with a message; what is open then, peers_close() closes. */
int peers_listen(struct peers *all, char *error, size_t error_cap);
/* Close listeners and links. on_closed comes, maybe during the call. */
void peers_close(struct peers *all);

/* Every other agent, in the order of the cluster file: NULL as @p gives the first. */
struct peer *peers_next(const struct peers *all, const struct peer *p);

/* Has every peer with a link confirmed this agent's sending key of that generation, or a later one? */
bool peers_hold_key(const struct peers *all, uint32_t generation);

/* The other agents among the first @wanted ranks of holders of that session. Only with a placement. */
struct placement_ranks peers_holders(const struct peers *all, const uint8_t *id, unsigned wanted);

static inline bool peers_listens(const struct peers *all, unsigned agent)
{
	return atomic_load_explicit(&all->flags[agent].listens, memory_order_relaxed);
}

static inline bool peers_alive(const struct peers *all, unsigned agent)
{
	return atomic_load(&all->flags[agent].alive);
}

/* Every 20 to 50 ms. 1, once: the peer is now away for so long (live_keep) that its live parts are worth nothing. */
bool peer_tick(struct peer *p, int64_t now_ms);
/* Its link is up, it is ready and listens. */
static inline bool peer_is_settled(const struct peer *p)
{
	return p->state == PEER_UP && p->readiness == PEER_READY && peers_listens(p->all, p->index);
}

/* As peer_link_send(); CSSL_E_STATE without a link. A link that takes nothing more ends. Who has to say what
 * cannot be said ends the link (peer_link_end()). */
int peer_send(struct peer *p, const Cssl__PeerMessage *m);
int peer_send_object(struct peer *p, const struct shelved *o, const uint8_t *encoded, size_t len, bool unasked);

/* For peers.c and fuzzers: take a link that the other side opened; close the links; a listener or a link is closed. */
void peer_take_link(struct peer *p, struct peer_link *l);
void peer_close(struct peer *p);
void peers_handle_closed(void *peers);
