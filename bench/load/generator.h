/* generator.h: one load generator process: its share of the clients and of the work, on one worker. */
#ifndef CSSL_BENCH_LOAD_GENERATOR_H
#define CSSL_BENCH_LOAD_GENERATOR_H

#include <stdint.h>

#include "bench/load/load_options.h"
#include "bench/load/load_result.h"

struct generator;

/* Process @index of @o->processes. Everything is counted in @result, as it happens. Complains on standard error: NULL.
 */
struct generator *generator_create(const struct load_options *o, unsigned index, struct load_result *result);

/* Until the work is done, or SIGTERM or SIGINT came. */
void generator_run(struct generator *g);
void generator_destroy(struct generator *g);

#endif
