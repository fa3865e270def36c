/* turns.h: decides which session gets the next connection to one destination. Senders take turns, transaction by
 * transaction: the one that had the fewest is next (start-time fair queueing with one transaction as the cost). So a
 * sender with many sessions gets no more than one with few, and one that did not wait for a moment, or is slower within
 * its transactions, catches up. A sender is an IPv4 address or, because a subscriber has at least that, an IPv6 /64.
 *
 * Transactions differ in length, so turns alone would give a sender of long ones nearly all connections. A sender that
 * waits and holds less than half of its share of the connections is next, whatever the turns were. No sockets, no
 * clock.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "proto/ids.h"

struct turns_sender;

/* One waiting session. Embedded, all zero: it does not wait. */
struct turn {
	TAILQ_ENTRY(turn) next;
	struct turns_sender *sender; /* NULL: it does not wait */
	struct turns_sender *holder; /* was taken: the sender of its connection, for turns_give_back() */
};

TAILQ_HEAD(turns_ring, turns_sender);

/* Embedded. Call turns_init() first. */
struct turns {
	struct turns_ring ring; /* senders with at least one waiting turn; the head had the fewest turns, and is next */
	struct turns_ring rest; /* senders that hold connections, and wait for none */
	uint32_t count;         /* waiting turns */
	uint32_t senders;       /* that wait */
	uint32_t resting;
	uint32_t places; /* connections to share; the caller keeps it current */
	uint64_t had;    /* the most that a sender had had when its turn came; in TURN_COST */
};

void turns_init(struct turns *t);

/* @turn waits for @sender, after its other turns. A sender of weight 2 gets twice as many turns as one of weight 1.
 * 0 or CSSL_E_NO_MEMORY. */
int turns_add(struct turns *t, struct turn *turn, const struct client_address *sender, uint32_t weight);

/* It no longer waits. Legal if it did not wait. */
void turns_remove(struct turns *t, struct turn *turn);

/* Takes the next turn out of the line. Its sender holds one connection more, until turns_give_back(). NULL: none waits.
 */
struct turn *turns_take(struct turns *t);
/* NULL is legal. */
void turns_give_back(struct turns *t, struct turns_sender *holder);
/* @holder has more than its share, and a sender waits that has less. */
bool turns_has_too_many(const struct turns *t, const struct turns_sender *holder);
/* The turn that turns_take() would return, or NULL. */
struct turn *turns_first(const struct turns *t);
/* A waiting turn for which @fits is true; NULL: there is none. */
struct turn *turns_find(
	const struct turns *t, int (*fits)(const struct turn *turn, const void *what), const void *what);
