/* turn_share.h: long work gets a bounded share of each loop turn. When there is more of it than that, the rest waits in
 * lines: one for each source, or for several, as there are only TURN_SHARE_LINES. Each turn first serves everything
 * else, then works on the lines in turn, in each in the order of arrival. So a source with much work hardly delays the
 * others.
 *
 * A share is time that passes from the first such work of a turn on, whatever is done meanwhile: what comes before and
 * behind that work belongs to it. At least one of those who wait is worked on in each turn.
 *
 * Short turns cost: more system calls, and fewer records with each. So the share is small only while there is other
 * work that would wait.
 *
 * Used for handshakes: one costs as much CPU as thousands of records, and many clients may begin at once.
 *
 * One for each worker; not thread-safe.
 */
#pragma once

#include <stdbool.h>

#include "net/loop/worker.h"

#define TURN_SHARE_LINES 32u

/* A place in a line. Embedded in its holder; zero: it is in none. */
struct turn_waiter {
	TAILQ_ENTRY(turn_waiter) in;
	void *holder;
	uint32_t line;
};

TAILQ_HEAD(turn_line, turn_waiter);

struct turn_share {
	struct worker *worker; /* NULL: there is no bound */
	void (*go_on)(void *holder);
	struct turn_line lines[TURN_SHARE_LINES];
	uint32_t waiting; /* a bit for each line in which somebody waits */
	uint32_t served;  /* the line of the last one that was worked on */
	struct turn_end at_turn_end;
	uint64_t small_ns, large_ns; /* shares of a turn */
	uint64_t small_until_ms;     /* on the worker's clock */
	uint64_t began_ns;           /* the share of this turn */
	uint32_t turn;
	uint32_t flushed; /* the turn that has sent its output */
	uint32_t worked;  /* the turn that has worked on one that waited */
	uint32_t yielded; /* the turn that has given the processor away */
	/* BEGINS, WORKS: within @go_on, for the first one of the turn, for a later one */
	enum { TURN_SHARE_RESTS, TURN_SHARE_BEGINS, TURN_SHARE_WORKS } state;
};

#define TURN_SHARE_SMALL_MS 1000u

/* @go_on works on one that has left its line. Zero in place of this call: there is no bound. */
void turn_share_init(
	struct turn_share *t, struct worker *w, uint64_t small_ns, uint64_t large_ns, void (*go_on)(void *holder));

/* Other work came: for TURN_SHARE_SMALL_MS the share is the small one. */
void turn_share_others_came(struct turn_share *t);

/* 1: work may be done at once. 0: its holder has to enter a line. */
bool turn_share_is_free(struct turn_share *t);

/* At the end of the line of @source (any number). One that is in a line keeps its place. */
void turn_share_enter(struct turn_share *t, struct turn_waiter *waiter, uint32_t source, void *holder);
/* Nothing happens where it is in no line. */
void turn_share_leave(struct turn_share *t, struct turn_waiter *waiter);
bool turn_waiter_waits(const struct turn_waiter *waiter);
