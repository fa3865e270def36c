/* result.h: what a load has counted: plain memory without pointers, all zero at first, so that processes share it and a
 * file has it as it is. Results of one kind can be added up: those of processes, and those that hosts have saved.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Each result begins with these, in nanoseconds: the start, and the last counted event; 0: there was none. Of a running
 * load by uv_hrtime(), in a file by the wall clock. */
struct result_times {
	uint64_t begin_ns, end_ns;
};

enum result_output { RESULT_TEXT, RESULT_JSON };

struct result_kind {
	const char *command; /* that counts so */
	size_t size;         /* bytes */
	/* All but the times. @result may be a stranger's: numbers, and texts that need not end. */
	void (*add)(void *sum, const void *result);
	/* @sum of all @count @each, on standard output. Returns an exit status: did something fail in the load? */
	int (*report)(const void *sum, const void *each, unsigned count, unsigned output);
	/* A line on standard error; @before: @sum as it was @seconds ago. */
	void (*progress)(const void *sum, const void *before, double seconds);
};

void result_add(const struct result_kind *kind, void *sum, const void *result);

/* One line with version and kind, and the result; changes its times, and closes @file. 0, or CSSL_E_SYSTEM: errno. */
int result_save(FILE *file, const struct result_kind *kind, void *result);

/* 0, or CSSL_E_SYSTEM: errno; if that is 0, another version or kind saved the file, or it is not whole. */
int result_read(const char *path, const struct result_kind *kind, void *out);
