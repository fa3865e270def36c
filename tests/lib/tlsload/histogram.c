/* histogram.c: below twice HISTOGRAM_FINE exact, then HISTOGRAM_FINE equal steps from one power of two to the next. */
#include "tests/lib/tlsload/histogram.h"

static unsigned bucket_of(uint64_t us)
{
	if (us < 2 * HISTOGRAM_FINE)
		return (unsigned)us;
	const unsigned doublings = 63u - (unsigned)__builtin_clzll(us / HISTOGRAM_FINE);
	const uint64_t bucket = doublings * HISTOGRAM_FINE + (us >> doublings);
	return bucket < HISTOGRAM_BUCKETS ? (unsigned)bucket : HISTOGRAM_BUCKETS - 1;
}

/* The largest value in it. */
static uint64_t bucket_end(unsigned bucket)
{
	if (bucket < 2 * HISTOGRAM_FINE)
		return bucket;
	const unsigned doublings = bucket / HISTOGRAM_FINE - 1;
	return ((uint64_t)(bucket - doublings * HISTOGRAM_FINE + 1) << doublings) - 1;
}

void histogram_add(struct histogram *h, uint64_t us)
{
	h->count++;
	h->buckets[bucket_of(us)]++;
	if (us > h->max_us)
		h->max_us = us;
}

uint64_t histogram_at(const struct histogram *h, unsigned permille)
{
	const uint64_t wanted = (h->count * permille + 999) / 1000;
	uint64_t seen = 0;

	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += h->buckets[i];
		if (seen >= wanted && seen > 0)
			return bucket_end(i) < h->max_us ? bucket_end(i) : h->max_us;
	}
	return 0;
}
