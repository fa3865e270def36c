/* holdings.h: counts how many bytes each holder has of a budget, and finds one that has most. For memory that strangers
 * can make a worker keep. When the budget is exceeded, the caller takes memory from that holder. Not thread-safe;
 * allocates nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#define HOLDINGS_ROWS 24u /* below 1 KiB, below 2 KiB, ... */

/* Embedded in the holder. All zero: it has nothing. */
struct holding {
	TAILQ_ENTRY(holding) in;
	uint32_t len;
	uint8_t row;
};

/* Embedded; holdings_init() before use. */
struct holdings {
	TAILQ_HEAD(, holding) rows[HOLDINGS_ROWS]; /* in the order in which they came to this row */
	uint64_t len, limit;                       /* of all; 0: no limit */
};

void holdings_init(struct holdings *all, uint64_t limit);

/* From now on @h has @len bytes. */
void holdings_set(struct holdings *all, struct holding *h, size_t len);

/* If the budget is exceeded: a holder that has most, within a factor of two. Else NULL. */
struct holding *holdings_greatest(const struct holdings *all);
