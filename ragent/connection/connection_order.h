/* connection_order.h: an ordered move or rest: the question to the owner, its answer, and the report to the sender of
 * the order (connection.h). And notes for the API and the metrics who owns a connection, why, and how long no agent
 * owned it.
 */
#ifndef CSSL_RAGENT_CONNECTION_ORDER_H
#define CSSL_RAGENT_CONNECTION_ORDER_H

#include "uv.h"
#include "ragent/connection/connection_body.h"

/* From now on no agent owns it, or its owner is told to freeze it. */
static inline void connection_owner_goes(struct connection *c)
{
	c->busy->move_began_ns = uv_hrtime();
}
/* @agent owns it; NO_AGENT: nobody. Returns how long, in us, no agent owned it; 0 for the first owner, and for one that
 * was lost. */
uint64_t connection_note_owner(struct connection *c, int agent, enum ownership_cause cause);

/* HANDED_OFF came for a rest: no agent owns it now. */
void connection_handed_to_rest(struct connection *c);
/* REFUSED of order number @order; 0: its owner does not tell. */
void connection_order_refused(struct connection *c, uint32_t order, const char *why);
/* MOVING: its owner has the order or not, and keeps it, for the reason @why. */
void connection_owner_keeps(struct connection *c, const char *why);
/* Its owner goes on after that: say the order again if it is not answered. */
void connection_order_again(struct connection *c);
/* The ordered move is over, with this outcome. Nothing if there is none. */
void connection_report_move(struct connection *c, const struct move_result *r);

#endif
