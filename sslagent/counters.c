/* counters.c: the arrays, and the row table for readers. */
#include "sslagent/counters.h"

#include <assert.h>
#include <stdlib.h>

struct agent_counters {
	unsigned threads;
	struct counter_array arrays[];
};

static struct counter_array unread;
_Thread_local struct counter_array *counters_here = &unread;

struct agent_counters *agent_counters_create(unsigned threads)
{
	size_t len = sizeof(struct agent_counters) + threads * sizeof(struct counter_array);
	struct agent_counters *c = aligned_alloc(_Alignof(struct counter_array), len);

	if (!c)
		return NULL;
	c->threads = threads;
	for (unsigned thread = 0; thread < threads; thread++)
		for (unsigned which = 0; which < AGENT_COUNTER_COUNT; which++)
			atomic_init(&c->arrays[thread].at[which], 0);
	return c;
}

void agent_counters_destroy(struct agent_counters *c)
{
	free(c);
}

struct counter_array *counters_of(struct agent_counters *c, unsigned thread)
{
	assert(thread < c->threads);
	return &c->arrays[thread];
}

uint64_t agent_counters_sum(struct agent_counters *c, enum agent_counter which)
{
	uint64_t sum = 0;

	for (unsigned thread = 0; thread < c->threads; thread++)
		sum += counter_get(&c->arrays[thread].at[which]);
	return sum;
}

const struct counter_row *agent_counter_rows(void)
{
	static const struct counter_row rows[] = {
#define X(name, text, kind, help) [COUNT_##name] = { text, help, COUNTER_##kind },
		SSLAGENT_COUNTERS(X)
#undef X
	};

	return rows;
}

void counters_use(struct counter_array *a)
{
	counters_here = a ? a : &unread;
}
