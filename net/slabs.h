/* slabs.h: blocks of one size, in slabs of pages. A slab goes back to the system when none of its blocks is in use. For
 * blocks that many holders need for a moment and few most of the time: malloc would keep freed ones as holes between
 * longer-lived blocks. Not thread-safe.
 */
#ifndef CSSL_NET_SLABS_H
#define CSSL_NET_SLABS_H

#include <stddef.h>

#define SLAB_LEN        (64u * 1024u)
#define SLABS_BLOCK_MAX (SLAB_LEN / 8u)
#define SLABS_SPARE     4u /* so many unused slabs are kept */

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

/* Take a block; its content is undefined. NULL: out of memory. */
void *slabs_take(struct slabs *s);
/* NULL is legal. */
void slabs_give(struct slabs *s, void *block);

/* Free everything; no block may be in use. */
void slabs_clear(struct slabs *s);

#endif
