/* partials.h: a worker's clients that have sent a part of a record, the oldest record first. No window counts the
 * memory of these parts. So all together they have a budget, and each record has a time limit. Pure: time is an
 * argument.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define PARTIALS_LIMIT_MS 30000u /* a maximal record at 5 kbit/s */

/* Embedded in the holder; zero: no incomplete record. */
struct partial {
	TAILQ_ENTRY(partial) link;
	uint64_t since_ms;
	uint32_t len; /* 0: it is in no list */
};

/* Embedded. Call partials_init() first. */
struct partials {
	TAILQ_HEAD(, partial) by_age; /* the oldest first */
	size_t len, budget;           /* sum of all, and its limit */
};

void partials_init(struct partials *all, size_t budget);

/* @p's holder has @len bytes of an incomplete record; 0: none. @record: whether it is a new record. */
enum partial_record { PARTIAL_SAME_RECORD, PARTIAL_NEW_RECORD };
void partials_note(struct partials *all, struct partial *p, size_t len, enum partial_record record, uint64_t now_ms);

/* The holder that has to end: the oldest, if all together exceed the budget or its own time is over. NULL: none has
 * to. */
struct partial *partials_victim(const struct partials *all, uint64_t now_ms);
