/* fine_blocks.c: one kind of slabs for each step. */
#include "ragent/connection/fine_blocks.h"

#include <stdlib.h>

void fine_blocks_init(struct fine_blocks *b, struct slab_source *source)
{
	for (unsigned i = 0; i < FINE_STEPS; i++)
		slabs_init_from(&b->of[i], (i + 1) * FINE_STEP, source);
}

/* NULL: malloc's. */
static struct slabs *slabs_for(struct fine_blocks *b, size_t len)
{
	const size_t step = len ? (len - 1) / FINE_STEP : 0;

	return b && step < FINE_STEPS ? &b->of[step] : NULL;
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
	for (unsigned i = 0; i < FINE_STEPS; i++)
		slabs_clear(&b->of[i]);
}
