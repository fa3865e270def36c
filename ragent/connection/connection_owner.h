/* connection_owner.h: who owns a connection next, and why: adoptions, ordered moves and rests, lost owners. An agent of
 * a handshake, one that was told to adopt the connection, and one that speaks with the client in clear count as owners
 * where they are lost. One function raises epochs (law 2, connection_adoption.c): there each ownership begins, with a
 * stream of its own and all records that are not consumed.
 *
 *     HANDED_OFF --> connection_hand_over() --+
 *     lost ---> connection_adopt_lost() ------+--> SSL_ID --> connection_in_adopted()
 *     RESTING --> connection_wake() ----------+          \--> connection_adopt_refused() --> another agent, or back
 */
#pragma once

#include <uv.h>

#include "ragent/connection/connection_body.h"

/* --- connection_adoption.c --- */

/* It has records or a violation for the next owner, its client waits for something, or its service does not rest. */
bool connection_needs_owner(const struct connection *c);

/* HANDED_OFF: the current owner froze it; find the next one. */
void connection_hand_over(struct connection *c);
/* Its owner @lost is lost, and another one has to go on: at once, or when its turn comes (limits/pace.h). */
void connection_adopt_lost(struct connection *c, int lost);
/* RESTING: it needs an owner now, but not @except. If there is none, try again for a while, with any agent. */
void connection_wake(struct connection *c, int except);
/* The same with any agent, when its turn comes among the connections of lost owners. */
void connection_wake_in_turn(struct connection *c);

/* ADOPTED. A handler of frames. */
int connection_in_adopted(struct connection *c, const struct frame *f, const void *message);
/* ADOPTING, REATTACHING: its agent does not have it. */
void connection_adopt_refused(struct connection *c, Cssl__LinkRefused__Reason reason);

/* --- connection_order.c: an order has one outcome, whatever becomes of the connection (connection.h) --- */

/* From now on no agent owns it, or its owner is told to freeze it. */
static inline void connection_owner_goes(struct connection *c)
{
	c->busy->move_began_ns = uv_hrtime();
}
/* @agent owns it; NO_AGENT: nobody. Returns how long, in us, no agent owned it; 0 for the first owner, and for one that
 * was lost. */
uint64_t connection_note_owner(struct connection *c, int agent, enum ownership_cause cause);
/* No agent owns it until its next record, or until another one adopts it. @why: REST or TAKEOVER; @r: of its order. */
void connection_to_rest(struct connection *c, enum ownership_cause why, const struct move_result *r);

/* REFUSED of order number @order; 0: its owner does not tell. */
void connection_order_refused(struct connection *c, uint32_t order, const char *why);
/* MOVING: its owner has the order or not, and keeps it, for the reason @why. */
void connection_owner_keeps(struct connection *c, const char *why);
/* Its owner goes on after that: say the order again if it is not answered. */
void connection_order_again(struct connection *c);
/* The ordered move is over, with this outcome. Nothing if there is none. */
void connection_report_move(struct connection *c, const struct move_result *r);

/* --- connection_loss.c: it waits for its owner as long as that may still have it; else takeover.h decides --- */

/* If it is REATTACHING and the link to its owner is up: ask for it. */
void connection_reattach_if_up(struct connection *c);
/* All that are REATTACHING wait from now on: agents have kept their streams until now. */
void connection_reattach_anew(struct connection_home *home);
/* REATTACHED: its owner has it. A handler of frames; this one has no message. */
int connection_in_reattached(struct connection *c, const struct frame *f, const void *message);
/* REATTACHING: its owner does not have it any more, or does not answer. This may end it. */
void connection_reattach_failed(struct connection *c);
