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
