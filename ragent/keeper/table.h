/* table.h: what RAgent leaves of its connections in memory shared with the keeper, so that the next RAgent can go on
 * with them: fixed slots, one for each connection at most. A slot says something only while it is SAVED; whoever works
 * on its connection makes it VOID first. What it says holds if the kernel's counts of the socket are those in the slot.
 *
 * A slot belongs to one worker. The next RAgent has the same number of workers, and reads the slots before their
 * threads run.
 */
#ifndef CSSL_RAGENT_TABLE_H
#define CSSL_RAGENT_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_RUN 64u /* slots that a worker takes at once */

enum slot_state {
	SLOT_FREE,
	SLOT_VOID, /* a connection's, but it says nothing now */
	SLOT_SAVED
};

struct table_slot {
	_Atomic uint32_t state; /* enum slot_state */
	uint32_t worker;
	uint64_t cookie;                       /* SO_COOKIE: which socket it is */
	uint64_t bytes_read, bytes_written;    /* when it was saved */
	int32_t fd;                            /* after a death: its descriptor; -1: none was found */
	_Alignas(max_align_t) uint8_t saved[]; /* the saver's: table_create() says how long */
};

struct table;

/* @slots in shared memory that costs something only where it is used; @saved_len bytes in each. NULL: no memory. */
struct table *table_create(unsigned slots, size_t saved_len);
/* In each process that has it; NULL is legal. */
void table_destroy(struct table *t);

/* Of the slots that were ever taken; NULL: @index is beyond them. */
struct table_slot *table_slot(struct table *t, uint32_t index);

/* What one worker can take from. Embedded; zero without a table gives nothing. */
struct slot_pool {
	struct table *table;
	uint32_t worker;
	struct table_slot **free;
	size_t free_count, free_cap;
};

/* The worker's slots that are not SAVED with a descriptor are free from now on. 0 or CSSL_E_NO_MEMORY. */
int slot_pool_init(struct slot_pool *p, struct table *t, uint32_t worker);
void slot_pool_clear(struct slot_pool *p);
/* VOID. NULL: none is left, or there is no table. */
struct table_slot *slot_pool_take(struct slot_pool *p);
void slot_pool_give(struct slot_pool *p, struct table_slot *s);

/* The order of the stores matters to the next process only, which reads when this one is dead: the compiler keeps it.
 */
static inline void table_slot_void(struct table_slot *s)
{
	atomic_store_explicit(&s->state, SLOT_VOID, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}
static inline void table_slot_saved(struct table_slot *s)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&s->state, SLOT_SAVED, memory_order_relaxed);
}

#endif
