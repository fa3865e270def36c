/* time_counters.h: how often something took how long: consecutive rows in a table of counters, one for each bucket of a
 * histogram and a last one for all longer times.
 *
 * The buckets are one list, in rising order, which feeds the rows, the counting and the metrics. B's arguments:
 *
 *   #define PAUSE_BUCKETS(B, X, name)               \
 *           B(X, name, 2ms, 2000, "up to 2 ms")     \
 *           B(X, name, 1s, 1000000, "up to 1 s")
 *
 *   TIME_ROWS(X, pauses, PAUSE_BUCKETS)                      rows pauses_2ms, pauses_1s, pauses_longer of the table
 *   const struct time_bucket pause_buckets[] = TIME_BUCKETS(PAUSE_BUCKETS);
 *   time_counters_add(&counters.pauses_2ms, pause_buckets, took_us);
 */
#pragma once

#include "net/report/counters.h"

struct time_bucket {
	const char *suffix; /* of the row's name, behind the '_' */
	uint64_t up_to_us;  /* UINT64_MAX: the last one */
};

#define TIME_ROW(X, name, suffix, up_to_us, help) X(name##_##suffix, MONOTONIC, help)
#define TIME_ROWS(X, name, BUCKETS)               BUCKETS(TIME_ROW, X, name) X(name##_longer, MONOTONIC, "longer than that")

#define TIME_BUCKET(X, name, suffix, up_to_us, help) { #suffix, up_to_us },
#define TIME_BUCKETS(BUCKETS)                                                                                          \
	{                                                                                                              \
		BUCKETS(TIME_BUCKET, , )                                                                               \
		{                                                                                                      \
			"longer", UINT64_MAX                                                                           \
		}                                                                                                      \
	}

/* Count a time of @us. @first: the row of the first bucket. */
static inline void time_counters_add(counter *first, const struct time_bucket *buckets, uint64_t us)
{
	while (us > buckets->up_to_us) {
		buckets++;
		first++;
	}
	counter_add(first, 1);
}
