/* processes.h: a load in several processes that begin together. Each counts in a result of its own, in memory that all
 * share, so a result is plain memory without pointers. The parent looks at the results, and adds them up at the end.
 */
#ifndef CSSL_BENCH_LOAD_PROCESSES_H
#define CSSL_BENCH_LOAD_PROCESSES_H

#include <stddef.h>

#define PROCESSES_MAX 64u

struct processes_work {
	unsigned count;     /* of processes */
	size_t result_size; /* bytes; a result is all zero at first */

	/* In process @index: the load, which counts in @result all the time. NULL: it has complained. */
	void *(*create)(void *ctx, unsigned index, void *result);
	/* Until its work is done, or SIGTERM or SIGINT comes. */
	void (*run)(void *load);
	void (*destroy)(void *load);

	/* In the parent, many times a second. @results may be a moment old. 1: the processes get SIGTERM. */
	int (*on_look)(void *ctx, const void *results);
	/* In the parent, when all have ended. Returns an exit status. */
	int (*on_end)(void *ctx, const void *results);
	void *ctx;
};

/* Returns an exit status: that of on_end(), or EXIT_FAILURE if a process failed. */
int processes_run(const struct processes_work *work);

#endif
