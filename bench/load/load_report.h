/* load_report.h: a result for people and for programs. */
#ifndef CSSL_BENCH_LOAD_LOAD_REPORT_H
#define CSSL_BENCH_LOAD_LOAD_REPORT_H

#include "bench/load/load_options.h"
#include "bench/load/load_result.h"

/* How a generator process fared: by its own CPU, and by what it waited for a CPU. */
enum load_effort { LOAD_AT_EASE, LOAD_SATURATED, LOAD_STARVED };
enum load_effort load_effort_of(const struct load_result *r);

/* @sum of all the @processes @each. */
void load_report_text(const struct load_options *o, const struct load_result *sum, const struct load_result *each);
/* Standard error names the generators that had no rest. 0 or CSSL_E_NO_MEMORY. */
int load_report_json(const struct load_options *o, const struct load_result *sum, const struct load_result *each);

/* One line for a terminal that the next one replaces: what happened in the last second. */
void load_report_progress(const struct load_result *now, const struct load_result *before, double seconds);

#endif
