/* counters.h: counters. Each daemon has one table of them, `NAME_COUNTERS(X)` with rows X(name, kind, help), which
 * makes the code, the API, the metrics and the manual. Each worker has its own set; only its thread writes it, and
 * readers add up all sets (relaxed atomics). */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct counter_row {
	const char *name; /* snake_case, without "_total": "handshakes_full" */
	const char *help; /* one sentence */
	enum { COUNTER_MONOTONIC, COUNTER_GAUGE } kind;
};

typedef _Atomic uint64_t counter;

static inline void counter_add(counter *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}
static inline void counter_set(counter *c, uint64_t v)
{
	atomic_store_explicit(c, v, memory_order_relaxed);
}
static inline uint64_t counter_get(const counter *c)
{
	return atomic_load_explicit((counter *)c, memory_order_relaxed);
}

/* The counter of a row of the table, in a set of all its counters. */
static inline counter *counter_at(const void *set, size_t row)
{
	return (counter *)set + row;
}
