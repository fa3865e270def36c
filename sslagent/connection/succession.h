/* succession.h: what an owner leaves for its successors: the sealed copy, the broadcast, its position, notes, and where
 * it stopped to seal. It is a part by itself, because laws 2, 3 and 6 rest on what is said here, whoever says it.
 */
#pragma once

#include "sslagent/connection/connection_events.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/tls/tls_contexts.h"

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

/* --- notes, sealed, for the case of its loss --- */

/* An answer begins or goes on with [data, data + len), and its first @together bytes are the next frame. If it can
 * continue elsewhere, the carrier gets the note for that (service.h). */
void succession_leave_note(struct connection *c, const uint8_t *data, size_t len, size_t together);
/* Leave the note of a service that stands between, if it differs from RAgent's. */
void succession_leave_word(struct connection *c);
/* Opens the note that RAgent kept. Its bytes; CSSL_E_NOT_FOUND: there is none; or another error. */
ptrdiff_t succession_open_note(
	const struct connection *c, const Cssl__LinkSslId *id, uint8_t out[static SERVICE_NOTE_MAX]);
