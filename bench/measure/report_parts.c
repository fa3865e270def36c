/* report_parts.c: one table of percentiles feeds both outputs. */
#include "bench/measure/report_parts.h"

#include <inttypes.h>
#include <stdio.h>

#define US(ns) ((double)(ns) / 1e3)

static const struct {
	const char *key;
	double percent;
} percentiles[] = { { "p50", 50 }, { "p75", 75 }, { "p90", 90 }, { "p99", 99 }, { "p99.9", 99.9 } };

#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

void report_histogram_head(void)
{
	printf("\n%-18s %10s %10s", "latency, us", "count", "mean");
	for (unsigned i = 0; i < PERCENTILES; i++)
		printf(" %10s", percentiles[i].key);
	printf(" %10s\n", "max");
}

void report_histogram(const char *name, const struct histogram *h)
{
	if (h->count == 0)
		return;
	printf("%-18s %10" PRIu64 " %10.1f", name, h->count, US(histogram_mean(h)));
	for (unsigned i = 0; i < PERCENTILES; i++)
		printf(" %10.1f", US(histogram_percentile(h, percentiles[i].percent)));
	printf(" %10.1f\n", US(h->max));
}

void report_tally(const char *title, const struct load_tally *rows, unsigned max)
{
	for (unsigned i = 0; i < max && rows[i].text[0]; i++)
		printf("%-18s %10" PRIu64 "  %s\n", i == 0 ? title : "", rows[i].count, rows[i].text);
}

json_t *report_histogram_json(const struct histogram *h)
{
	json_t *out = json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)h->count, "mean_us", US(histogram_mean(h)),
		"min_us", US(h->min), "max_us", US(h->max));
	char key[16];

	for (unsigned i = 0; out && i < PERCENTILES; i++) {
		snprintf(key, sizeof(key), "%s_us", percentiles[i].key);
		json_object_set_new(out, key, json_real(US(histogram_percentile(h, percentiles[i].percent))));
	}
	return out;
}

json_t *report_tally_json(const struct load_tally *rows, unsigned max)
{
	json_t *out = json_object();

	for (unsigned i = 0; i < max && rows[i].text[0]; i++)
		json_object_set_new(out, rows[i].text, json_integer((json_int_t)rows[i].count));
	return out;
}
