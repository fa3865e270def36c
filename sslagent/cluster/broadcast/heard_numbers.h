/* heard_numbers.h: which of the numbers 1, 2, 3... of one stream were heard, and which are missing. It is a part of its
 * own because its memory is bounded whatever a sender does, and a test shows that alone.
 *
 * Numbers cost nothing while none is missing. With too many gaps, two neighbouring gaps become one, and the agent asks
 * again for the numbers between them. The receiver owns one for each thread of each sender. It reads the members. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MISSING_RUNS_MAX 512u

struct number_run {
	uint64_t first, last;
};

/* All zero: nothing heard, nothing missing. */
struct heard_numbers {
	uint64_t highest;           /* known to exist */
	struct number_run *missing; /* rising, never touching; the owner of this frees it */
	uint32_t missing_count;
	size_t missing_cap;
};

#define HEARD_BEFORE 1

/* @number (not 0) is here. 0, or HEARD_BEFORE. *missed grows by the count of numbers newly known to be missing. */
int heard_numbers_take(struct heard_numbers *h, uint64_t number, uint64_t *missed);

/* Numbers up to @highest exist. Returns how many of them are new. */
uint64_t heard_numbers_extend(struct heard_numbers *h, uint64_t highest);

/* Numbers below @below will never come, or came another way. Returns how many of them were missing. */
uint64_t heard_numbers_give_up(struct heard_numbers *h, uint64_t below);

/* Every number up to this one was heard or given up. */
static inline uint64_t heard_numbers_complete(const struct heard_numbers *h)
{
	return h->missing_count > 0 ? h->missing[0].first - 1 : h->highest;
}
