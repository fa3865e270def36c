/* turn_share.h: long work gets a bounded share of each loop turn. When there is more of it than that, the rest waits in
 * a line. Each turn first serves everything else, then works on the line in the order of arrival.
 *
 * Used for handshakes: one costs as much CPU as thousands of records, and many clients may begin at once.
 *
 * One line per worker; not thread-safe.
 */
#ifndef CSSL_NET_TURN_SHARE_H
#define CSSL_NET_TURN_SHARE_H

#include "net/worker.h"

/* A place in the line. Embedded in its holder; zero: it is not in the line. */
struct turn_waiter {
	struct turn_waiter *next, **prev;
	void *holder;
};

struct turn_share {
	struct worker *worker; /* NULL: there is no bound */
	void (*go_on)(void *holder);
	struct turn_waiter *first, **last;
	struct turn_end at_turn_end;
	uint64_t limit_ns, worked_ns; /* of this turn */
	uint32_t turn;
	uint32_t flushed;                                 /* the turn that has sent its output */
	enum { TURN_SHARE_RESTS, TURN_SHARE_WORKS } line; /* WORKS: within @go_on */
};

/* @go_on works on one that has left the line. Zero in place of this call: there is no bound. */
void turn_share_init(struct turn_share *t, struct worker *w, uint64_t limit_ns, void (*go_on)(void *holder));

/* 1: work may be done at once. 0: its holder has to enter the line. */
int turn_share_is_free(struct turn_share *t);
/* Some work took that much time. */
void turn_share_worked(struct turn_share *t, uint64_t ns);

/* At the end of the line. One that is in the line keeps its place. */
void turn_share_enter(struct turn_share *t, struct turn_waiter *waiter, void *holder);
/* Nothing happens where it is not in the line. */
void turn_share_leave(struct turn_share *t, struct turn_waiter *waiter);
int turn_waiter_waits(const struct turn_waiter *waiter);

#endif
