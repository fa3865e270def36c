/* report_parts.h: what the reports of all load generators are made of: latencies and tallies, for people and as JSON.
 */
#ifndef CSSL_BENCH_MEASURE_REPORT_PARTS_H
#define CSSL_BENCH_MEASURE_REPORT_PARTS_H

#include <jansson.h>

#include "bench/load/load_result.h"
#include "bench/measure/histogram.h"

/* Standard output: the line of column names, and a line each; an empty histogram has none. */
void report_histogram_head(void);
void report_histogram(const char *name, const struct histogram *h);
void report_tally(const char *title, const struct load_tally *rows, unsigned max);

/* New references; NULL: out of memory. */
json_t *report_histogram_json(const struct histogram *h);
json_t *report_tally_json(const struct load_tally *rows, unsigned max);

#endif
