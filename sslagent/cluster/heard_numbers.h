/* heard_numbers.h: which of the numbers 1, 2, 3... of one stream were heard and which are missing. Costs nothing while
 * none is missing. Its memory is bounded: with too many gaps, two neighbouring gaps become one, and the agent asks
 * again for the numbers between them. */
#ifndef CSSL_SSLAGENT_HEARD_NUMBERS_H
#define CSSL_SSLAGENT_HEARD_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#define MISSING_RUNS_MAX 512u

struct number_run {
	uint64_t first, last;
};

/* All zero: nothing heard, nothing missing. */
struct heard_numbers {
	uint64_t highest;           /* known to exist */
	struct number_run *missing; /* rising, never touching */
	uint32_t missing_count, missing_cap;
};

void heard_numbers_clear(struct heard_numbers *h);

#define HEARD_BEFORE 1

/* @number (not 0) is here. 0, or HEARD_BEFORE. *missed grows by the count of numbers newly known to be missing. */
int heard_numbers_take(struct heard_numbers *h, uint64_t number, uint64_t *missed);

/* Numbers up to @highest exist. Returns how many of them are new. */
uint64_t heard_numbers_extend(struct heard_numbers *h, uint64_t highest);

/* Numbers below @below will never come, or came another way. Returns how many of them were missing. */
uint64_t heard_numbers_give_up(struct heard_numbers *h, uint64_t below);

/* Every number up to this one was heard or given up. */
uint64_t heard_numbers_complete(const struct heard_numbers *h);

#endif
