/* exact.h: reads results again that were written as JSON, without loss, so that those of several hosts can be added up.
 * What report.h writes has counts and tallies; percentiles cannot be added, so histograms are written once more, here.
 */
#ifndef CSSL_BENCH_MEASURE_EXACT_H
#define CSSL_BENCH_MEASURE_EXACT_H

#include "bench/measure/report.h"

/* From CLOCK_MONOTONIC to the wall clock, in nanoseconds: results of hosts have no other clock in common. */
uint64_t exact_epoch_ns(void);
/* @at by the wall clock, for "I" of json_pack(); 0 stays 0. */
json_int_t exact_wall_ns(uint64_t epoch_ns, uint64_t at_ns);

/* {key: {"sum_ns", "min_ns", "max_ns", "values": "nanoseconds:how often ..."}}, without empty ones. A new reference,
 * or NULL. */
json_t *exact_histograms_json(const struct report_name *names, const struct histogram *all, unsigned len);

/* Each of these reads a member of @from. 0; CSSL_E_RANGE: it is not there, or is not what was written. */
int exact_number(const json_t *from, const char *key, uint64_t *out);
int exact_histograms(
	const json_t *from, const char *key, const struct report_name *names, struct histogram *all, unsigned len);
int exact_counts(const json_t *from, const char *key, const struct report_name *names, uint64_t *counts, unsigned len);
int exact_tally(const json_t *from, const char *key, struct tally *rows, unsigned max);

#endif
