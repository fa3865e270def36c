/* timer.h: repeating timers, and deadlines cheap enough for one per connection (a wheel per worker, 10 ms ticks). */
#ifndef CSSL_NET_TIMER_H
#define CSSL_NET_TIMER_H

#include <stdint.h>

#include "net/worker.h"

/* A repeating timer of its own. */
struct timer;
struct timer *timer_create(struct worker *w, void (*fn)(void *ctx), void *ctx, uint64_t first_ms, uint64_t every_ms);
void timer_destroy(struct timer *t); /* fn is not called again; memory is freed after the handle closed */

/* An embedded deadline; fires once, up to one tick late, never early. Setting a set one moves it; cancel before freeing its holder. */
struct deadline {
	struct deadline *next, **prev; /* prev NULL: not set */
	uint64_t at_ms;
	void (*fn)(struct deadline *d);
};
void deadline_set(struct worker *w, struct deadline *d, uint64_t in_ms);
void deadline_cancel(struct deadline *d);

#endif
