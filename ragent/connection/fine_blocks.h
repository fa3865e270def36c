/* fine_blocks.h: a worker's memory for what it holds of a connection for long: sealed copies, names, an agent's note.
 * The block sizes differ by a few bytes, so that little is unused; those of the longer ones, which are rare, by more.
 * The blocks are in slabs that may outlive the process. Blocks above FINE_BLOCK_MAX come from malloc. Not thread-safe.
 */
#ifndef CSSL_RAGENT_FINE_BLOCKS_H
#define CSSL_RAGENT_FINE_BLOCKS_H

#include <stddef.h>

#include "net/slabs.h"

#define FINE_STEP      16u
#define FINE_STEPS     64u /* up to 1 KiB */
#define COARSE_STEP    512u
#define COARSE_STEPS   14u /* from there to FINE_BLOCK_MAX */
#define FINE_SIZES     (FINE_STEPS + COARSE_STEPS)
#define FINE_BLOCK_MAX SLABS_BLOCK_MAX

/* Embedded; fine_blocks_init() before use. */
struct fine_blocks {
	struct slabs of[FINE_SIZES];
};

/* @source: of the slabs; NULL: the process. */
void fine_blocks_init(struct fine_blocks *b, struct slab_source *source);
/* At least @len bytes, not cleared. Where @b is NULL, from malloc. NULL: out of memory. */
void *fine_block_take(struct fine_blocks *b, size_t len);
/* @len as it was taken; NULL is legal for @block, too. */
void fine_block_give(struct fine_blocks *b, void *block, size_t len);
/* No block may be in use. */
void fine_blocks_clear(struct fine_blocks *b);

/* Bytes of the block that is taken for @len. */
size_t fine_block_len(size_t len);

#endif
