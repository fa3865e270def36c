/* fine_blocks.h: a worker's memory for the parts that a connection has during its whole life: its sealed copy and
 * its names. The block sizes differ by a few bytes, so that little is unused. The blocks are in slabs that may
 * outlive the process. Longer ones come from malloc. Not thread-safe.
 */
#ifndef CSSL_RAGENT_FINE_BLOCKS_H
#define CSSL_RAGENT_FINE_BLOCKS_H

#include <stddef.h>

#include "net/slabs.h"

#define FINE_STEP  16u
#define FINE_STEPS 64u /* the largest has 1 KiB */

/* Embedded; fine_blocks_init() before use. */
struct fine_blocks {
	struct slabs of[FINE_STEPS];
};

/* @source: of the slabs; NULL: the process. */
void fine_blocks_init(struct fine_blocks *b, struct slab_source *source);
/* At least @len bytes, not cleared. Where @b is NULL, from malloc. NULL: out of memory. */
void *fine_block_take(struct fine_blocks *b, size_t len);
/* @len as it was taken; NULL is legal for @block, too. */
void fine_block_give(struct fine_blocks *b, void *block, size_t len);
/* No block may be in use. */
void fine_blocks_clear(struct fine_blocks *b);

#endif
