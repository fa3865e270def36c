/* rates.h: how fast counters grow between two looks at them. */
#pragma once

#include <jansson.h>
#include <stdint.h>

/* Two answers of /v1/counters and the milliseconds between them. */
struct rates {
	const json_t *before, *after;
	uint64_t ms;
};

/* Per second; @agent NULL: of RAgent. 0 if an answer does not have the counter, or if it went back because the process
 * has restarted. */
double rate_of(const struct rates *r, const char *agent, const char *counter);
