/* wheel.c: slots of a millisecond; a slot also holds timers of later rounds. */
#include "tests/lib/tlsload/wheel.h"

#include <stddef.h>
#include <time.h>

uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void wheel_cancel(struct wheel_timer *t)
{
	if (!t->prev)
		return;
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->prev = NULL;
}

void wheel_set(struct wheel *w, struct wheel_timer *t, uint64_t at_ms)
{
	struct wheel_timer **slot;

	wheel_cancel(t);
	t->at_ms = at_ms < w->looked_ms ? w->looked_ms : at_ms;
	slot = &w->slots[t->at_ms % WHEEL_SLOTS];
	t->next = *slot;
	t->prev = slot;
	if (t->next)
		t->next->prev = &t->next;
	*slot = t;
}

struct wheel_timer *wheel_due(struct wheel *w, uint64_t now_ms)
{
	if (now_ms - w->looked_ms > WHEEL_SLOTS)
		w->looked_ms = now_ms - WHEEL_SLOTS; /* one round finds everything */
	for (; w->looked_ms <= now_ms; w->looked_ms++) {
		for (struct wheel_timer *t = w->slots[w->looked_ms % WHEEL_SLOTS]; t; t = t->next) {
			if (t->at_ms <= now_ms) {
				wheel_cancel(t);
				return t;
			}
		}
		if (w->looked_ms == now_ms)
			break;
	}
	return NULL;
}
