/* block_pool.h: a worker's memory for client records that are kept: blocks of a few sizes, which are reused. So in
 * the steady state a record costs no allocation, and an idle connection no memory. Not thread-safe.
 */
#ifndef CSSL_RAGENT_BLOCK_POOL_H
#define CSSL_RAGENT_BLOCK_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "net/slabs.h"

#define BLOCK_SMALLEST    1024u
#define BLOCK_SIZES       16u /* 1 KiB to 32 MiB, powers of two */
#define BLOCK_SIZES_SMALL 4u  /* the small ones, up to SLABS_BLOCK_MAX: many connections need one, each for a moment */
#define BLOCK_LARGEST     (BLOCK_SMALLEST << (BLOCK_SIZES - 1))
#define BLOCK_POOL_SPARED (1024u * 1024u) /* of each size, at most so many bytes wait for reuse */

struct free_block;

/* Embedded. Call block_pool_init() first. */
struct block_pool {
	struct slabs small[BLOCK_SIZES_SMALL];
	struct free_block *spare[BLOCK_SIZES];
	size_t spare_count[BLOCK_SIZES];
};

/* @source: of the slabs of the small blocks; NULL: the process. */
void block_pool_init(struct block_pool *p, struct slab_source *source);

/* Returns a block of at least @len bytes (at most BLOCK_LARGEST), with its size in *cap. NULL: too long or out of
 * memory. */
void *block_take(struct block_pool *p, size_t len, uint32_t *cap);
/* @cap: as block_take() returned it. @block may be NULL. */
void block_return(struct block_pool *p, void *block, uint32_t cap);
/* Free the blocks that wait for reuse. */
void block_pool_clear(struct block_pool *p);

#endif
