/* wheel.c: a hierarchical wheel. A tick number is read as digits of six bits. The level of a deadline is the highest
 * digit in which its tick differs from the wheel's tick, and its slot is the value of that digit. When the wheel's
 * tick reaches the beginning of a slot, the deadlines in it move down to lower levels or are due. So setting and
 * cancelling is O(1), and one bit for each slot tells when there is work next.
 */
#include <assert.h>
#include <string.h>

#include "net/loop/wheel.h"

/* Far above any real deadline, and low enough that a tick always fits the wheel's digits. */
#define WHEEL_MAX_MS (UINT64_C(1) << 40)

void deadline_cancel(struct deadline *d)
{
	if (!deadline_is_set(d))
		return;
	LIST_REMOVE(d, in);
	d->in.le_prev = NULL;
}

void wheel_init(struct wheel *w, uint64_t now_ms)
{
	memset(w, 0, sizeof *w);
	w->tick = now_ms / WHEEL_TICK_MS;
}

/* The first tick at which @d may fire. */
static uint64_t due_tick(const struct deadline *d)
{
	return (d->at_ms + WHEEL_TICK_MS - 1) / WHEEL_TICK_MS;
}

static void wheel_insert(struct wheel *w, struct deadline *d)
{
	uint64_t due = due_tick(d);

	if (due <= w->tick)
		due = w->tick + 1;
	unsigned level = (63u - (unsigned)__builtin_clzll(due ^ w->tick)) / WHEEL_LEVEL_BITS;
	assert(level < WHEEL_LEVELS);
	unsigned slot = (unsigned)(due >> (level * WHEEL_LEVEL_BITS)) % WHEEL_SLOTS;
	LIST_INSERT_HEAD(&w->slots[level][slot], d, in);
	w->used[level] |= UINT64_C(1) << slot;
}

/* The beginning of the first used slot. All slots of a level come before those of the next one. */
static uint64_t next_tick(struct wheel *w, unsigned *level_out, unsigned *slot_out)
{
	for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
		while (w->used[level]) {
			unsigned slot = (unsigned)__builtin_ctzll(w->used[level]);
			if (LIST_EMPTY(&w->slots[level][slot])) { /* cancelled */
				w->used[level] &= ~(UINT64_C(1) << slot);
				continue;
			}
			unsigned shift = level * WHEEL_LEVEL_BITS;
			*level_out = level;
			*slot_out = slot;
			return ((w->tick >> (shift + WHEEL_LEVEL_BITS)) << (shift + WHEEL_LEVEL_BITS)) |
			       ((uint64_t)slot << shift);
		}
	}
	return WHEEL_NEVER;
}

uint64_t wheel_next_ms(struct wheel *w)
{
	unsigned level, slot;
	uint64_t tick = next_tick(w, &level, &slot);

	return tick == WHEEL_NEVER ? WHEEL_NEVER : tick * WHEEL_TICK_MS;
}

void wheel_set(struct wheel *w, struct deadline *d, uint64_t now_ms, uint64_t in_ms)
{
	uint64_t at_ms = now_ms + (in_ms < WHEEL_MAX_MS ? in_ms : WHEEL_MAX_MS);

	if (deadline_is_set(d) && at_ms >= d->at_ms) {
		d->at_ms = at_ms;
		return;
	}
	deadline_cancel(d);
	d->at_ms = at_ms;

	/* A wheel that has slept over empty slots catches up, so that near deadlines land on the lowest level. */
	uint64_t now_tick = now_ms / WHEEL_TICK_MS;
	unsigned level, slot;
	if (now_tick > w->tick && next_tick(w, &level, &slot) > now_tick)
		w->tick = now_tick;
	wheel_insert(w, d);
}

/* Fire or put back the deadlines of a slot that was reached. The fn of one may cancel others. */
static void wheel_empty_slot(struct wheel *w, struct wheel_slot *slot)
{
	struct deadline *d = LIST_FIRST(slot);

	w->reached = *slot;
	LIST_INIT(slot);
	if (d)
		d->in.le_prev = &LIST_FIRST(&w->reached);
	while ((d = LIST_FIRST(&w->reached))) {
		deadline_cancel(d);
		if (due_tick(d) > w->tick)
			wheel_insert(w, d);
		else
			d->fn(d);
	}
}

void wheel_advance(struct wheel *w, uint64_t now_ms)
{
	uint64_t now_tick = now_ms / WHEEL_TICK_MS;
	unsigned level, slot;
	uint64_t tick;

	while ((tick = next_tick(w, &level, &slot)) <= now_tick) {
		w->tick = tick;
		w->used[level] &= ~(UINT64_C(1) << slot);
		wheel_empty_slot(w, &w->slots[level][slot]);
	}
	if (now_tick > w->tick)
		w->tick = now_tick;
}
