/* exact.c: what stands for a bucket of a histogram is its largest value, so the bucket is found again. */
#include "bench/measure/exact.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/error.h"

#define NS_PER_S 1000000000u

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t exact_epoch_ns(void)
{
	return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
}

json_int_t exact_wall_ns(uint64_t epoch_ns, uint64_t at_ns)
{
	return at_ns ? (json_int_t)(epoch_ns + at_ns) : 0;
}

/* One text, because each number of its own would take the memory of an object. */
static char *values_text(const struct histogram *h)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	for (unsigned i = 0; f && i < HISTOGRAM_BUCKETS; i++) {
		if (h->buckets[i] > 0)
			fprintf(f, "%" PRIu64 ":%" PRIu64 " ", histogram_bucket_end(i), h->buckets[i]);
	}
	if (f)
		fclose(f);
	return text;
}

static json_t *histogram_json(const struct histogram *h)
{
	char *values = values_text(h);
	json_t *out = values ? json_pack("{s:I, s:I, s:I, s:s}", "sum_ns", (json_int_t)h->sum, "min_ns",
				       (json_int_t)h->min, "max_ns", (json_int_t)h->max, "values", values)
			     : NULL;

	free(values);
	return out;
}

json_t *exact_histograms_json(const struct report_name *names, const struct histogram *all, unsigned len)
{
	json_t *out = json_object();

	for (unsigned i = 0; i < len; i++) {
		if (all[i].count > 0)
			json_object_set_new(out, names[i].key, histogram_json(&all[i]));
	}
	return out;
}

/* Reading */

static int value_of(const json_t *n, uint64_t *out)
{
	if (!json_is_integer(n) || json_integer_value(n) < 0)
		return CSSL_E_RANGE;
	*out = (uint64_t)json_integer_value(n);
	return 0;
}

int exact_number(const json_t *from, const char *key, uint64_t *out)
{
	return value_of(json_object_get(from, key), out);
}

static int read_number(const char **at, char behind, uint64_t *out)
{
	char *end;

	*out = strtoull(*at, &end, 10);
	if (**at < '0' || **at > '9' || *end != behind)
		return CSSL_E_RANGE;
	*at = end + 1;
	return 0;
}

static int read_histogram(const json_t *from, struct histogram *h)
{
	const char *values = json_string_value(json_object_get(from, "values"));
	uint64_t value, times;

	while (values && *values) {
		if (read_number(&values, ':', &value) || read_number(&values, ' ', &times))
			return CSSL_E_RANGE;
		histogram_record_times(h, value, times);
	}
	return h->count == 0 || exact_number(from, "sum_ns", &h->sum) || exact_number(from, "min_ns", &h->min) ||
			       exact_number(from, "max_ns", &h->max)
		       ? CSSL_E_RANGE
		       : 0;
}

int exact_histograms(
	const json_t *from, const char *key, const struct report_name *names, struct histogram *all, unsigned len)
{
	const json_t *rows = json_object_get(from, key), *row;

	for (unsigned i = 0; i < len; i++) {
		row = json_object_get(rows, names[i].key);
		if (row && read_histogram(row, &all[i]))
			return CSSL_E_RANGE;
	}
	return json_is_object(rows) ? 0 : CSSL_E_RANGE;
}

int exact_counts(const json_t *from, const char *key, const struct report_name *names, uint64_t *counts, unsigned len)
{
	const json_t *rows = json_object_get(from, key);

	for (unsigned i = 0; i < len; i++) {
		if (exact_number(rows, names[i].key, &counts[i]))
			return CSSL_E_RANGE;
	}
	return 0;
}

int exact_tally(const json_t *from, const char *key, struct tally *rows, unsigned max)
{
	json_t *texts = json_object_get(from, key), *count;
	const char *text;
	uint64_t times;

	json_object_foreach(texts, text, count)
	{
		if (value_of(count, &times))
			return CSSL_E_RANGE;
		tally_row(rows, max, text, strlen(text))->count += times;
	}
	return json_is_object(texts) ? 0 : CSSL_E_RANGE;
}
