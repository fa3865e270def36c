/* table.c: one anonymous shared mapping that is never reserved. Workers take runs of slots from it and keep lists of
 * their free ones in memory of their own, which the next process makes anew from the slots' states.
 */
#include "ragent/keeper/table.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "proto/error.h"

struct table {
	size_t len, slot_len;
	uint32_t slot_count;
	_Atomic uint32_t taken; /* slots that belong to a worker; may pass slot_count */
	_Alignas(max_align_t) uint8_t slots[];
};

struct table *table_create(unsigned slots, size_t saved_len)
{
	const size_t unit = _Alignof(max_align_t);
	const size_t slot_len = (sizeof(struct table_slot) + saved_len + unit - 1) / unit * unit;
	const size_t len = sizeof(struct table) + slots * slot_len;
	struct table *t = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	t->len = len;
	t->slot_len = slot_len;
	t->slot_count = slots;
	return t;
}

void table_destroy(struct table *t)
{
	if (t)
		munmap(t, t->len);
}

static struct table_slot *slot_at(struct table *t, uint32_t index)
{
	return (struct table_slot *)(t->slots + index * t->slot_len);
}

struct table_slot *table_slot(struct table *t, uint32_t index)
{
	uint32_t taken = atomic_load(&t->taken);

	return index < taken && index < t->slot_count ? slot_at(t, index) : NULL;
}

static int push(struct slot_pool *p, struct table_slot *s)
{
	if (p->free_count == p->free_cap) {
		size_t cap = p->free_cap ? 2 * p->free_cap : 2 * TABLE_RUN;
		struct table_slot **free_slots = realloc(p->free, cap * sizeof *free_slots);
		if (!free_slots)
			return CSSL_E_NO_MEMORY;
		p->free = free_slots;
		p->free_cap = cap;
	}
	p->free[p->free_count++] = s;
	return 0;
}

static int is_to_be_restored(const struct table_slot *s)
{
	return atomic_load(&s->state) == SLOT_SAVED && s->fd >= 0;
}

int slot_pool_init(struct slot_pool *p, struct table *t, uint32_t worker)
{
	struct table_slot *s;
	int r = 0;

	*p = (struct slot_pool){ .table = t, .worker = worker };
	for (uint32_t i = 0; r == 0 && t && (s = table_slot(t, i)) != NULL; i++) {
		if (s->worker != worker || is_to_be_restored(s))
			continue;
		atomic_store(&s->state, SLOT_FREE);
		r = push(p, s);
	}
	return r;
}

void slot_pool_clear(struct slot_pool *p)
{
	free(p->free);
	*p = (struct slot_pool){ 0 };
}

static void take_run(struct slot_pool *p)
{
	struct table *t = p->table;

	if (atomic_load(&t->taken) >= t->slot_count)
		return;
	uint32_t first = atomic_fetch_add(&t->taken, TABLE_RUN);
	for (uint32_t i = first; i < first + TABLE_RUN && i < t->slot_count; i++) {
		slot_at(t, i)->worker = p->worker;
		push(p, slot_at(t, i));
	}
}

struct table_slot *slot_pool_take(struct slot_pool *p)
{
	if (!p->table)
		return NULL;
	if (p->free_count == 0)
		take_run(p);
	if (p->free_count == 0)
		return NULL;
	struct table_slot *s = p->free[--p->free_count];
	s->fd = -1;
	table_slot_void(s);
	return s;
}

void slot_pool_give(struct slot_pool *p, struct table_slot *s)
{
	atomic_store(&s->state, SLOT_FREE);
	push(p, s);
}
