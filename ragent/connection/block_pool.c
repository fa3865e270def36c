/* block_pool.c: slabs for the small blocks. Each larger size has a free list, whose links are in the free blocks. */
#include "ragent/connection/block_pool.h"

#include <assert.h>
#include <stdlib.h>

struct free_block {
	struct free_block *next;
};

static unsigned size_index(size_t len)
{
	unsigned i = 0;

	while (BLOCK_SMALLEST << i < len)
		i++;
	return i;
}

void block_pool_init(struct block_pool *p, struct slab_source *source)
{
	static_assert(BLOCK_SMALLEST << (BLOCK_SIZES_SMALL - 1) == SLABS_BLOCK_MAX, "the largest that a slab has");
	*p = (struct block_pool){ 0 };
	for (unsigned i = 0; i < BLOCK_SIZES_SMALL; i++)
		slabs_init_from(&p->small[i], BLOCK_SMALLEST << i, source);
}

void *block_take(struct block_pool *p, size_t len, uint32_t *cap)
{
	if (len > BLOCK_LARGEST)
		return NULL;
	unsigned i = size_index(len);
	*cap = BLOCK_SMALLEST << i;
	if (i < BLOCK_SIZES_SMALL)
		return slabs_take(&p->small[i]);
	struct free_block *b = p->spare[i];
	if (!b)
		return malloc(*cap);
	p->spare[i] = b->next;
	p->spare_count[i]--;
	return b;
}

void block_return(struct block_pool *p, void *block, uint32_t cap)
{
	if (!block)
		return;
	unsigned i = size_index(cap);
	assert(cap == BLOCK_SMALLEST << i);
	if (i < BLOCK_SIZES_SMALL) {
		slabs_give(&p->small[i], block);
		return;
	}
	if ((p->spare_count[i] + 1) * cap > BLOCK_POOL_SPARED) {
		free(block);
		return;
	}
	struct free_block *b = block;
	b->next = p->spare[i];
	p->spare[i] = b;
	p->spare_count[i]++;
}

void block_pool_clear(struct block_pool *p)
{
	for (unsigned i = 0; i < BLOCK_SIZES_SMALL; i++)
		slabs_clear(&p->small[i]);
	for (unsigned i = 0; i < BLOCK_SIZES; i++) {
		while (p->spare[i]) {
			struct free_block *b = p->spare[i];
			p->spare[i] = b->next;
			free(b);
		}
		p->spare_count[i] = 0;
	}
}
