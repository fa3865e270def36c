/* peer.h: one other agent of the cluster: its link and its state. Of two agents the one with the lower name makes the
 * link, and makes it again when it is lost. On the main thread.
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
	struct peer_link *shorter; /* by the UNIX socket, not open yet; replaces @link, which is by TCP or lost */
	int64_t retry_at_ms, retry_every_ms;
	int64_t ping_at_ms, ping_sent_ms; /* of the ping without an answer; 0: none */
	uint64_t ping_token;
	int64_t lost_ms; /* since then it has no link and is not heard; 0: it is alive; LOST_FOR_GOOD: too long for live
			  * parts
			  */
	int64_t refused_logged_ms;
	int64_t heard_ms;   /* when it last had no link, or was heard by datagram */
	int64_t alive_ms;   /* when it was last alive */
	uint8_t source;     /* enum peer_source */
	uint8_t own_due;    /* enum peer_own */
	bool is_unheard;    /* it has a link, and no datagram came for UNHEARD_MS */
	unsigned announced; /* large objects that it announced and sends over the link */
	struct snapshot_giver giver;
	struct snapshot_taker taker;
};

enum peer_readiness { PEER_NOT_READY, PEER_READY };
/* OWN_DUE: without a link, its ring forgot numbers that are missing here, or it announced a large object. This agent
 * takes its own sessions when there is a link again. */
enum peer_own { PEER_OWN_HERE, PEER_OWN_DUE };

/* Has the peer given this agent its part? Counted from the time when the peer entered the membership. */
enum peer_source { SOURCE_UNASKED, SOURCE_ASKED, SOURCE_TAKEN };

struct peer *peer_create(struct cluster *c, agent_index index);
void peer_destroy(struct peer *p); /* its link is closed and gone */

/* Every other agent, in the order of the cluster file: NULL as @p gives the first. */
struct peer *peer_next(const struct cluster *c, const struct peer *p);

void peer_tick(struct peer *p, int64_t now_ms);
/* Take a link that the other side opened. */
void peer_take_link(struct peer *p, struct peer_link *l);
void peer_close(struct peer *p);

/* 1 when it has an open link and its clock is known, so that its times can be used. */
bool peer_is_up(const struct peer *p);
/* 1: its link is up, it is ready and listens, and no snapshot is under way. */
bool peer_is_settled(const struct peer *p);

/* As peer_link_send(); CSSL_E_STATE without a link. */
int peer_send(struct peer *p, const Cssl__PeerMessage *m);
/* A message that the peer must get could not be sent: end the link, from the loop. */
void peer_send_failed(struct peer *p, int error);
void peer_send_status(struct peer *p);
struct shelved;
int peer_send_object(struct peer *p, const struct shelved *o, const uint8_t *encoded, size_t len, bool unasked);
void peer_send_ticket_keys(struct peer *p);
void peer_send_next_key(struct peer *p);

struct peer_link_conf peer_link_conf_of(struct cluster *c, const struct peer_link_ops *ops, void *ctx);

/* peer_messages.c. 0 or negative: the peer broke the protocol. */
int peer_on_message(struct peer *p, const Cssl__PeerMessage *m);

#endif
