/* timer.h: timers, each with a handle of its own. A deadline (net/loop/wheel.h) is cheap enough for each connection to
 * have one. */
#pragma once

#include <stdint.h>

struct worker;

/* Start a timer. @every_ms 0: it fires once. NULL: out of memory. */
struct timer;
struct timer *timer_start(struct worker *w, void (*fn)(void *ctx), void *ctx, uint64_t first_ms, uint64_t every_ms);
/* From now on fire every @every_ms (not 0), for the first time @every_ms from now. */
void timer_set_every(struct timer *t, uint64_t every_ms);
void timer_stop(struct timer *t); /* NULL is legal; fn is not called again; memory is freed after the handle closed */
