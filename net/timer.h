/* timer.h: repeating timers, and deadlines cheap enough for one per connection (a wheel per worker, 10 ms ticks). */
#ifndef CSSL_NET_TIMER_H
#define CSSL_NET_TIMER_H

#include <stdint.h>

#include "net/worker.h"

/* A repeating timer of its own. @every_ms 0: once. NULL: out of memory. */
struct timer;
struct timer *timer_start(struct worker *w, void (*fn)(void *ctx), void *ctx, uint64_t first_ms, uint64_t every_ms);
/* From now on every @every_ms (not 0), so long from now for the first time. */
void timer_set_every(struct timer *t, uint64_t every_ms);
void timer_stop(struct timer *t); /* NULL is legal; fn is not called again; memory is freed after the handle closed */

/* An embedded deadline; zero before use. Fires once, up to one tick late, never early (by the time of the loop turn).
 * Setting a set one moves it, which is nearly free when it moves into the future; cancel before freeing its holder. */
struct deadline {
	struct deadline *next, **prev; /* prev NULL: not set */
	uint64_t at_ms;
	void (*fn)(struct deadline *d);
};
void deadline_set(struct worker *w, struct deadline *d, uint64_t in_ms);
void deadline_cancel(struct deadline *d);
static inline int deadline_is_set(const struct deadline *d)
{
	return d->prev != NULL;
}

#endif
