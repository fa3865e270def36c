/* counters.c: the table of counters as rows. */
#include "ragent/counters.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>

#include "ragent/listener_counters.h"

#define ENDED_NAME_MAX 40u

const struct time_bucket latency_buckets[] = TIME_BUCKETS(LATENCY_BUCKETS);
const struct time_bucket takeover_buckets[] = TIME_BUCKETS(TAKEOVER_BUCKETS);
const struct time_bucket drain_buckets[] = TIME_BUCKETS(DRAIN_BUCKETS);

static const struct counter_row table[] = {
#define X(name, kind, help) { #name, help, COUNTER_##kind },
	RAGENT_COUNTERS(X)
#undef X
};
#define ROWS (sizeof table / sizeof table[0])

static const struct {
	const char *name, *text;
} reasons[] = {
#define X(name, text) { #name, text },
	END_REASONS(X)
#undef X
};

static char ended_names[END_REASON_COUNT][ENDED_NAME_MAX];
static struct counter_row ended[END_REASON_COUNT];

static void make_ended(void)
{
	for (unsigned i = 0; i < END_REASON_COUNT; i++) {
		snprintf(ended_names[i], ENDED_NAME_MAX, "ended_%s", reasons[i].name);
		for (char *p = ended_names[i]; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		ended[i] = (struct counter_row){ ended_names[i], reasons[i].text, COUNTER_MONOTONIC };
	}
}

size_t ragent_counter_count(void)
{
	return ROWS + END_REASON_COUNT;
}

const struct counter_row *ragent_counter_row(size_t index)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (index < ROWS)
		return &table[index];
	pthread_once(&once, make_ended);
	return &ended[index - ROWS];
}

_Static_assert(sizeof(struct ragent_counters) == (ROWS + END_REASON_COUNT) * sizeof(counter), "only counters");

#define OWNERSHIP_FIRST (offsetof(struct ragent_counters, latency_hand_off_sum_us) / sizeof(counter))
#define OWNERSHIP_ROWS  (sizeof(struct ownership_counters) / sizeof(counter))

size_t ownership_counter_count(void)
{
	_Static_assert(offsetof(struct ragent_counters, latency_rest_longer) / sizeof(counter) ==
			       OWNERSHIP_FIRST + OWNERSHIP_ROWS - 1,
		"they stand together, in the same order");
	return OWNERSHIP_ROWS;
}

const struct counter_row *ownership_counter_row(size_t index)
{
	return &table[OWNERSHIP_FIRST + index];
}

/* --- listeners --- */

static const struct counter_row listener_table[] = {
#define X(name, kind, help) { #name, help, COUNTER_##kind },
	LISTENER_COUNTERS(X)
#undef X
};

_Static_assert(sizeof(struct listener_counters) == LISTENER_COUNTER_COUNT * sizeof(counter), "only counters");

const struct counter_row *listener_counter_row(size_t index)
{
	return &listener_table[index];
}
