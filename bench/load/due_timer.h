/* due_timer.h: a timer with nanoseconds for open-loop loads; it is set to a point in time, not to a delay. */
#pragma once

#include <stdint.h>

struct due_timer;
struct worker;

/* @fn is called each time it runs out. NULL: no memory or descriptor. */
struct due_timer *due_timer_create(struct worker *w, void (*fn)(void *ctx), void *ctx);

/* Let it run out at @at_ns of CLOCK_MONOTONIC, or at once if that is past. Replaces the earlier time. */
void due_timer_set(struct due_timer *t, uint64_t at_ns);

/* NULL is legal. */
void due_timer_destroy(struct due_timer *t);
