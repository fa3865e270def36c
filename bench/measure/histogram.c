/* histogram.c: values below 2,048 have a bucket each. Above, a value keeps its leading 11 bits: with the top bit known,
 * those are 1,024 buckets for each power of two, one power behind the other.
 */
#include "bench/measure/histogram.h"

#include <math.h>

#define VALUE_MAX ((UINT64_C(1) << HISTOGRAM_MAX_BITS) - 1)

/* How many low bits the bucket of @value does not tell apart. */
static unsigned shift_of(uint64_t value)
{
	unsigned top = 63u - (unsigned)__builtin_clzll(value | 1);

	return top > HISTOGRAM_SUB_BITS ? top - HISTOGRAM_SUB_BITS : 0;
}

static unsigned histogram_bucket_of(uint64_t value)
{
	unsigned shift = shift_of(value);

	return (shift << HISTOGRAM_SUB_BITS) + (unsigned)(value >> shift);
}

/* The largest value of a bucket. */
static uint64_t histogram_end_of(unsigned bucket)
{
	unsigned power = bucket >> HISTOGRAM_SUB_BITS;
	unsigned shift = power > 1 ? power - 1 : 0;
	uint64_t leading = bucket - (shift << HISTOGRAM_SUB_BITS);

	return ((leading + 1) << shift) - 1;
}

void histogram_record(struct histogram *h, uint64_t value)
{
	if (value > VALUE_MAX)
		value = VALUE_MAX;
	if (h->count == 0 || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	h->count++;
	h->sum += value;
	h->buckets[histogram_bucket_of(value)]++;
}

void histogram_add(struct histogram *h, const struct histogram *other)
{
	if (other->count == 0)
		return;
	if (h->count == 0 || other->min < h->min)
		h->min = other->min;
	if (other->max > h->max)
		h->max = other->max;
	h->count += other->count;
	h->sum += other->sum;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		h->buckets[i] += other->buckets[i];
}

uint64_t histogram_percentile(const struct histogram *h, double percent)
{
	uint64_t rank = (uint64_t)ceil(percent / 100 * (double)h->count);
	uint64_t seen = 0;
	unsigned i = 0;

	if (h->count == 0)
		return 0;
	if (rank < 1)
		rank = 1;
	if (rank > h->count)
		rank = h->count;
	while ((seen += h->buckets[i]) < rank && i < HISTOGRAM_BUCKETS - 1) /* a stranger's may have fewer */
		i++;
	return histogram_end_of(i) < h->max ? histogram_end_of(i) : h->max;
}

double histogram_mean(const struct histogram *h)
{
	return h->count > 0 ? (double)h->sum / (double)h->count : 0;
}
