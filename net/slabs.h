/* slabs.h: blocks of one size, in slabs of pages that go back to the system once no block of them is in use: for what
 * many holders have for a moment and few have most of the time. Freed one by one among what stays, malloc would keep
 * them as holes. Not thread-safe.
 */
#ifndef CSSL_NET_SLABS_H
#define CSSL_NET_SLABS_H

#include <stddef.h>

#define SLAB_LEN        (64u * 1024u)
#define SLABS_BLOCK_MAX (SLAB_LEN / 8u)
#define SLABS_SPARE     4u /* so many slabs without a block in use wait for the next */

struct slab;

/* Embedded; slabs_init() before use. */
struct slabs {
	struct slab *with_room; /* used, but not full */
	struct slab *unused;
	size_t block_len;
	unsigned capacity; /* blocks of a slab */
	unsigned unused_count;
};

/* @block_len: at most SLABS_BLOCK_MAX. */
void slabs_init(struct slabs *s, size_t block_len);

/* A block, of whatever content. NULL: out of memory. */
void *slabs_take(struct slabs *s);
/* NULL is legal. */
void slabs_give(struct slabs *s, void *block);

/* No block is in use any more: free everything. */
void slabs_clear(struct slabs *s);

#endif
