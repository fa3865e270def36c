/* generator.h: one load generator process: its share of the clients and of the work, on one worker. */
#ifndef CSSL_BENCH_LOAD_GENERATOR_H
#define CSSL_BENCH_LOAD_GENERATOR_H

#include <stdint.h>

#include "bench/load/load_options.h"
#include "bench/load/load_result.h"

struct generator;

/* Process @index of @o->processes. It counts in @result all the time. NULL: it has complained on standard error.
 */
struct generator *generator_create(const struct load_options *o, unsigned index, struct load_result *result);

/* Run until the work is done, or SIGTERM or SIGINT comes. */
void generator_run(struct generator *g);
void generator_destroy(struct generator *g);

#endif
