/* table.c: one anonymous shared mapping, whose memory is not reserved: the marks of the chunks, and the chunks. Each
 * process has its address and size in memory of its own, so that no process can mislead another one about that.
 */
#include "ragent/keeper/table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OF_CONNECTION 4096u /* bytes for the parts of a connection, including waiting records of its client */
#define USE_BITS      4u
#define WORKER_BITS   12u
#define LIFE_OF(mark) ((mark) >> (USE_BITS + WORKER_BITS))
#define MOST_CHUNKS   (1u << 20)

_Static_assert(TABLE_WORKERS_MAX == 1u << WORKER_BITS, "a mark has room for each worker");

struct table {
	uint8_t *map;
	size_t map_len;
	_Atomic uint32_t *marks; /* for each chunk; 0: it is free */
	uint8_t *chunks;
	uint32_t count;
	uint32_t life;
	size_t connection_len;
};

static size_t whole_slabs(size_t len)
{
	return (len + SLAB_LEN - 1) / SLAB_LEN;
}

/* Chunks are at multiples of their length, so the mapping is one chunk longer. */
static int map(struct table *t)
{
	const size_t marks = whole_slabs(t->count * sizeof *t->marks);

	t->map_len = (t->count + marks + 1) * SLAB_LEN;
	t->map = mmap(NULL, t->map_len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t->map == MAP_FAILED)
		return -1;
	uint8_t *first = t->map + (SLAB_LEN - ((uintptr_t)t->map & (SLAB_LEN - 1))) % SLAB_LEN;
	t->marks = (_Atomic uint32_t *)first;
	t->chunks = first + marks * SLAB_LEN;
	return 0;
}

struct table *table_create(size_t connections, size_t connection_len)
{
	struct table *t = calloc(1, sizeof *t);
	const size_t wanted = whole_slabs(connections * (2 * connection_len + OF_CONNECTION)) + 1;

	if (!t)
		return NULL;
	t->count = wanted < MOST_CHUNKS ? (uint32_t)wanted : MOST_CHUNKS;
	t->connection_len = connection_len;
	if (map(t) == 0)
		return t;
	free(t);
	return NULL;
}

void table_destroy(struct table *t)
{
	if (!t)
		return;
	munmap(t->map, t->map_len);
	free(t);
}

void table_begin_life(struct table *t, uint32_t life)
{
	if (t)
		t->life = life & UINT16_MAX;
}

/* --- chunks --- */

static uint32_t mark(const struct table *t, enum table_use use, unsigned worker)
{
	return use | worker << USE_BITS | t->life << (USE_BITS + WORKER_BITS);
}

static enum table_use use_of(uint32_t mark)
{
	return (enum table_use)(mark & ((1u << USE_BITS) - 1));
}

static unsigned worker_of(uint32_t mark)
{
	return mark >> USE_BITS & (TABLE_WORKERS_MAX - 1);
}

static void *chunk_at(const struct table *t, uint32_t chunk)
{
	return t->chunks + (size_t)chunk * SLAB_LEN;
}

static void *take(struct slab_source *source)
{
	struct table_share *s = (struct table_share *)source;
	struct table *t = s->table;

	for (uint32_t i = 0; t && i < t->count; i++) {
		const uint32_t chunk = (s->hint + i) % t->count;
		uint32_t none = 0;
		if (atomic_compare_exchange_strong(&t->marks[chunk], &none, s->mark)) {
			s->hint = chunk + 1;
			return chunk_at(t, chunk);
		}
	}
	return NULL;
}

/* Its memory goes back to the system where the kernel can do that. In any case it is zero when it is taken again. */
static void give_back(struct table *t, uint32_t chunk)
{
	if (madvise(chunk_at(t, chunk), SLAB_LEN, MADV_REMOVE) < 0)
		memset(chunk_at(t, chunk), 0, SLAB_LEN);
	atomic_store(&t->marks[chunk], 0);
}

static int give(struct slab_source *source, void *slab)
{
	struct table_share *s = (struct table_share *)source;

	if (!table_has(s->table, slab, SLAB_LEN))
		return 0;
	s->hint = (uint32_t)(((uint8_t *)slab - s->table->chunks) / SLAB_LEN);
	give_back(s->table, s->hint);
	return 1;
}

void table_share_init(struct table_share *s, struct table *t, enum table_use use, unsigned worker)
{
	*s = (struct table_share){ .source = { .take = take, .give = give }, .table = t };
	if (t)
		s->mark = mark(t, use, worker);
}

/* --- places --- */

int table_has(const struct table *t, const void *at, size_t len)
{
	const uintptr_t begin = t ? (uintptr_t)t->chunks : 0, place = (uintptr_t)at;
	const size_t all = t ? (size_t)t->count * SLAB_LEN : 0;

	return place >= begin && place - begin <= all && len <= all - (place - begin) && all > 0;
}

/* --- former lives --- */

static int is_former(const struct table *t, uint32_t mark)
{
	return mark != 0 && LIFE_OF(mark) != t->life;
}

struct table_slot *table_next(struct table *t, struct table_walk *w, unsigned worker)
{
	for (; t && w->chunk < t->count; w->chunk++, w->block = 0) {
		const uint32_t mark = atomic_load_explicit(&t->marks[w->chunk], memory_order_relaxed);
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

int table_has_slot(struct table *t, const void *at)
{
	if (!table_has(t, at, t ? t->connection_len : 0))
		return 0;
	struct table_walk w = { .chunk = (uint32_t)(((const uint8_t *)at - t->chunks) / SLAB_LEN) };
	const uint32_t mark = atomic_load_explicit(&t->marks[w.chunk], memory_order_relaxed);
	const void *s;

	if (!is_former(t, mark) || use_of(mark) != TABLE_CONNECTIONS)
		return 0;
	while ((s = slab_block(chunk_at(t, w.chunk), t->connection_len, w.block++)) != NULL)
		if (s == at)
			return 1;
	return 0;
}

void table_forget_former(struct table *t, unsigned worker)
{
	for (uint32_t i = 0; t && i < t->count; i++) {
		const uint32_t mark = atomic_load_explicit(&t->marks[i], memory_order_relaxed);
		if (is_former(t, mark) && worker_of(mark) == worker)
			give_back(t, i);
	}
}
