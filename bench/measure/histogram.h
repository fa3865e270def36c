/* histogram.h: durations from one nanosecond to 18 minutes in log-linear buckets, in fixed memory. A bucket is at most
 * 1/1024 as wide as its values, so each percentile has three significant digits. Histograms can be added.
 */
#pragma once

#include <stdint.h>

#define HISTOGRAM_SUB_BITS 10u /* 1,024 buckets per power of two */
#define HISTOGRAM_MAX_BITS 40u /* longer ones count as the longest */
#define HISTOGRAM_BUCKETS  ((HISTOGRAM_MAX_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS)

/* All zero is an empty one. */
struct histogram {
	uint64_t count, sum, min, max; /* exact */
	uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_record(struct histogram *h, uint64_t value);
void histogram_add(struct histogram *h, const struct histogram *other);

/* The smallest value that @percent of all values do not exceed, rounded up to the end of its bucket, at most the
 * maximum. 0 if the histogram is empty. */
uint64_t histogram_percentile(const struct histogram *h, double percent);
double histogram_mean(const struct histogram *h);
