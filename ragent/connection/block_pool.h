/* block_pool.h: memory of a worker for client records that are kept: blocks of a few sizes, reused, so that a record in
 * the steady state costs no allocation and an idle connection no memory. Not thread-safe.
 */
#ifndef CSSL_RAGENT_BLOCK_POOL_H
#define CSSL_RAGENT_BLOCK_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "net/slabs.h"

#define BLOCK_SMALLEST    1024u
#define BLOCK_SIZES       16u /* 1 KiB to 32 MiB, powers of two */
#define BLOCK_SIZES_SMALL 4u  /* of them, up to SLABS_BLOCK_MAX, those that one of many connections has for a moment */
#define BLOCK_LARGEST     (BLOCK_SMALLEST << (BLOCK_SIZES - 1))
#define BLOCK_POOL_SPARED (1024u * 1024u) /* at most so many bytes of each size wait for reuse */

struct free_block;

/* Embedded; block_pool_init() before use. */
struct block_pool {
	struct slabs small[BLOCK_SIZES_SMALL];
	struct free_block *spare[BLOCK_SIZES];
	size_t spare_count[BLOCK_SIZES];
};

void block_pool_init(struct block_pool *p);

/* A block of at least @len bytes (at most BLOCK_LARGEST), its size in *cap. NULL: too long or out of memory. */
void *block_take(struct block_pool *p, size_t len, uint32_t *cap);
/* @cap as block_take() gave it; NULL is legal. */
void block_return(struct block_pool *p, void *block, uint32_t cap);
/* Free what waits for reuse. */
void block_pool_clear(struct block_pool *p);

#endif
