/* due_timer.h: a timer of nanoseconds for open-loop loads, whose due times are moments and not delays. */
#ifndef CSSL_BENCH_LOAD_DUE_TIMER_H
#define CSSL_BENCH_LOAD_DUE_TIMER_H

#include <stdint.h>

#include "net/worker.h"

struct due_timer;

/* @fn is called each time that it runs out. NULL: no memory or descriptor. */
struct due_timer *due_timer_create(struct worker *w, void (*fn)(void *ctx), void *ctx);

/* Runs out at @at_ns of CLOCK_MONOTONIC, at once when that is past; replaces what was set. */
void due_timer_set(struct due_timer *t, uint64_t at_ns);

/* NULL is legal. */
void due_timer_destroy(struct due_timer *t);

#endif
