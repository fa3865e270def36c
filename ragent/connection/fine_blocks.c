/* fine_blocks.c: one kind of slabs for each size. */
#include "ragent/connection/fine_blocks.h"

#include <stdlib.h>

#define FINE_MAX (FINE_STEP * FINE_STEPS)

_Static_assert(FINE_MAX + COARSE_STEP * COARSE_STEPS == FINE_BLOCK_MAX, "the coarse steps end there");

static size_t size_of(unsigned i)
{
	return i < FINE_STEPS ? (i + 1) * FINE_STEP : FINE_MAX + (i + 1 - FINE_STEPS) * COARSE_STEP;
}

/* The number of the smallest size that has @len bytes, which are at most FINE_BLOCK_MAX. */
static unsigned size_for(size_t len)
{
	if (len > FINE_MAX)
		return FINE_STEPS + (unsigned)((len - FINE_MAX - 1) / COARSE_STEP);
	return len ? (unsigned)((len - 1) / FINE_STEP) : 0;
}

void fine_blocks_init(struct fine_blocks *b, struct slab_source *source)
{
	for (unsigned i = 0; i < FINE_SIZES; i++)
		slabs_init_from(&b->of[i], size_of(i), source);
}

/* NULL: malloc's. */
static struct slabs *slabs_for(struct fine_blocks *b, size_t len)
{
	return b && len <= FINE_BLOCK_MAX ? &b->of[size_for(len)] : NULL;
}

void *fine_block_take(struct fine_blocks *b, size_t len)
{
	struct slabs *s = slabs_for(b, len);

	return s ? slabs_take(s) : malloc(len);
}

void fine_block_give(struct fine_blocks *b, void *block, size_t len)
{
	struct slabs *s = slabs_for(b, len);

	if (s)
		slabs_give(s, block);
	else
		free(block);
}

void fine_blocks_clear(struct fine_blocks *b)
{
	for (unsigned i = 0; i < FINE_SIZES; i++)
		slabs_clear(&b->of[i]);
}

size_t fine_block_len(size_t len)
{
	return len <= FINE_BLOCK_MAX ? size_of(size_for(len)) : len;
}
