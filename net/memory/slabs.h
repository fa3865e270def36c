/* slabs.h: blocks of one size, in slabs of pages. A slab goes back to the system when none of its blocks is in use. For
 * blocks that many holders need for a moment and few most of the time: malloc would keep freed ones as holes between
 * longer-lived blocks. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <sys/queue.h>

#define SLAB_LEN        (64u * 1024u)
#define SLABS_BLOCK_MAX (SLAB_LEN / 8u)
#define SLABS_SPARE     4u /* so many unused slabs are kept; of secrets one */

struct slab;

/* Where slabs come from when they are not pages of the process alone. Embedded in its owner. */
struct slab_source {
	/* SLAB_LEN bytes of zeros at a multiple of SLAB_LEN. NULL: none is left; then the slab is pages of the process.
	 */
	void *(*take)(struct slab_source *source);
	/* 1: @slab was its own; 0: it was not, and nothing happened. */
	int (*give)(struct slab_source *source, void *slab);
};

/* Embedded; slabs_init() before use. */
struct slabs {
	struct slab_source *source; /* NULL: the process */
	enum { SLABS_PLAIN, SLABS_SECRET } kind;
	LIST_HEAD(, slab) with_room, unused; /* used, but not full; unused */
	size_t block_len;
	unsigned capacity; /* blocks of a slab */
	unsigned unused_count;
};

/* @block_len: at most SLABS_BLOCK_MAX. */
void slabs_init(struct slabs *s, size_t block_len);
/* The same with slabs of @source, which outlives them. */
void slabs_init_from(struct slabs *s, size_t block_len, struct slab_source *source);

/* For key material (net/memory/secret.h): blocks are zeroed when taken, and wiped when given back. */
void slabs_init_secret(struct slabs *s, size_t block_len);

/* Take a block; its content is undefined. NULL: out of memory. */
void *slabs_take(struct slabs *s);
/* NULL is legal. */
void slabs_give(struct slabs *s, void *block);

/* Free everything; no block may be in use. */
void slabs_clear(struct slabs *s);

/* Block number @i of a slab that another process made for blocks of @block_len, and whose memory this one has, too.
 * NULL: @i is beyond those that were ever in use. */
void *slab_block(void *slab, size_t block_len, unsigned i);
