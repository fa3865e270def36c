/* control_metrics.h: the state and the counters of the cluster for Prometheus (text format 0.0.4). Each counter is a
 * family, and its samples have the process as label. All come from the same tables as the API and the manual. It is a
 * part of its own because this text is a format of another project: only here it is known.
 */
#pragma once

#include "ragent/control/operations/operations.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct counted {
	struct counter_row row;
	uint64_t value;
};

/* Counters of one process. @agent NULL: RAgent's own. @error: the reason when there are none ("no answer in 2 s").
 * @seen: RAgent's counters of that agent. */
struct counter_set {
	const char *agent, *error;
	const struct counted *at;
	size_t count;
	const struct counted *seen;
	size_t seen_count;
	Cssl__LinkResponse__Counters__Certificate *const *certificates; /* that the agent has loaded */
	size_t certificate_count;
};

/* RAgent's own set is the first. The caller frees the text; NULL: out of memory. */
char *metrics_text(const struct operations *o, const struct counter_set *sets, size_t count);
