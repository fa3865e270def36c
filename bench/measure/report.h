/* report.h: the parts of every command's report, each as lines on standard output and as JSON: counts, latencies and
 * tallies. The lines leave out what is zero.
 */
#pragma once

#include <jansson.h>

#include "bench/measure/histogram.h"
#include "bench/measure/tally.h"

/* How a count or a latency is called: the key in JSON, and the words for people. */
struct report_name {
	const char *key, *words;
};

/* From @begin_ns to @end_ns in seconds; 0 if it has not ended. */
double report_seconds(uint64_t begin_ns, uint64_t end_ns);
/* @n per second; 0 if no time has passed. */
double report_rate(uint64_t n, double seconds);

/* Lines on standard output. */
void report_counts(const struct report_name *names, const uint64_t *counts, unsigned len);
void report_latencies(const struct report_name *names, const struct histogram *latencies, unsigned len);
void report_tally(const char *title, const struct tally *rows, unsigned max);

/* JSON: new references, NULL if out of memory. jansson's setters take such a NULL and then fail. */
json_t *report_counts_json(const struct report_name *names, const uint64_t *counts, unsigned len);
json_t *report_latencies_json(const struct report_name *names, const struct histogram *latencies, unsigned len);
json_t *report_tally_json(const struct tally *rows, unsigned max);

/* One line on standard output; takes the reference of @report. 0, or CSSL_E_NO_MEMORY if @report is NULL. */
int report_print_json(json_t *report);
