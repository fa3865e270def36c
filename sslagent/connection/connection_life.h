/* connection_life.h: the states and the end of a connection, for its own parts: all of them may end it. */
#pragma once

#include "sslagent/connection/connection_events.h"

void connection_to(struct connection *c, enum connection_state to);

/* Is it its owner, in the midst of things? */
static inline bool connection_serves(const struct connection *c)
{
	return c->state == CONNECTION_OWNER || c->state == CONNECTION_SETTLING;
}

/* In the home's table, in state @first. NULL: out of memory. */
struct connection *connection_create(struct connection_home *home, struct carrier *carrier,
	const struct tls_listener *listener, const struct connection_id *id, const Cssl__Endpoints *endpoints,
	enum connection_state first);
/* Tell the carrier and release everything. @c may still be read until the end of this loop turn (state ENDED). */
void connection_end(struct connection *c, enum end_reason reason, enum carrier_end how);
connection_reaction connection_forgotten; /* its carrier is gone, or another agent owns it */
void connection_drop_handshake(struct connection *c);

/* The interlude is over, or the connection is. None: nothing happens. */
void connection_drop_interlude(struct connection *c);
/* Ask the interlude, if there is one, whether it may end now (interlude.h). */
void connection_look(struct connection *c);
/* SETTLING: a part of the last record waits for the next owner. */
static inline bool connection_holds(const struct connection *c)
{
	return c->state == CONNECTION_SETTLING && c->interlude->kept;
}

/* Whole records. @len negative: they could not be sealed. 0 or negative. */
int connection_send(struct connection *c, const uint8_t *bytes, ptrdiff_t len, unsigned records, uint8_t flags);
int connection_send_alert(
	struct connection *c, enum tls_alert_level level, enum tls_alert description); /* 0 or negative */
