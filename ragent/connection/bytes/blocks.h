/* blocks.h: a worker's memory for what it holds of connections. Fine blocks are for what stays long: sealed copies,
 * names, an agent's note. Their sizes differ by a few bytes, so that little is unused; those of the longer ones, which
 * are rare, by more. The others are for bytes that are kept, of a few sizes, and are reused: so in the steady state a
 * record costs no allocation, and an idle connection no memory. Blocks up to FINE_BLOCK_MAX are in slabs that may
 * outlive the process. Not thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "net/memory/slabs.h"

#define FINE_STEP      16u
#define FINE_STEPS     64u /* up to 1 KiB */
#define COARSE_STEP    512u
#define COARSE_STEPS   14u /* from there to FINE_BLOCK_MAX */
#define FINE_SIZES     (FINE_STEPS + COARSE_STEPS)
#define FINE_BLOCK_MAX SLABS_BLOCK_MAX

#define BLOCK_SMALLEST    1024u
#define BLOCK_SIZES       16u /* 1 KiB to 32 MiB, powers of two */
#define BLOCK_LARGEST     (BLOCK_SMALLEST << (BLOCK_SIZES - 1))
#define BLOCK_POOL_SPARED (1024u * 1024u) /* of each size beyond the slabs, at most so many bytes wait for reuse */

struct free_block;

/* Embedded; blocks_init() before use. */
struct blocks {
	struct slabs of[FINE_SIZES];
	struct free_block *spare[BLOCK_SIZES];
	size_t spare_count[BLOCK_SIZES];
};

/* @source: of the slabs; NULL: the process. */
void blocks_init(struct blocks *b, struct slab_source *source);
/* No block may be in use. */
void blocks_clear(struct blocks *b);

/* At least @len bytes, not cleared; above FINE_BLOCK_MAX, or where @b is NULL, from malloc. NULL: out of memory. */
void *fine_block_take(struct blocks *b, size_t len);
/* @len as it was taken; NULL is legal for @block, too. */
void fine_block_give(struct blocks *b, void *block, size_t len);
/* Bytes of the block that is taken for @len. */
size_t fine_block_len(size_t len);

/* Returns a block of at least @len bytes (at most BLOCK_LARGEST), with its size in *cap. NULL: too long or out of
 * memory. */
void *block_take(struct blocks *b, size_t len, uint32_t *cap);
/* @cap: as block_take() returned it. @block may be NULL. */
void block_return(struct blocks *b, void *block, uint32_t cap);
