/* slot_table.c: one anonymous shared mapping, whose memory is not reserved: the marks of the chunks, and the chunks.
 * Each process has its address and size in memory of its own, so that no process can mislead another one about that.
 *
 * The free chunks are a list: the mark of each is the number of the next one. Only this process uses the list, so a
 * process that dies while it changes it harms nobody: the next process makes its own. Chunks beyond those that were
 * ever taken are in no list.
 *
 * To give the memory of a chunk back, and to fault it in again, costs ten times what it costs to zero it. So the last
 * few that were given back stay warm, and those that nobody needed between two slot_table_cool() go.
 */
#include "ragent/keeper/slot_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define USE_BITS      4u
#define WORKER_BITS   12u
#define LIFE_OF(mark) ((mark) >> (USE_BITS + WORKER_BITS))
#define MOST_CHUNKS   (1u << 23)
#define USE_FREE      0u /* beside enum table_use; the other bits: the next free chunk, plus 1; 0: this is the last */
#define HEAD_LEN      64u
#define WARM_MAX      16u

_Static_assert(TABLE_WORKERS_MAX == 1u << WORKER_BITS, "a mark has room for each worker");

_Static_assert(MOST_CHUNKS < 1u << (32 - USE_BITS), "a mark has room for the number of a chunk");

struct slot_table {
	uint8_t *map;
	size_t map_len;
	_Atomic uint32_t *reached; /* shared: so many chunks, the first ones, were ever taken */
	_Atomic uint32_t *marks;   /* shared, for each chunk */
	uint8_t *chunks;
	uint32_t count;
	uint32_t life;
	uint32_t free;           /* the first free chunk, plus 1; 0: none before @reached, but for the warm ones */
	uint32_t warm[WARM_MAX]; /* free chunks that still have their memory, which is zero; the last goes first */
	unsigned warm_count, warm_least; /* now; the least since the last slot_table_cool() */
	pthread_mutex_t lock;            /* of the free and the warm chunks, their marks, and @reached */
	size_t connection_len;
};

static size_t whole_slabs(size_t len)
{
	return (len + SLAB_LEN - 1) / SLAB_LEN;
}

/* Chunks are at multiples of their length, so the mapping is one chunk longer. */
static int slot_table_map(struct slot_table *t)
{
	const size_t marks = whole_slabs(HEAD_LEN + t->count * sizeof *t->marks);

	t->map_len = (t->count + marks + 1) * SLAB_LEN;
	t->map = mmap(NULL, t->map_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->map == MAP_FAILED)
		return -1;
	uint8_t *first = t->map + (SLAB_LEN - ((uintptr_t)t->map & (SLAB_LEN - 1))) % SLAB_LEN;
	t->reached = (_Atomic uint32_t *)first;
	t->marks = (_Atomic uint32_t *)(first + HEAD_LEN);
	t->chunks = first + marks * SLAB_LEN;
	return 0;
}

/* With vm.overcommit_memory=2 the system counts addresses as if all of them were used. */
static int map_all_or_some(struct slot_table *t)
{
	if (slot_table_map(t) == 0)
		return 0;
	t->count = t->count / 8 + 1;
	return slot_table_map(t);
}

struct slot_table *slot_table_create(uint64_t len, size_t connection_len)
{
	struct slot_table *t = calloc(1, sizeof *t);
	const size_t wanted = whole_slabs(len);

	if (!t)
		return NULL;
	t->count = wanted < MOST_CHUNKS ? (uint32_t)wanted : MOST_CHUNKS;
	t->connection_len = connection_len;
	pthread_mutex_init(&t->lock, NULL);
	if (map_all_or_some(t) == 0)
		return t;
	free(t);
	return NULL;
}

uint64_t slot_table_len(const struct slot_table *t)
{
	return (uint64_t)t->count * SLAB_LEN;
}

void slot_table_destroy(struct slot_table *t)
{
	if (!t)
		return;
	munmap(t->map, t->map_len);
	free(t);
}

/* --- chunks --- */

static enum table_use use_of(uint32_t mark)
{
	return (enum table_use)(mark & ((1u << USE_BITS) - 1));
}

static unsigned worker_of(uint32_t mark)
{
	return mark >> USE_BITS & (TABLE_WORKERS_MAX - 1);
}

static void *chunk_at(const struct slot_table *t, uint32_t chunk)
{
	return t->chunks + (size_t)chunk * SLAB_LEN;
}

static uint32_t slot_table_reached(const struct slot_table *t)
{
	const uint32_t most = atomic_load_explicit(t->reached, memory_order_relaxed);

	return most < t->count ? most : t->count;
}

static uint32_t slot_table_mark_of(const struct slot_table *t, uint32_t chunk)
{
	return atomic_load_explicit(&t->marks[chunk], memory_order_relaxed);
}

/* --- free chunks --- */

static void slot_table_push(struct slot_table *t, uint32_t chunk)
{
	atomic_store_explicit(&t->marks[chunk], t->free << USE_BITS | USE_FREE, memory_order_relaxed);
	t->free = chunk + 1;
}

/* A free chunk, or the count of all: there is none. */
static uint32_t slot_table_pop(struct slot_table *t)
{
	uint32_t chunk = t->count;

	if (t->warm_count) {
		chunk = t->warm[--t->warm_count];
		if (t->warm_count < t->warm_least)
			t->warm_least = t->warm_count;
	} else if (t->free) {
		chunk = t->free - 1;
		t->free = slot_table_mark_of(t, chunk) >> USE_BITS;
	} else if (slot_table_reached(t) < t->count) {
		chunk = slot_table_reached(t);
		atomic_store_explicit(t->reached, chunk + 1, memory_order_relaxed);
	}
	return chunk;
}

void slot_table_begin_life(struct slot_table *t, uint32_t life)
{
	if (!t)
		return;
	t->life = life & UINT16_MAX;
	t->free = 0;
	t->warm_count = t->warm_least = 0;
	for (uint32_t i = slot_table_reached(t); i-- > 0;)
		if (use_of(slot_table_mark_of(t, i)) == USE_FREE)
			slot_table_push(t, i);
}

static void *slot_table_take(struct slab_source *source)
{
	struct table_share *s = (struct table_share *)source;
	struct slot_table *t = s->table;

	if (!t)
		return NULL;
	pthread_mutex_lock(&t->lock);
	const uint32_t chunk = slot_table_pop(t);
	if (chunk < t->count)
		atomic_store_explicit(&t->marks[chunk], s->mark, memory_order_relaxed);
	pthread_mutex_unlock(&t->lock);
	if (chunk < t->count)
		return chunk_at(t, chunk);
	s->refused++;
	return NULL;
}

static bool has_room_for_warm(struct slot_table *t)
{
	pthread_mutex_lock(&t->lock);
	const bool has = t->warm_count < WARM_MAX;
	pthread_mutex_unlock(&t->lock);
	return has;
}

static int lose_memory(struct slot_table *t, uint32_t chunk)
{
	return madvise(chunk_at(t, chunk), SLAB_LEN, MADV_REMOVE);
}

/* Its memory goes back to the system where the kernel can do that, unless it stays warm. In any case it is zero when it
 * is taken again. */
static void slot_table_give_back(struct slot_table *t, uint32_t chunk)
{
	const bool stays = has_room_for_warm(t);

	if (stays || lose_memory(t, chunk) < 0)
		memset(chunk_at(t, chunk), 0, SLAB_LEN);
	pthread_mutex_lock(&t->lock);
	if (stays && t->warm_count < WARM_MAX) {
		atomic_store_explicit(&t->marks[chunk], USE_FREE, memory_order_relaxed);
		t->warm[t->warm_count++] = chunk;
	} else {
		slot_table_push(t, chunk);
	}
	pthread_mutex_unlock(&t->lock);
}

/* The first of the warm chunks were not needed. */
static unsigned take_unneeded(struct slot_table *t, uint32_t *out)
{
	pthread_mutex_lock(&t->lock);
	const unsigned n = t->warm_least;
	t->warm_count -= n;
	memcpy(out, t->warm, n * sizeof *out);
	memmove(t->warm, t->warm + n, t->warm_count * sizeof *out);
	t->warm_least = t->warm_count;
	pthread_mutex_unlock(&t->lock);
	return n;
}

void slot_table_cool(struct slot_table *t)
{
	uint32_t chunks[WARM_MAX];

	if (!t)
		return;
	for (unsigned n = take_unneeded(t, chunks); n-- > 0;) {
		lose_memory(t, chunks[n]);
		pthread_mutex_lock(&t->lock);
		slot_table_push(t, chunks[n]);
		pthread_mutex_unlock(&t->lock);
	}
}

static int slot_table_give(struct slab_source *source, void *slab)
{
	struct table_share *s = (struct table_share *)source;

	if (!slot_table_has(s->table, slab, SLAB_LEN))
		return 0;
	slot_table_give_back(s->table, (uint32_t)(((uint8_t *)slab - s->table->chunks) / SLAB_LEN));
	return 1;
}

void slot_table_share_init(struct table_share *s, struct slot_table *t, enum table_use use, unsigned worker)
{
	*s = (struct table_share){ .source = { .take = slot_table_take, .give = slot_table_give }, .table = t };
	if (t)
		s->mark = use | worker << USE_BITS | t->life << (USE_BITS + WORKER_BITS);
}

/* --- places --- */

bool slot_table_has(const struct slot_table *t, const void *at, size_t len)
{
	const uintptr_t begin = t ? (uintptr_t)t->chunks : 0, place = (uintptr_t)at;
	const size_t all = t ? (size_t)t->count * SLAB_LEN : 0;

	return place >= begin && place - begin <= all && len <= all - (place - begin) && all > 0;
}

/* --- former lives --- */

static bool is_former(const struct slot_table *t, uint32_t mark)
{
	return use_of(mark) != USE_FREE && LIFE_OF(mark) != t->life;
}

struct table_slot *slot_table_next(struct slot_table *t, struct slot_walk *w, unsigned worker)
{
	for (; t && w->chunk < slot_table_reached(t); w->chunk++, w->block = 0) {
		const uint32_t mark = slot_table_mark_of(t, w->chunk);
		struct table_slot *s;
		if (!is_former(t, mark) || use_of(mark) != TABLE_CONNECTIONS || worker_of(mark) != worker)
			continue;
		while ((s = slab_block(chunk_at(t, w->chunk), t->connection_len, w->block)) != NULL) {
			w->block++;
			if (table_slot_state(s) != SLOT_FREE)
				return s;
		}
	}
	return NULL;
}

bool slot_table_has_slot(struct slot_table *t, const void *at)
{
	if (!slot_table_has(t, at, t ? t->connection_len : 0))
		return false;
	struct slot_walk w = { .chunk = (uint32_t)(((const uint8_t *)at - t->chunks) / SLAB_LEN) };
	const uint32_t mark = slot_table_mark_of(t, w.chunk);
	const void *s;

	if (!is_former(t, mark) || use_of(mark) != TABLE_CONNECTIONS)
		return false;
	while ((s = slab_block(chunk_at(t, w.chunk), t->connection_len, w.block++)) != NULL)
		if (s == at)
			return true;
	return false;
}

bool slot_table_forget_next(struct slot_table *t, unsigned worker, uint32_t *from)
{
	while (t && *from < slot_table_reached(t)) {
		const uint32_t i = (*from)++, mark = slot_table_mark_of(t, i);
		if (!is_former(t, mark) || worker_of(mark) != worker)
			continue;
		slot_table_give_back(t, i);
		return true;
	}
	return false;
}

void slot_table_forget_former(struct slot_table *t, unsigned worker)
{
	uint32_t from = 0;

	while (slot_table_forget_next(t, worker, &from))
		;
}
