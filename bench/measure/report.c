/* report.c: one table of percentiles feeds the lines and the JSON. */
#include "bench/measure/report.h"

#include <inttypes.h>
#include <stdio.h>

#include "proto/error.h"

#define US(ns) ((double)(ns) / 1e3)

static const struct {
	const char *key;
	double percent;
} percentiles[] = { { "p50", 50 }, { "p75", 75 }, { "p90", 90 }, { "p99", 99 }, { "p99.9", 99.9 } };

#define PERCENTILES (sizeof percentiles / sizeof percentiles[0])

double report_seconds(uint64_t begin_ns, uint64_t end_ns)
{
	return end_ns > begin_ns ? (double)(end_ns - begin_ns) / 1e9 : 0;
}

double report_rate(uint64_t n, double seconds)
{
	return seconds > 0 ? (double)n / seconds : 0;
}

void report_counts(const struct report_name *names, const uint64_t *counts, unsigned len)
{
	for (unsigned i = 0; i < len; i++) {
		if (counts[i] > 0)
			printf("%-18s %10" PRIu64 "  %s\n", names[i].key, counts[i], names[i].words);
	}
}

json_t *report_counts_json(const struct report_name *names, const uint64_t *counts, unsigned len)
{
	json_t *out = json_object();
	for (unsigned i = 0; i < len; i++)
		json_object_set_new(out, names[i].key, json_integer((json_int_t)counts[i]));
	return out;
}

static void print_latency(const char *name, const struct histogram *h)
{
	printf("%-18s %10" PRIu64 " %10.1f", name, h->count, US(histogram_mean(h)));
	for (unsigned i = 0; i < PERCENTILES; i++)
		printf(" %10.1f", US(histogram_percentile(h, percentiles[i].percent)));
	printf(" %10.1f\n", US(h->max));
}

void report_latencies(const struct report_name *names, const struct histogram *latencies, unsigned len)
{
	printf("\n%-18s %10s %10s", "latency, us", "count", "mean");
	for (unsigned i = 0; i < PERCENTILES; i++)
		printf(" %10s", percentiles[i].key);
	printf(" %10s\n", "max");
	for (unsigned i = 0; i < len; i++) {
		if (latencies[i].count > 0)
			print_latency(names[i].words, &latencies[i]);
	}
}

static json_t *latency_json(const struct histogram *h)
{
	json_t *out = json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)h->count, "mean_us", US(histogram_mean(h)),
		"min_us", US(h->min), "max_us", US(h->max));
	char key[16];

	for (unsigned i = 0; out && i < PERCENTILES; i++) {
		snprintf(key, sizeof key, "%s_us", percentiles[i].key);
		json_object_set_new(out, key, json_real(US(histogram_percentile(h, percentiles[i].percent))));
	}
	return out;
}

json_t *report_latencies_json(const struct report_name *names, const struct histogram *latencies, unsigned len)
{
	json_t *out = json_object();
	for (unsigned i = 0; i < len; i++) {
		if (latencies[i].count > 0)
			json_object_set_new(out, names[i].key, latency_json(&latencies[i]));
	}
	return out;
}

void report_tally(const char *title, const struct tally *rows, unsigned max)
{
	for (unsigned i = 0; i < max && rows[i].text[0]; i++)
		printf("%-18s %10" PRIu64 "  %s\n", i == 0 ? title : "", rows[i].count, rows[i].text);
}

json_t *report_tally_json(const struct tally *rows, unsigned max)
{
	json_t *out = json_object();
	for (unsigned i = 0; i < max && rows[i].text[0]; i++)
		json_object_set_new(out, rows[i].text, json_integer((json_int_t)rows[i].count));
	return out;
}

int report_print_json(json_t *report)
{
	if (!report)
		return CSSL_E_NO_MEMORY;
	json_dumpf(report, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
	putchar('\n');
	json_decref(report);
	return 0;
}
