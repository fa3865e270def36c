/* load_report.h: a result for people and for programs. */
#ifndef CSSL_BENCH_LOAD_LOAD_REPORT_H
#define CSSL_BENCH_LOAD_LOAD_REPORT_H

#include "bench/load/load_result.h"

/* Whether a generator process had enough CPU. */
enum load_effort { LOAD_AT_EASE, LOAD_SATURATED, LOAD_STARVED };
enum load_effort load_effort_of(const struct load_result *r);

extern const struct result_kind load_result_kind;

#endif
