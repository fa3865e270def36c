/* slabs.c: a slab is aligned to its length, so a block's address gives its slab. New blocks come from a slab in use,
 * if one has room, so that blocks gather in few slabs.
 *
 * Under sanitizers every block comes from malloc, so that they notice a use after it was given back. Where the slabs
 * have a source, they are told which blocks are in use.
 */
#include "net/slabs.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef CSSL_SANITIZED
#include <sanitizer/asan_interface.h>
#define SLABS_BY_MALLOC 1
#else
#define SLABS_BY_MALLOC                         0
#define ASAN_POISON_MEMORY_REGION(block, len)   ((void)(block), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(block, len) ((void)(block), (void)(len))
#endif

struct free_block {
	struct free_block *next;
};

struct slab {
	struct slab *next, **prev; /* in the list of slabs with a free block; prev NULL: in no list, it is full */
	struct free_block *free;
	unsigned used, cut; /* blocks in use; blocks that were ever cut from its fresh pages, in use or free */
};

#define ALIGNMENT _Alignof(max_align_t)
#define HEAD_LEN  ((sizeof(struct slab) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)

static size_t aligned(size_t block_len)
{
	return (block_len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static unsigned capacity_for(size_t block_len)
{
	return (unsigned)((SLAB_LEN - HEAD_LEN) / aligned(block_len));
}

static void *block_at(struct slab *b, size_t block_len, unsigned i)
{
	return (uint8_t *)b + HEAD_LEN + aligned(block_len) * i;
}

void slabs_init_from(struct slabs *s, size_t block_len, struct slab_source *source)
{
	assert(block_len > 0 && block_len <= SLABS_BLOCK_MAX);
	*s = (struct slabs){ .source = source, .block_len = aligned(block_len), .capacity = capacity_for(block_len) };
}

void slabs_init(struct slabs *s, size_t block_len)
{
	slabs_init_from(s, block_len, NULL);
}

static struct slab *slab_of(const void *block)
{
	return (struct slab *)((uintptr_t)block & ~(uintptr_t)(SLAB_LEN - 1));
}

static void leave(struct slab *b)
{
	*b->prev = b->next;
	if (b->next)
		b->next->prev = b->prev;
	b->next = NULL;
	b->prev = NULL;
}

static void enter(struct slab **place, struct slab *b)
{
	b->next = *place;
	b->prev = place;
	if (b->next)
		b->next->prev = &b->next;
	*place = b;
}

/* Map pages at a multiple of their length: map twice as many, and unmap those before and after. */
static struct slab *map_slab(void)
{
	uint8_t *all = mmap(NULL, 2 * SLAB_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return NULL;
	size_t before = SLAB_LEN - ((uintptr_t)all & (SLAB_LEN - 1));
	munmap(all, before);
	if (before < SLAB_LEN)
		munmap(all + before + SLAB_LEN, SLAB_LEN - before);
	return (struct slab *)(all + before);
}

static struct slab *new_slab(struct slabs *s)
{
	struct slab *b = s->source ? s->source->take(s->source) : NULL;

	return b ? b : map_slab();
}

static void drop_slab(struct slabs *s, struct slab *b)
{
	if (s->source)
		ASAN_UNPOISON_MEMORY_REGION(b, SLAB_LEN);
	if (!s->source || !s->source->give(s->source, b))
		munmap(b, SLAB_LEN);
}

static struct slab *slab_with_room(struct slabs *s)
{
	if (s->with_room)
		return s->with_room;
	struct slab *b = s->unused;
	if (b) {
		leave(b);
		s->unused_count--;
	} else if ((b = new_slab(s)) == NULL) {
		return NULL;
	}
	enter(&s->with_room, b);
	return b;
}

void *slabs_take(struct slabs *s)
{
	if (SLABS_BY_MALLOC && !s->source)
		return malloc(s->block_len);
	struct slab *b = slab_with_room(s);
	if (!b)
		return NULL;
	struct free_block *block = b->free ? b->free : block_at(b, s->block_len, b->cut++);
	ASAN_UNPOISON_MEMORY_REGION(block, s->block_len);
	if (b->free) {
		b->free = block->next;
		__builtin_prefetch(b->free, 1); /* the next one has often left the cache */
	}
	if (++b->used == s->capacity)
		leave(b);
	return block;
}

void slabs_give(struct slabs *s, void *block)
{
	if (!block || (SLABS_BY_MALLOC && !s->source)) {
		free(block);
		return;
	}
	struct slab *b = slab_of(block);
	struct free_block *freed = block;
	freed->next = b->free;
	b->free = freed;
	ASAN_POISON_MEMORY_REGION(block, s->block_len);
	if (!b->prev)
		enter(&s->with_room, b);
	if (--b->used > 0)
		return;
	leave(b);
	if (s->unused_count == SLABS_SPARE) {
		drop_slab(s, b);
		return;
	}
	enter(&s->unused, b);
	s->unused_count++;
}

void slabs_clear(struct slabs *s)
{
	assert(!s->with_room);
	while (s->unused) {
		struct slab *b = s->unused;
		leave(b);
		drop_slab(s, b);
	}
	s->unused_count = 0;
}

void *slab_block(void *slab, size_t block_len, unsigned i)
{
	struct slab *b = slab;

	return i < b->cut && i < capacity_for(block_len) ? block_at(b, block_len, i) : NULL;
}
