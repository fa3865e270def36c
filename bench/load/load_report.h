/* load_report.h: a result for people and for programs. */
#ifndef CSSL_BENCH_LOAD_LOAD_REPORT_H
#define CSSL_BENCH_LOAD_LOAD_REPORT_H

#include <jansson.h>

#include "bench/load/load_result.h"

/* Whether a generator process had enough CPU. */
enum load_effort { LOAD_AT_EASE, LOAD_SATURATED, LOAD_STARVED };
enum load_effort load_effort_of(const struct load_result *r);

/* @sum of all @count @each. */
void load_report_text(const struct load_result *sum, const struct load_result *each, unsigned count);
/* Also names busy generators on standard error. 0 or CSSL_E_NO_MEMORY. */
int load_report_json(const struct load_result *sum, const struct load_result *each, unsigned count);
/* Reads what load_report_json() wrote. @out is all zero before. 0, or CSSL_E_RANGE: it is something else. */
int load_report_read(const json_t *from, struct load_result *out);

/* One line for a terminal about the last second; the next one replaces it. */
void load_report_progress(const struct load_result *now, const struct load_result *before, double seconds);

#endif
