/* slabs.c: a slab is aligned to its length, so a block's address gives its slab. New blocks come from a slab in use,
 * if one has room, so that blocks gather in few slabs.
 *
 * Under sanitizers every block comes from malloc, so that they notice a use after it was given back. Where the slabs
 * have a source or are secret, they are told which blocks are in use.
 */
#include "net/memory/slabs.h"

#include <assert.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "net/memory/secret.h"

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
	LIST_ENTRY(slab) in; /* the list of slabs with a free block; prev NULL: in no list, it is full */
	struct free_block *free;
	uint16_t used, cut; /* blocks in use; blocks that were ever cut from its fresh pages, in use or free */
	uint32_t locked;    /* bytes of a secret one */
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

void slabs_init_secret(struct slabs *s, size_t block_len)
{
	slabs_init(s, block_len);
	s->kind = SLABS_SECRET;
}

static bool by_malloc(const struct slabs *s)
{
	return SLABS_BY_MALLOC && !s->source && s->kind == SLABS_PLAIN;
}

static struct slab *slab_of(const void *block)
{
	return (struct slab *)((uintptr_t)block & ~(uintptr_t)(SLAB_LEN - 1));
}

static void slab_leave(struct slab *b)
{
	LIST_REMOVE(b, in);
	b->in.le_prev = NULL;
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

	if (!b)
		b = map_slab();
	if (b && s->kind == SLABS_SECRET)
		b->locked = (uint32_t)secret_protect(b, SLAB_LEN);
	return b;
}

static void drop_slab(struct slabs *s, struct slab *b)
{
	ASAN_UNPOISON_MEMORY_REGION(b, SLAB_LEN);
	if (s->kind == SLABS_SECRET)
		secret_unlock(SLAB_LEN, b->locked);
	if (!s->source || !s->source->give(s->source, b))
		munmap(b, SLAB_LEN);
}

static struct slab *slab_with_room(struct slabs *s)
{
	struct slab *b = LIST_FIRST(&s->with_room);

	if (b)
		return b;
	b = LIST_FIRST(&s->unused);
	if (b) {
		slab_leave(b);
		s->unused_count--;
	} else if ((b = new_slab(s)) == NULL) {
		return NULL;
	}
	LIST_INSERT_HEAD(&s->with_room, b, in);
	return b;
}

void *slabs_take(struct slabs *s)
{
	if (by_malloc(s))
		return malloc(s->block_len);
	struct slab *b = slab_with_room(s);
	if (!b)
		return NULL;
	struct free_block *block = b->free ? b->free : block_at(b, s->block_len, b->cut++);
	ASAN_UNPOISON_MEMORY_REGION(block, s->block_len);
	if (b->free) {
		b->free = block->next;
		block->next = NULL;             /* all other bytes of a secret block are zero */
		__builtin_prefetch(b->free, 1); /* the next one has often left the cache */
	}
	if (++b->used == s->capacity)
		slab_leave(b);
	return block;
}

void slabs_give(struct slabs *s, void *block)
{
	if (!block || by_malloc(s)) {
		free(block);
		return;
	}
	struct slab *b = slab_of(block);
	struct free_block *freed = block;
	if (s->kind == SLABS_SECRET)
		sodium_memzero(block, s->block_len);
	freed->next = b->free;
	b->free = freed;
	ASAN_POISON_MEMORY_REGION(block, s->block_len);
	if (!b->in.le_prev)
		LIST_INSERT_HEAD(&s->with_room, b, in);
	if (--b->used > 0)
		return;
	slab_leave(b);
	if (s->unused_count == (s->kind == SLABS_SECRET ? 1 : SLABS_SPARE)) {
		drop_slab(s, b);
		return;
	}
	LIST_INSERT_HEAD(&s->unused, b, in);
	s->unused_count++;
}

void slabs_clear(struct slabs *s)
{
	struct slab *b;

	assert(LIST_EMPTY(&s->with_room));
	while ((b = LIST_FIRST(&s->unused))) {
		slab_leave(b);
		drop_slab(s, b);
	}
	s->unused_count = 0;
}

void *slab_block(void *slab, size_t block_len, unsigned i)
{
	struct slab *b = slab;

	return i < b->cut && i < capacity_for(block_len) ? block_at(b, block_len, i) : NULL;
}
