/* holdings.h: who holds how many bytes of a budget, and who most: for memory that strangers can make a worker keep.
 * What is over the budget is for the caller to get back, from who holds most. Not thread-safe; no memory of its own.
 */
#ifndef CSSL_NET_HOLDINGS_H
#define CSSL_NET_HOLDINGS_H

#include <stddef.h>
#include <stdint.h>

#define HOLDINGS_ROWS 24u /* below 1 KiB, below 2 KiB, ... */

/* Embedded in the holder; zero: it holds nothing. */
struct holding {
	struct holding *next, **prev;
	uint32_t len;
	uint8_t row;
};

/* Embedded; holdings_init() before use. */
struct holdings {
	struct holdings_row {
		struct holding *first, **last; /* who came there first goes first */
	} rows[HOLDINGS_ROWS];
	uint64_t len, limit; /* of all; 0: no limit */
};

void holdings_init(struct holdings *all, uint64_t limit);

/* @h holds @len bytes from now on. */
void holdings_set(struct holdings *all, struct holding *h, size_t len);

/* More is held than there may be: one of those that hold most, within a factor of two. NULL: it is not so. */
struct holding *holdings_greatest(const struct holdings *all);

#endif
