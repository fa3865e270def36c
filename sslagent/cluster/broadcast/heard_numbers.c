/* heard_numbers.c: a sorted array of runs of missing numbers. */
#include "sslagent/cluster/broadcast/heard_numbers.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "net/memory/array.h"

static void numbers_remove_runs(struct heard_numbers *h, uint32_t at, uint32_t count)
{
	if (count == 0) /* there may be no array at all */
		return;
	memmove(h->missing + at, h->missing + at + count, (h->missing_count - at - count) * sizeof *h->missing);
	h->missing_count -= count;
}

/* Room for one more run. If there is none, the first two runs become one: a sender forgets the oldest numbers first. */
static void numbers_make_room(struct heard_numbers *h)
{
	bool is_full = h->missing_count == MISSING_RUNS_MAX;

	if (!is_full)
		is_full = array_make_room(&h->missing, &h->missing_cap, h->missing_count, sizeof *h->missing) != 0;
	if (!is_full || h->missing_count < 2)
		return;
	h->missing[1].first = h->missing[0].first;
	numbers_remove_runs(h, 0, 1);
}

uint64_t heard_numbers_extend(struct heard_numbers *h, uint64_t highest)
{
	uint64_t fresh = highest > h->highest ? highest - h->highest : 0;

	if (fresh == 0)
		return 0;
	if (h->missing_count > 0 && h->missing[h->missing_count - 1].last == h->highest) {
		h->missing[h->missing_count - 1].last = highest;
	} else {
		numbers_make_room(h);
		if (h->missing_count < h->missing_cap)
			h->missing[h->missing_count++] = (struct number_run){ h->highest + 1, highest };
		/* else: no memory for even one gap; this agent misses those objects until a pull asks for one */
	}
	h->highest = highest;
	return fresh;
}

/* Index of the first run that ends at or behind @number; missing_count: none. */
static uint32_t numbers_run_from(const struct heard_numbers *h, uint64_t number)
{
	uint32_t low = 0, high = h->missing_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (h->missing[middle].last < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Cut the run at @at in two around @number, which lies inside it. Without room it stays whole and is asked for again.
 */
static void numbers_split(struct heard_numbers *h, uint32_t at, uint64_t number)
{
	struct number_run rest = { number + 1, h->missing[at].last };
	uint32_t before = h->missing_count;

	numbers_make_room(h);
	if (h->missing_count == h->missing_cap || (h->missing_count < before && at == 0))
		return;
	at -= before - h->missing_count;
	memmove(h->missing + at + 2, h->missing + at + 1, (h->missing_count - at - 1) * sizeof rest);
	h->missing[at].last = number - 1;
	h->missing[at + 1] = rest;
	h->missing_count++;
}

/* Take @number out of the run at @at, which contains it. */
static void numbers_fill(struct heard_numbers *h, uint32_t at, uint64_t number)
{
	struct number_run *run = &h->missing[at];

	if (run->first == run->last)
		numbers_remove_runs(h, at, 1);
	else if (number == run->first)
		run->first++;
	else if (number == run->last)
		run->last--;
	else
		numbers_split(h, at, number);
}

int heard_numbers_take(struct heard_numbers *h, uint64_t number, uint64_t *missed)
{
	uint32_t at;

	assert(number > 0);
	if (number > h->highest) {
		*missed += heard_numbers_extend(h, number - 1);
		h->highest = number;
		return 0;
	}
	at = numbers_run_from(h, number);
	if (at == h->missing_count || h->missing[at].first > number)
		return HEARD_BEFORE;
	numbers_fill(h, at, number);
	return 0;
}

uint64_t heard_numbers_give_up(struct heard_numbers *h, uint64_t below)
{
	uint64_t given_up = 0;
	uint32_t whole = 0;

	while (whole < h->missing_count && h->missing[whole].last < below) {
		given_up += h->missing[whole].last - h->missing[whole].first + 1;
		whole++;
	}
	numbers_remove_runs(h, 0, whole);
	if (h->missing_count > 0 && h->missing[0].first < below) {
		given_up += below - h->missing[0].first;
		h->missing[0].first = below;
	}
	if (below > 0 && below - 1 > h->highest)
		h->highest = below - 1;
	return given_up;
}
