/* wheel.h: deadlines, and the wheel in which a worker keeps them. The wheel has no loop and no clock: its worker gives
 * the time, and gets the deadlines that are due. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct worker;

#define WHEEL_TICK_MS    10u
#define WHEEL_LEVEL_BITS 6u
#define WHEEL_SLOTS      (1u << WHEEL_LEVEL_BITS)
#define WHEEL_LEVELS     7u
#define WHEEL_NEVER      UINT64_MAX

/* An embedded deadline, all zero before use. It fires once, never early (by the time of the loop turn) and at most one
 * tick late. Setting it again moves it; moving it into the future is nearly free. Cancel it before freeing its holder.
 */
struct deadline {
	LIST_ENTRY(deadline) in; /* prev NULL: not set */
	uint64_t at_ms;
	void (*fn)(struct deadline *d);
};
/* In the wheel of @w, whose loop wakes in time (worker.c). */
void deadline_set(struct worker *w, struct deadline *d, uint64_t in_ms);
/* The same, but at least @in_ms pass by the clock. The time of a loop turn is that of its beginning, so an ordinary
 * deadline that is set late in a turn fires early by the length of that turn. For delays that somebody asked for. */
void deadline_set_in_full(struct worker *w, struct deadline *d, uint64_t in_ms);
void deadline_cancel(struct deadline *d);
static inline bool deadline_is_set(const struct deadline *d)
{
	return d->in.le_prev != NULL;
}

/* --- for a worker --- */

LIST_HEAD(wheel_slot, deadline);

struct wheel {
	uint64_t tick;               /* all deadlines up to here were fired */
	uint64_t used[WHEEL_LEVELS]; /* a bit per slot; may be set for a slot that cancelling has emptied */
	struct wheel_slot slots[WHEEL_LEVELS][WHEEL_SLOTS];
	struct wheel_slot reached; /* the rest of a slot that wheel_advance() is emptying */
};

void wheel_init(struct wheel *w, uint64_t now_ms);

/* Set or move, O(1). A deadline that moves into the future stays in its slot until its old time comes. */
void wheel_set(struct wheel *w, struct deadline *d, uint64_t now_ms, uint64_t in_ms);

/* The time at which wheel_advance() has something to do, or WHEEL_NEVER. */
uint64_t wheel_next_ms(struct wheel *w);

/* Call fn of every deadline that is due at @now_ms. They may set and cancel any deadline. */
void wheel_advance(struct wheel *w, uint64_t now_ms);
