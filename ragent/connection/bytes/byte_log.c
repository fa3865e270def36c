/* byte_log.c: the first block is small, because most requests are. Those after it are larger. */
#include "ragent/connection/bytes/byte_log.h"

#include <string.h>

#include "proto/error.h"
#include "ragent/keeper/slot_table.h"

#define FIRST_LEN BLOCK_SMALLEST
#define LATER_LEN SLABS_BLOCK_MAX

/* The compiler keeps the order of the stores. The next process reads when this one is dead. */
static void log_in_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static void log_set_end(struct byte_log *l, uint64_t end)
{
	log_in_order();
	atomic_store_explicit(&l->end, end, memory_order_relaxed);
	log_in_order();
}

static size_t log_room_of(const struct log_block *b)
{
	return b->cap - sizeof *b;
}

/* --- blocks --- */

static int log_add_block(struct byte_log *l, struct blocks *pool, const struct slot_table *table)
{
	uint32_t cap;
	struct log_block *b = block_take(pool, l->first ? LATER_LEN : FIRST_LEN, &cap);

	if (!b || !slot_table_has(table, b, cap)) {
		block_return(pool, b, cap);
		return CSSL_E_NO_MEMORY;
	}
	b->next = NULL;
	b->base = byte_log_end(l);
	b->cap = cap;
	log_in_order();
	if (l->first) {
		l->last->next = b;
	} else {
		l->first = b;
		l->begin = b->base;
	}
	l->last = b;
	return 0;
}

int byte_log_append(
	struct byte_log *l, struct blocks *pool, const struct slot_table *table, const uint8_t *data, size_t len)
{
	while (len) {
		const uint64_t end = byte_log_end(l);
		size_t used = l->first ? (size_t)(end - l->last->base) : 0;
		if (!l->first || used == log_room_of(l->last)) {
			if (log_add_block(l, pool, table) < 0)
				return CSSL_E_NO_MEMORY;
			used = 0;
		}
		const size_t room = log_room_of(l->last) - used, n = len < room ? len : room;
		memcpy(l->last->data + used, data, n);
		log_set_end(l, end + n);
		data += n;
		len -= n;
	}
	return 0;
}

static void log_drop_first(struct byte_log *l, struct blocks *pool)
{
	struct log_block *b = l->first;

	l->first = b->next;
	log_in_order();
	if (l->first)
		l->begin = l->first->base;
	block_return(pool, b, b->cap);
}

/* The last block stays, and is written from its front again. */
void byte_log_forget(struct byte_log *l, struct blocks *pool, uint64_t needed)
{
	if (!l->first || needed <= l->begin)
		return;
	while (l->first->next && l->first->next->base <= needed)
		log_drop_first(l, pool);
	if (!l->first->next && needed == byte_log_end(l))
		l->first->base = l->begin = needed;
}

void byte_log_drop(struct byte_log *l, struct blocks *pool)
{
	while (l->first)
		log_drop_first(l, pool);
}

void byte_log_begin(struct byte_log *l, struct blocks *pool, uint64_t from)
{
	byte_log_drop(l, pool);
	log_set_end(l, from);
}

/* --- after a death --- */

static bool log_is_sane(const struct slot_table *table, const struct log_block *b)
{
	return (uintptr_t)b % _Alignof(struct log_block) == 0 && slot_table_has(table, b, sizeof *b) &&
	       b->cap > sizeof *b && b->cap <= SLABS_BLOCK_MAX && slot_table_has(table, b, b->cap);
}

/* The bases rise from block to block, so the walk ends. */
int byte_log_copy(const struct byte_log *l, const struct slot_table *table, uint64_t from, uint8_t *out, size_t len)
{
	const uint64_t end = byte_log_end(l);
	const struct log_block *before = NULL;

	if (from > end || end - from != len)
		return CSSL_E_RANGE;
	for (const struct log_block *b = l->first; len; before = b, b = b->next) {
		if (!log_is_sane(table, b) || b->base > from || (before && b->base <= before->base))
			return CSSL_E_RANGE;
		const uint64_t at = from - b->base;
		if (at < log_room_of(b)) {
			const size_t room = log_room_of(b) - (size_t)at, n = len < room ? len : room;
			memcpy(out, b->data + at, n);
			out += n;
			from += n;
			len -= n;
		}
	}
	return 0;
}
