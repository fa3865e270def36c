/* peer.h: one other agent of the cluster: its link, made by the one of the two with the lower name and made again when
 * it is lost, and what is known of the agent behind it. On the main thread.
 *
 *   AWAY --> CONNECTING --> UP --> AWAY       (CONNECTING only where this agent connects)
 */
#ifndef CSSL_SSLAGENT_PEER_H
#define CSSL_SSLAGENT_PEER_H

#include "sslagent/cluster/cluster_internal.h"
#include "sslagent/cluster/peer_link.h"
#include "sslagent/cluster/peer_way.h"
#include "sslagent/cluster/snapshot.h"

enum peer_state { PEER_AWAY, PEER_CONNECTING, PEER_UP, PEER_STATE_COUNT };

#define LOST_FOR_GOOD INT64_MAX

struct peer {
	struct cluster *cluster;
	agent_index index;
	const struct conf_agent *conf;
	uint8_t state;     /* enum peer_state */
	uint8_t readiness; /* enum peer_readiness */
	struct peer_way way;
	struct peer_link *link;
	int64_t retry_at_ms, retry_every_ms;
	int64_t ping_at_ms, ping_sent_ms; /* of the one that is not answered yet; 0: none */
	uint64_t ping_token;
	int64_t lost_ms; /* since when it is neither linked nor heard; 0: it is; LOST_FOR_GOOD: too long for live parts
			  */
	int64_t refused_logged_ms;
	int64_t proof_ms;   /* of the last one given */
	int64_t alive_ms;   /* when it last was */
	uint8_t source;     /* enum peer_source */
	uint8_t own_due;    /* enum peer_own */
	unsigned announced; /* large objects it told of that are on their way over the link */
	struct snapshot_giver giver;
	struct snapshot_taker taker;
};

enum peer_readiness { PEER_NOT_READY, PEER_READY };
/* Its ring forgot numbers that are missing here, or a large object was on its way, and there was no link: when there is
 * one, its own sessions are taken over it. */
enum peer_own { PEER_OWN_HERE, PEER_OWN_DUE };

/* Has it given this agent what it had for it? From its entering the membership on. */
enum peer_source { SOURCE_UNASKED, SOURCE_ASKED, SOURCE_TAKEN };

#define PROOF_EVERY_MS 5

struct peer *peer_create(struct cluster *c, agent_index index);
void peer_destroy(struct peer *p); /* its link is closed and gone */

void peer_tick(struct peer *p, int64_t now_ms);
/* Its link, opened by the other side. */
void peer_take_link(struct peer *p, struct peer_link *l);
void peer_close(struct peer *p);

/* 1 when it has an open link and its clock is known, so that times it tells mean something. */
int peer_is_up(const struct peer *p);
int peer_knows_clock(const struct peer *p);

/* As peer_link_send(); CSSL_E_STATE without a link. */
int peer_send(struct peer *p, const Cssl__PeerMessage *m);
/* Something that the peer must get could not be sent: the link ends, from the loop. */
void peer_send_failed(struct peer *p, int error);
void peer_send_status(struct peer *p);
void peer_send_keys(struct peer *p); /* sending keys, ticket keys */
void peer_send_ticket_keys(struct peer *p);
void peer_send_next_key(struct peer *p);

struct peer_link_conf peer_link_conf_of(struct cluster *c, const struct peer_link_ops *ops, void *ctx);

/* peer_messages.c. 0 or negative: the peer broke the protocol. */
int peer_on_message(struct peer *p, const Cssl__PeerMessage *m);

#endif
