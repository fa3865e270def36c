/* turns.h: decides which session gets the next connection to one destination. Senders take turns, transaction by
 * transaction (deficit round robin with one transaction as the cost): a sender with many sessions gets no more than
 * one with few, as long as both have waiting transactions. A sender is an IPv4 address or, because a subscriber has at
 * least that, an IPv6 /64. No sockets, no clock.
 */
#ifndef CSSL_SMTPPROXY_TURNS_H
#define CSSL_SMTPPROXY_TURNS_H

#include <sys/queue.h>

#include "proto/sess_obj.h"

struct turns_sender;

/* One waiting session. Embedded, all zero: it does not wait. */
struct turn {
	TAILQ_ENTRY(turn) next;
	struct turns_sender *sender; /* NULL: it does not wait */
};

TAILQ_HEAD(turns_ring, turns_sender);

/* Embedded. Call turns_init() first. */
struct turns {
	struct turns_ring ring; /* senders with at least one waiting turn; the head is next */
	uint32_t count;         /* waiting turns */
	uint32_t senders;
};

void turns_init(struct turns *t);

/* @turn waits for @sender, after its other turns. A sender of weight 2 gets twice as many turns as one of weight 1.
 * 0 or CSSL_E_NO_MEMORY. */
int turns_add(struct turns *t, struct turn *turn, const struct client_address *sender, uint32_t weight);

/* It no longer waits. Legal if it did not wait. */
void turns_remove(struct turns *t, struct turn *turn);

/* Takes the next turn out of the line. NULL: none waits. */
struct turn *turns_take(struct turns *t);
/* The turn that turns_take() would return, or NULL. */
struct turn *turns_first(const struct turns *t);
/* A waiting turn for which @fits is true; NULL: there is none. */
struct turn *turns_find(
	const struct turns *t, int (*fits)(const struct turn *turn, const void *what), const void *what);

static inline int turn_waits(const struct turn *turn)
{
	return turn->sender != NULL;
}

#endif
