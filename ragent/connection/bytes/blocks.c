/* blocks.c: one kind of slabs for each size, which blocks of powers of two share. Each larger power of two has a free
 * list, whose links are in the free blocks.
 */
#include "ragent/connection/bytes/blocks.h"

#include <assert.h>
#include <stdlib.h>

#define FINE_MAX (FINE_STEP * FINE_STEPS)

_Static_assert(FINE_MAX + COARSE_STEP * COARSE_STEPS == FINE_BLOCK_MAX, "the coarse steps end there");

struct free_block {
	struct free_block *next;
};

static size_t block_size_of(unsigned i)
{
	return i < FINE_STEPS ? (i + 1) * FINE_STEP : FINE_MAX + (i + 1 - FINE_STEPS) * COARSE_STEP;
}

/* The number of the smallest size that has @len bytes, which are at most FINE_BLOCK_MAX. */
static unsigned block_size_for(size_t len)
{
	if (len > FINE_MAX)
		return FINE_STEPS + (unsigned)((len - FINE_MAX - 1) / COARSE_STEP);
	return len ? (unsigned)((len - 1) / FINE_STEP) : 0;
}

void blocks_init(struct blocks *b, struct slab_source *source)
{
	*b = (struct blocks){ 0 };
	for (unsigned i = 0; i < FINE_SIZES; i++)
		slabs_init_from(&b->of[i], block_size_of(i), source);
}

void blocks_clear(struct blocks *b)
{
	for (unsigned i = 0; i < FINE_SIZES; i++)
		slabs_clear(&b->of[i]);
	for (unsigned i = 0; i < BLOCK_SIZES; i++) {
		while (b->spare[i]) {
			struct free_block *first = b->spare[i];
			b->spare[i] = first->next;
			free(first);
		}
		b->spare_count[i] = 0;
	}
}

/* --- fine ones --- */

/* NULL: malloc's. */
static struct slabs *slabs_for(struct blocks *b, size_t len)
{
	return b && len <= FINE_BLOCK_MAX ? &b->of[block_size_for(len)] : NULL;
}

void *fine_block_take(struct blocks *b, size_t len)
{
	struct slabs *s = slabs_for(b, len);

	return s ? slabs_take(s) : malloc(len);
}

void fine_block_give(struct blocks *b, void *block, size_t len)
{
	struct slabs *s = slabs_for(b, len);

	if (s)
		slabs_give(s, block);
	else
		free(block);
}

size_t fine_block_len(size_t len)
{
	return len <= FINE_BLOCK_MAX ? block_size_of(block_size_for(len)) : len;
}

/* --- powers of two --- */

static unsigned power_for(size_t len)
{
	unsigned i = 0;

	while (BLOCK_SMALLEST << i < len)
		i++;
	return i;
}

void *block_take(struct blocks *b, size_t len, uint32_t *cap)
{
	if (len > BLOCK_LARGEST)
		return NULL;
	const unsigned i = power_for(len);
	*cap = BLOCK_SMALLEST << i;
	struct free_block *spare = b->spare[i];
	if (!spare)
		return fine_block_take(b, *cap);
	b->spare[i] = spare->next;
	b->spare_count[i]--;
	return spare;
}

void block_return(struct blocks *b, void *block, uint32_t cap)
{
	if (!block)
		return;
	const unsigned i = power_for(cap);
	assert(cap == BLOCK_SMALLEST << i);
	if (cap <= FINE_BLOCK_MAX || (b->spare_count[i] + 1) * cap > BLOCK_POOL_SPARED) {
		fine_block_give(b, block, cap);
		return;
	}
	struct free_block *spare = block;
	spare->next = b->spare[i];
	b->spare[i] = spare;
	b->spare_count[i]++;
}
