/* processes.h: a load in several processes that begin together. Each counts in a result of its own, in memory that all
 * share. The parent shows progress, adds the results up at the end, reports the sum and saves it.
 */
#pragma once

#include "bench/measure/result.h"

#define PROCESSES_MAX 64u

struct processes_work {
	const struct result_kind *kind;
	const void *options; /* of the load */
	unsigned count;      /* of processes */
	/* All that process @index does; it counts in @result all the time, and does not begin before processes_stand().
	 * Returns an exit status. If that is not 0, the other processes get SIGTERM. */
	int (*run)(const void *options, unsigned index, void *result);
	/* In the parent, many times a second; results may be a moment old. NULL: one process alone is the parent
	 * itself. */
	void (*look)(const void *options, const void *results);
	const char *save; /* a file for the sum, or NULL */
	unsigned output;  /* enum result_output */
	int shows_progress;
};

/* Returns an exit status. */
int processes_run(const struct processes_work *work);

/* A process is ready: it stands here until all are. Not if it is the parent itself. */
void processes_stand(void);
