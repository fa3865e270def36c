/* succession.h: what an owner leaves for its successors: the sealed copy, the broadcast, its position, and where it
 * stopped to seal. It is a part by itself, because laws 2, 3 and 6 rest on what is said here, whoever says it.
 */
#ifndef CSSL_SSLAGENT_CONNECTION_SUCCESSION_H
#define CSSL_SSLAGENT_CONNECTION_SUCCESSION_H

#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/connection_events.h"

/* Service and backend, as ALPN chose them. */
void connection_choose_service(struct connection *c, const struct session_facts *facts);

/* May another agent ever own it? */
static inline bool succession_is_possible(const struct connection *c)
{
	return carrier_moves(c->carrier) && tls_listener_conf(c->listener)->migration == CONF_MIGRATION_ON;
}

/* Send KEPT or HANDED_OFF, with the sealed copy if the connection can move. 0 or negative: nothing was sent. */
int succession_announce(struct connection *c, enum frame_type type, struct sess_obj *obj, struct live_part *part,
	Cssl__Handshake *handshake, Cssl__BackendHalf backend);
void succession_tell_peers(struct connection *c, const struct sess_obj *obj); /* of the live part in @obj */
int succession_send_copy(struct connection *c, enum live_moment moment);      /* 0 or negative */
/* Where this agent's sealing is now, or stopped. */
struct seen_mark succession_mark(const struct connection *c);
/* Who seals it, for a claim (connections_seen.h). */
uint16_t succession_owner(const struct connection *c);
/* The client took records, and RAgent committed them: peers hear of new keys. Nothing else is done. */
connection_reaction succession_accepted;

#endif
