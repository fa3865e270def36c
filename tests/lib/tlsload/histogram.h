/* histogram.h: how long things took, in microseconds, to 3 %; from 1 us to more than an hour. */
#pragma once

#include <stdint.h>

#define HISTOGRAM_FINE    32u /* steps for each doubling */
#define HISTOGRAM_BUCKETS (HISTOGRAM_FINE * 28u)

struct histogram {
	uint64_t count, max_us;
	uint32_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t us);
/* The value that @permille of all are at most; 0 when there is none. */
uint64_t histogram_at(const struct histogram *h, unsigned permille);
