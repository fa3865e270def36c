/* listener_counters.c: the table of a listener's counters as rows. */
#include "ragent/listener_counters.h"

static const struct counter_row table[] = {
#define X(name, kind, help) { #name, help, COUNTER_##kind },
	LISTENER_COUNTERS(X)
#undef X
};

_Static_assert(sizeof(struct listener_counters) == LISTENER_COUNTER_COUNT * sizeof(counter), "only counters");

const struct counter_row *listener_counter_row(size_t index)
{
	return &table[index];
}

uint64_t listener_counter_value(const struct listener_counters *c, size_t index)
{
	return counter_get((const counter *)c + index);
}

void listener_counter_set(struct listener_counters *c, size_t index, uint64_t value)
{
	counter_set((counter *)c + index, value);
}
