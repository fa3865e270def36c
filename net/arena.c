/* arena.c: slabs of 64 KiB, mapped apart from the heap, so that they can be locked and kept out of core dumps as a
 * whole. A slab is aligned to its size, so a block's address gives its slab. Free blocks are linked through their
 * first bytes.
 */
#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "net/arena.h"
#include "net/log.h"

#define SLAB_LEN       ((size_t)64 * 1024)
#define BLOCK_ALIGN    16u
#define BLOCK_LEN_MAX  4096u
#define SLAB_MAGIC     0x534c4142u
#define FIRST_BLOCK_AT ((sizeof(struct slab) + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN)

struct block {
	struct block *next;
};

struct slab {
	uint32_t magic;
	uint32_t taken;
	struct arena *arena;
	struct slab *next, **prev; /* in the arena's list of slabs with room; prev NULL: full */
	struct block *free;
	size_t locked_len;
};

struct arena {
	size_t block_len;
	size_t blocks_per_slab;
	size_t blocks;
	size_t locked_bytes;
	size_t slabs;
	struct slab *with_room;
};

static _Atomic int warned_of_locking;
static _Atomic int locking_error; /* of the last try that failed */
static _Atomic uint64_t unlocked_bytes;

void secret_warn_if_unlocked(void)
{
	if (atomic_load(&unlocked_bytes) > 0 && !atomic_exchange(&warned_of_locking, 1))
		log_event(LOG_WARNING, NULL, "keys may be swapped out",
			"cause=%s limit=%s remedy=\"raise it (systemd: LimitMEMLOCK)\"", strerror(locking_error),
			"RLIMIT_MEMLOCK");
}

size_t secret_lock(void *at, size_t len)
{
	if (mlock(at, len) == 0)
		return len;
	locking_error = errno;
	atomic_fetch_add(&unlocked_bytes, len);
	return 0;
}

void secret_unlock(size_t len, size_t locked)
{
	atomic_fetch_sub(&unlocked_bytes, len - locked);
}

uint64_t secret_unlocked_bytes(void)
{
	return atomic_load(&unlocked_bytes);
}

struct arena *arena_create(size_t block_len)
{
	assert(block_len > 0 && block_len <= BLOCK_LEN_MAX);
	struct arena *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->block_len = (block_len + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
	a->blocks_per_slab = (SLAB_LEN - FIRST_BLOCK_AT) / a->block_len;
	return a;
}

static void slab_link(struct arena *a, struct slab *s)
{
	s->next = a->with_room;
	s->prev = &a->with_room;
	if (s->next)
		s->next->prev = &s->next;
	a->with_room = s;
}

static void slab_unlink(struct slab *s)
{
	*s->prev = s->next;
	if (s->next)
		s->next->prev = s->prev;
	s->next = NULL;
	s->prev = NULL;
}

/* SLAB_LEN zeroed bytes aligned to SLAB_LEN, or NULL. */
static void *slab_map(void)
{
	uint8_t *wide = mmap(NULL, 2 * SLAB_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (wide == MAP_FAILED)
		return NULL;
	size_t before = (SLAB_LEN - (uintptr_t)wide % SLAB_LEN) % SLAB_LEN;
	if (before)
		munmap(wide, before);
	munmap(wide + before + SLAB_LEN, SLAB_LEN - before);
	return wide + before;
}

/* Bytes that are locked from now on: all, or none. */
static size_t protect(void *at, size_t len)
{
	madvise(at, len, MADV_DONTDUMP);
	const size_t locked = secret_lock(at, len);
	secret_warn_if_unlocked();
	return locked;
}

static void slab_protect(struct slab *s)
{
	s->locked_len = protect(s, SLAB_LEN);
	s->arena->locked_bytes += s->locked_len;
}

static struct slab *slab_create(struct arena *a)
{
	struct slab *s = slab_map();
	if (!s)
		return NULL;
	s->magic = SLAB_MAGIC;
	s->arena = a;
	slab_protect(s);
	for (size_t i = a->blocks_per_slab; i-- > 0;) {
		struct block *b = (struct block *)((uint8_t *)s + FIRST_BLOCK_AT + i * a->block_len);
		b->next = s->free;
		s->free = b;
	}
	a->slabs++;
	slab_link(a, s);
	return s;
}

static void slab_destroy(struct slab *s)
{
	slab_unlink(s);
	s->arena->slabs--;
	s->arena->locked_bytes -= s->locked_len;
	secret_unlock(SLAB_LEN, s->locked_len);
	munmap(s, SLAB_LEN);
}

void *arena_alloc(struct arena *a)
{
	struct slab *s = a->with_room ? a->with_room : slab_create(a);
	if (!s)
		return NULL;

	struct block *b = s->free;
	s->free = b->next;
	b->next = NULL; /* the other bytes were wiped when the block was freed */
	s->taken++;
	a->blocks++;
	if (!s->free)
		slab_unlink(s);
	return b;
}

void arena_free(struct arena *a, void *block)
{
	if (!block)
		return;

	struct slab *s = (struct slab *)((uintptr_t)block & ~(uintptr_t)(SLAB_LEN - 1));
	assert(s->magic == SLAB_MAGIC && s->arena == a && s->taken > 0);
	sodium_memzero(block, a->block_len);
	struct block *b = block;
	b->next = s->free;
	s->free = b;
	s->taken--;
	a->blocks--;
	if (!s->prev)
		slab_link(a, s);
	/* keep one empty slab, so that a worker whose need changes by one block does not map and unmap each time */
	if (s->taken == 0 && (a->with_room != s || s->next))
		slab_destroy(s);
}

size_t arena_blocks(const struct arena *a)
{
	return a->blocks;
}

size_t arena_locked_bytes(const struct arena *a)
{
	return a->locked_bytes;
}

void arena_destroy(struct arena *a)
{
	if (!a)
		return;
	assert(a->blocks == 0);
	while (a->with_room)
		slab_destroy(a->with_room);
	free(a);
}

/* A leak checker does not search mappings for pointers to blocks of malloc, unless it is told to. */
#ifdef CSSL_SANITIZED
#include <sanitizer/lsan_interface.h>
#else
#define __lsan_register_root_region(at, len)   ((void)(at))
#define __lsan_unregister_root_region(at, len) ((void)(at))
#endif

void *secret_alloc(size_t len)
{
	void *object = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (object == MAP_FAILED)
		return NULL;
	protect(object, len);
	__lsan_register_root_region(object, len);
	return object;
}

void secret_free(void *object, size_t len)
{
	if (!object)
		return;
	sodium_memzero(object, len);
	__lsan_unregister_root_region(object, len);
	munmap(object, len);
}
