/* partials.h: the clients of a worker whose record is not whole yet, oldest record first. What they sent of it costs
 * memory that no window counts: together it has a budget, and each record a time limit. Pure: time is an argument.
 */
#ifndef CSSL_RAGENT_PARTIALS_H
#define CSSL_RAGENT_PARTIALS_H

#include <stddef.h>
#include <stdint.h>

#define PARTIALS_LIMIT_MS 30000u /* a maximal record at 5 kbit/s */

/* Embedded in the holder; zero: no partial record. */
struct partial {
	struct partial *next, **prev;
	uint64_t since_ms;
	uint32_t len;
};

/* Embedded; partials_init() before use. */
struct partials {
	struct partial *oldest, **newest; /* newest: where the next one goes */
	size_t len, budget;               /* of all */
};

void partials_init(struct partials *all, size_t budget);

/* @p's holder has @len bytes of a record that is not whole; 0: none. @begun: how the bytes came about. */
enum partial_record { PARTIAL_SAME_RECORD, PARTIAL_NEW_RECORD };
void partials_note(struct partials *all, struct partial *p, size_t len, enum partial_record record, uint64_t now_ms);

/* The holder that has to go: the oldest, when all are above the budget or it is above its time. NULL: nobody. */
struct partial *partials_victim(const struct partials *all, uint64_t now_ms);

#endif
