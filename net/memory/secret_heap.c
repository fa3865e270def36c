/* secret_heap.c: size classes; slabs of one class each, which belong to the thread that made them. A slab is aligned to
 * its length, so a block's address gives its slab. Its pages are locked when blocks are cut from them, so
 * RLIMIT_MEMLOCK is spent on pages in use only.
 *
 * A thread takes blocks from the first slab of a class in its list, and gives back blocks of its own slabs, without a
 * lock or an atomic operation. A block of another thread's slab goes to a list of that thread, which looks there when a
 * slab has no free block. What a thread leaves when it ends is the next new thread's.
 */
#include "net/memory/secret_heap.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "net/memory/secret.h"
#include "proto/error.h"

/* No optimization may leave it out: the block is said to be read. */
static void wipe(void *at, size_t len)
{
	memset(at, 0, len);
	__asm__ __volatile__("" : : "r"(at) : "memory");
}

#ifdef CSSL_SANITIZED
#include <malloc.h>

void *secret_heap_alloc(size_t len)
{
	return len ? malloc(len) : NULL;
}

void *secret_heap_zalloc(size_t len)
{
	return len ? calloc(1, len) : NULL;
}

void secret_heap_free(void *block)
{
	if (block)
		wipe(block, malloc_usable_size(block));
	free(block);
}

static size_t room_of(void *block)
{
	return malloc_usable_size(block);
}

uint64_t secret_heap_held(void)
{
	return 0;
}

enum secret_heap_rest secret_heap_trim(void)
{
	return SECRET_HEAP_IS_SMALL;
}
#else

#define SLAB_LEN    ((size_t)256 * 1024)
#define SLAB_MAGIC  0x53484541u
#define PAGE_LEN    ((size_t)4096)
#define CUT_LEN     (2 * PAGE_LEN)       /* blocks are cut from about so many bytes at a time */
#define SPARE_MAX   ((size_t)512 * 1024) /* bytes of slabs that a thread keeps though they have been unused for long */
#define BLOCK_ALIGN 16u
#define SMALL_MAX   ((size_t)1024)
#define SMALL_STEP  16u
#define MEDIUM_STEP 256u
#define HEAD_LEN    ((sizeof(struct slab) + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN)
#define LIKELY(x)   __builtin_expect(!!(x), 1)

/* Steps of an eighth to a quarter; and what OpenSSL 3.0 takes for each handshake: the SSL struct, its buffers for a
 * record, and the one for messages. Above SMALL_MAX, multiples of MEDIUM_STEP. */
static const uint16_t class_len[] = { 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640,
	768, 896, 1024, 1280, 1536, 1792, 2048, 2560, 3072, 3328, 4096, 5376, 6656, 7680, 8704, 10240, 12288, 14336,
	16640, 16896, 19456, 22016, 26112, 32768 };
#define CLASS_COUNT (sizeof class_len / sizeof class_len[0])
#define BLOCK_MAX   ((size_t)32768)
#define LARGE       CLASS_COUNT /* such a block has a mapping of its own */

struct block {
	struct block *hidden_next;
};

struct heap;

struct slab {
	uint32_t magic;
	uint32_t used, cut, capacity; /* blocks */
	struct heap *owner;           /* NULL: one large block */
	struct block *free;
	size_t block_len;
	struct slab *next, **prev;   /* in its owner's list of the class; prev NULL: in no list, it is full */
	size_t held, locked, mapped; /* bytes: from which blocks were cut; of these, locked; in all */
	enum { SLAB_WAS_USED, SLAB_RESTS } lately; /* without a used block: RESTS: since the last trim or longer */
};

struct heap {
	struct slab *with_room[CLASS_COUNT + 1]; /* each list ends with no_room */
	_Atomic(struct block *) given_back;      /* by other threads */
	struct heap *next_orphan;
};

/* Without a free block; stands where there is no slab, so that the usual way has one question less. */
static struct slab no_room;
static struct heap nobodys;
static _Thread_local struct heap *mine = &nobodys;

static uint8_t small_classes[SMALL_MAX / SMALL_STEP + 1], medium_classes[BLOCK_MAX / MEDIUM_STEP + 1];
static pthread_key_t at_thread_end;
static pthread_mutex_t orphans_lock = PTHREAD_MUTEX_INITIALIZER;
static struct heap *orphans;
static _Atomic uint64_t held_bytes;

/* A pointer in a free block is of no use to who can overwrite it but not read its place (as in glibc). */
static struct block *veiled(const struct block *at, struct block *next)
{
	return (struct block *)((uintptr_t)next ^ (uintptr_t)at >> 12);
}

static struct block *next_of(const struct block *b)
{
	struct block *next = veiled(b, b->hidden_next);

	assert(((uintptr_t)next & (BLOCK_ALIGN - 1)) == 0);
	return next;
}

static struct slab *slab_of(const void *block)
{
	struct slab *s = (struct slab *)((uintptr_t)block & ~(uintptr_t)(SLAB_LEN - 1));

	assert(s->magic == SLAB_MAGIC);
	return s;
}

static unsigned class_of(size_t len)
{
	if (LIKELY(len <= SMALL_MAX))
		return small_classes[(len + SMALL_STEP - 1) / SMALL_STEP];
	return len <= BLOCK_MAX ? medium_classes[(len + MEDIUM_STEP - 1) / MEDIUM_STEP] : LARGE;
}

/* --- threads --- */

static void heap_init(struct heap *h)
{
	for (size_t i = 0; i <= CLASS_COUNT; i++)
		h->with_room[i] = &no_room;
}

static void orphan(void *heap)
{
	struct heap *h = heap;

	mine = &nobodys;
	pthread_mutex_lock(&orphans_lock);
	h->next_orphan = orphans;
	orphans = h;
	pthread_mutex_unlock(&orphans_lock);
}

/* Before any thread begins. */
static __attribute__((constructor)) void heap_begin(void)
{
	unsigned size_class = 0;

	for (size_t i = 0; i < sizeof small_classes; i++) {
		size_class += class_len[size_class] < i * SMALL_STEP;
		small_classes[i] = (uint8_t)size_class;
	}
	small_classes[0] = LARGE; /* no block of no bytes by the usual way */
	for (size_t i = SMALL_MAX / MEDIUM_STEP; i < sizeof medium_classes; i++) {
		size_class += class_len[size_class] < i * MEDIUM_STEP;
		medium_classes[i] = (uint8_t)size_class;
	}
	pthread_key_create(&at_thread_end, orphan);
}

/* NULL: out of memory. */
static struct heap *heap_of_thread(void)
{
	pthread_mutex_lock(&orphans_lock);
	struct heap *h = orphans;
	if (h)
		orphans = h->next_orphan;
	pthread_mutex_unlock(&orphans_lock);
	if (!h && (h = calloc(1, sizeof *h)))
		heap_init(h);
	if (h) {
		mine = h;
		pthread_setspecific(at_thread_end, h);
	}
	return h;
}

/* --- slabs --- */

static void slab_enter(struct slab *s, unsigned size_class)
{
	struct slab **place = &s->owner->with_room[size_class];

	s->next = *place;
	s->prev = place;
	if (s->next != &no_room)
		s->next->prev = &s->next;
	*place = s;
}

static void slab_leave(struct slab *s)
{
	*s->prev = s->next;
	if (s->next != &no_room)
		s->next->prev = s->prev;
	s->next = NULL;
	s->prev = NULL;
}

/* Zeroed pages at a multiple of SLAB_LEN, and behind them one that nobody may touch. NULL: out of memory. */
static struct slab *map_slab(size_t len, size_t block_len)
{
	const size_t wide = len + PAGE_LEN + SLAB_LEN;
	uint8_t *all = mmap(NULL, wide, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED)
		return NULL;
	const size_t before = (SLAB_LEN - (uintptr_t)all % SLAB_LEN) % SLAB_LEN;
	if (before)
		munmap(all, before);
	munmap(all + before + len + PAGE_LEN, SLAB_LEN - before);
	if (mprotect(all + before, len, PROT_READ | PROT_WRITE) < 0) {
		munmap(all + before, len + PAGE_LEN);
		return NULL;
	}
	struct slab *s = (struct slab *)(all + before);
	madvise(s, len, MADV_DONTDUMP);
	*s = (struct slab){ .magic = SLAB_MAGIC, .block_len = block_len, .mapped = len + PAGE_LEN };
	return s;
}

static void drop_slab(struct slab *s)
{
	secret_unlock(s->held, s->locked);
	atomic_fetch_sub_explicit(&held_bytes, s->held, memory_order_relaxed);
	munmap(s, s->mapped);
}

/* The slab's pages up to @end are in use from now on. */
static void hold(struct slab *s, size_t end)
{
	const size_t until = (end + PAGE_LEN - 1) / PAGE_LEN * PAGE_LEN;

	if (until <= s->held)
		return;
	s->locked += secret_lock((uint8_t *)s + s->held, until - s->held);
	atomic_fetch_add_explicit(&held_bytes, until - s->held, memory_order_relaxed);
	s->held = until;
}

/* Cut fresh blocks from a slab that has some. */
static void cut(struct slab *s)
{
	uint32_t count = (uint32_t)(CUT_LEN / s->block_len);

	if (count == 0)
		count = 1;
	if (count > s->capacity - s->cut)
		count = s->capacity - s->cut;
	hold(s, HEAD_LEN + (s->cut + count) * s->block_len);
	for (uint32_t i = s->cut + count; i-- > s->cut;) {
		struct block *b = (struct block *)((uint8_t *)s + HEAD_LEN + i * s->block_len);
		b->hidden_next = veiled(b, s->free);
		s->free = b;
	}
	s->cut += count;
}

/* --- the usual way, and the others --- */

static void *slab_take(struct slab *s)
{
	struct block *b = s->free;

	s->free = next_of(b);
	__builtin_prefetch(s->free, 1); /* the next one has often left the cache */
	s->used++;
	b->hidden_next = NULL;
	return b;
}

/* A block of this thread came back; its slab was full, or has no used block. */
static void slab_settle(struct slab *s)
{
	if (!s->prev)
		slab_enter(s, class_of(s->block_len));
	s->lately = SLAB_WAS_USED;
}

static void slab_give(struct slab *s, struct block *b)
{
	b->hidden_next = veiled(b, s->free);
	s->free = b;
	s->used--;
	if (!LIKELY(s->used > 0 && s->prev))
		slab_settle(s);
}

static void take_back(struct heap *h)
{
	struct block *b = atomic_exchange_explicit(&h->given_back, NULL, memory_order_acquire);

	while (b) {
		struct block *next = next_of(b);
		slab_give(slab_of(b), b);
		b = next;
	}
}

static void give_to_other_thread(struct heap *h, struct block *b)
{
	struct block *first = atomic_load_explicit(&h->given_back, memory_order_relaxed);

	do
		b->hidden_next = veiled(b, first);
	while (!atomic_compare_exchange_weak_explicit(
		&h->given_back, &first, b, memory_order_release, memory_order_relaxed));
}

static void *alloc_large(size_t len)
{
	if (len > SIZE_MAX / 2)
		return NULL;
	const size_t all = (HEAD_LEN + len + PAGE_LEN - 1) / PAGE_LEN * PAGE_LEN;
	struct slab *s = map_slab(all, all - HEAD_LEN);
	if (!s)
		return NULL;
	hold(s, all);
	return (uint8_t *)s + HEAD_LEN;
}

/* The first slab with a free block; full ones leave the list. NULL: out of memory. */
static struct slab *slab_with_room(struct heap *h, unsigned size_class)
{
	struct slab *s;

	while ((s = h->with_room[size_class]) != &no_room) {
		if (!s->free && s->cut < s->capacity)
			cut(s);
		if (s->free)
			return s;
		slab_leave(s);
	}
	s = map_slab(SLAB_LEN, class_len[size_class]);
	if (!s)
		return NULL;
	s->owner = h;
	s->capacity = (uint32_t)((SLAB_LEN - HEAD_LEN) / s->block_len);
	cut(s);
	slab_enter(s, size_class);
	return s;
}

/* Not inlined, so that the usual way saves no registers. */
static __attribute__((noinline)) void *alloc_slowly(size_t len)
{
	if (len == 0)
		return NULL;
	struct heap *h = mine == &nobodys ? heap_of_thread() : mine;
	const unsigned size_class = class_of(len);
	if (size_class == LARGE)
		return alloc_large(len);
	if (!h)
		return NULL;
	take_back(h);
	struct slab *s = slab_with_room(h, size_class);
	return s ? slab_take(s) : NULL;
}

static __attribute__((noinline)) void free_slowly(struct slab *s, void *block)
{
	if (s->owner)
		give_to_other_thread(s->owner, block);
	else
		drop_slab(s);
}

void *secret_heap_alloc(size_t len)
{
	struct slab *s = mine->with_room[class_of(len)];

	return LIKELY(s && s->free) ? slab_take(s) : alloc_slowly(len);
}

/* Each block is: its pages were zero at first, and it was wiped when it was freed. */
void *secret_heap_zalloc(size_t len)
{
	return secret_heap_alloc(len);
}

void secret_heap_free(void *block)
{
	if (!block)
		return;
	struct slab *s = slab_of(block);
	wipe(block, s->block_len);
	if (LIKELY(s->owner == mine))
		slab_give(s, block);
	else
		free_slowly(s, block);
}

static size_t room_of(void *block)
{
	return slab_of(block)->block_len;
}

uint64_t secret_heap_held(void)
{
	return atomic_load_explicit(&held_bytes, memory_order_relaxed);
}

/* To map and lock pages costs much more than a block, and the number of handshakes under way goes up and down all the
 * while: only slabs that had no used block for some time go. @s is one without. Adds to @kept what stays of it. */
static void rest_or_go(struct slab *s, size_t *kept)
{
	if (s->lately == SLAB_RESTS && *kept + s->held > SPARE_MAX) {
		slab_leave(s);
		drop_slab(s);
		return;
	}
	s->lately = SLAB_RESTS;
	*kept += s->held;
}

enum secret_heap_rest secret_heap_trim(void)
{
	size_t kept = 0;

	if (mine == &nobodys)
		return SECRET_HEAP_IS_SMALL;
	take_back(mine);
	for (size_t i = 0; i < CLASS_COUNT; i++)
		for (struct slab *s = mine->with_room[i], *next; s != &no_room; s = next) {
			next = s->next;
			if (s->used == 0)
				rest_or_go(s, &kept);
		}
	return kept > SPARE_MAX ? SECRET_HEAP_HAS_SPARE : SECRET_HEAP_IS_SMALL;
}
#endif

/* A block that is much too large is changed for a smaller one. */
void *secret_heap_resize(void *block, size_t len)
{
	if (!block)
		return secret_heap_alloc(len);
	if (len == 0) {
		secret_heap_free(block);
		return NULL;
	}
	const size_t room = room_of(block);
	if (len <= room && len >= room / 2) {
		wipe((uint8_t *)block + len, room - len);
		return block;
	}
	void *other = secret_heap_alloc(len);
	if (!other)
		return NULL;
	memcpy(other, block, len < room ? len : room);
	secret_heap_free(block);
	return other;
}

/* --- OpenSSL --- */

static void *openssl_alloc(size_t len, const char *file, int line)
{
	return secret_heap_alloc(len);
}

static void *openssl_resize(void *block, size_t len, const char *file, int line)
{
	return secret_heap_resize(block, len);
}

static void openssl_free(void *block, const char *file, int line)
{
	secret_heap_free(block);
}

int secret_heap_for_openssl(void)
{
	return CRYPTO_set_mem_functions(openssl_alloc, openssl_resize, openssl_free) == 1 ? 0 : CSSL_E_STATE;
}
