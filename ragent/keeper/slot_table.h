/* slot_table.h: the memory of RAgent's connections, which outlives RAgent. The next RAgent goes on with the connections
 * of which it says all. It is shared with the keeper, which never reads it.
 *
 * It consists of chunks of SLAB_LEN bytes. Each worker takes chunks as its slabs (net/memory/slabs.h): some for
 * connections, each of which begins with a slot; some for what belongs to them. A chunk is marked with the worker and
 * the life that took it. The next RAgent makes connections of its own, in chunks of its own, of what it reads in those
 * of former lives, and then gives the former ones back.
 *
 *     FREE -- a connection begins --> VOID <-----> SAVED (it is quiet: all is in its memory)
 *       ^                               ^            ^  |
 *       +------- it is freed -----------+            |  v
 *                                       +-------> FOLLOWED (it is busy: its trail tells what changes)
 *                                       |            ^  |
 *                                       |            |  v
 *                                       +-------> CHANGING (its trail tells how it was before this change)
 *
 *     SAVED, FOLLOWED, CHANGING -- a process dies --> RESTORING_SAVED, RESTORING_FOLLOWED (by the next RAgent)
 *
 * A slot says something only while it is SAVED, FOLLOWED or CHANGING. What a SAVED one says holds if the kernel's
 * counts of the socket are those in the slot. Restoring changes neither what a slot says nor its socket. So one that is
 * found RESTORING says what it said before, if the process was killed from outside; its copy in memory of that process,
 * if it is complete, says the same. If the process crashed or hung, the restoring of this connection may have ended it:
 * the connection is given up.
 *
 * It has no format number: all lives since the first one are forks of one keeper, so they have the same code and the
 * same cluster file. A new program (--replace) has a table of its own and gets the connections by the handover.
 *
 * RAgent can be attacked, so the next one believes nothing of this memory without a check of its range.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/memory/slabs.h"

#define TABLE_WORKERS_MAX 4096u

enum slot_state {
	SLOT_FREE,
	SLOT_VOID,
	SLOT_SAVED,
	SLOT_FOLLOWED,
	SLOT_CHANGING,
	SLOT_RESTORING_SAVED,
	SLOT_RESTORING_FOLLOWED
};

/* The beginning of a connection; while the connection lives, these values are only here. The first word is not the
 * state, because a free block of a slab has a pointer there. */
struct table_slot {
	uint64_t cookie;        /* SO_COOKIE: identifies the socket; 0: not read yet */
	uint64_t bytes_read;    /* bytes of the client that were used; or SLOT_BYTES_UNKNOWN */
	uint64_t bytes_written; /* bytes that the client's TCP connection took */
	void *trail;            /* what the next process needs of a busy connection, in this memory; NULL: nothing */
	int32_t fd;             /* its descriptor while it has no stream; found again after a death; -1: none */
	uint16_t front;         /* number of its listener */
	_Atomic uint8_t state;  /* enum slot_state */
};

/* The kernel has no count: this connection ends at a death. */
#define SLOT_BYTES_UNKNOWN UINT64_MAX

struct slot_table;

/* @len: bytes of all chunks, rounded up; an eighth of them if the system does not give so many addresses. Memory is
 * used only where it is needed. @connection_len: bytes of a connection. NULL: out of memory. */
struct slot_table *slot_table_create(uint64_t len, size_t connection_len);
/* Bytes of all chunks. */
uint64_t slot_table_len(const struct slot_table *t);
/* Call it in each process that has the table. NULL is legal. */
void slot_table_destroy(struct slot_table *t);
/* In each process, before its threads run: it is life number @life. Chunks that others took belong to former lives.
 * NULL is legal. */
void slot_table_begin_life(struct slot_table *t, uint32_t life);

/* Give memory back that was given to the table and not taken again since the last call. Thread-safe. NULL is legal. */
void slot_table_cool(struct slot_table *t);

/* A worker takes its slabs from this. Embedded. */
struct table_share {
	struct slab_source source;
	struct slot_table *table;
	uint32_t mark;
	uint64_t refused; /* slabs for which the table had no room; their content ends with the process */
};
enum table_use { TABLE_CONNECTIONS = 1, TABLE_BELONGINGS };
/* @t NULL: the source is empty. @worker: below TABLE_WORKERS_MAX. */
void slot_table_share_init(struct table_share *s, struct slot_table *t, enum table_use use, unsigned worker);

/* Are the @len bytes from @at on in the table? Without a table: false. */
bool slot_table_has(const struct slot_table *t, const void *at, size_t len);

/* --- after a death --- */

/* Walks from the first slot on. Embedded; zero begins. */
struct slot_walk {
	uint32_t chunk, block;
};
/* The next slot of @worker's former lives that is not FREE. NULL: there are no more. */
struct table_slot *slot_table_next(struct slot_table *t, struct slot_walk *w, unsigned worker);
/* Is @at the beginning of a connection of a former life? */
bool slot_table_has_slot(struct slot_table *t, const void *at);
/* Give back all chunks of @worker's former lives. */
void slot_table_forget_former(struct slot_table *t, unsigned worker);
/* The same for one chunk, from number *@from on, which rises; 0 begins. false: there is none any more. The system
 * takes its time for each. */
bool slot_table_forget_next(struct slot_table *t, unsigned worker, uint32_t *from);

/* The order of the stores matters only to the next process, which reads when this one is dead. So it is enough that
 * the compiler keeps the order. */
static inline void table_slot_to(struct table_slot *s, enum slot_state to)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&s->state, to, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}
static inline enum slot_state table_slot_state(const struct table_slot *s)
{
	return (enum slot_state)atomic_load_explicit(&s->state, memory_order_relaxed);
}

/* Does its trail say something? */
static inline bool table_slot_has_trail(enum slot_state state)
{
	return state == SLOT_FOLLOWED || state == SLOT_CHANGING;
}
/* Does it say something? */
static inline bool table_slot_has_all(const struct table_slot *s)
{
	return table_slot_state(s) == SLOT_SAVED || table_slot_has_trail(table_slot_state(s));
}

static inline bool table_slot_is_restored(const struct table_slot *s)
{
	return table_slot_state(s) == SLOT_RESTORING_SAVED || table_slot_state(s) == SLOT_RESTORING_FOLLOWED;
}
/* It says all, and its connection is restored now. */
static inline void table_slot_restore(struct table_slot *s)
{
	table_slot_to(s, table_slot_state(s) == SLOT_SAVED ? SLOT_RESTORING_SAVED : SLOT_RESTORING_FOLLOWED);
}
/* Its restoring is undone. */
static inline void table_slot_unrestore(struct table_slot *s)
{
	table_slot_to(s, table_slot_state(s) == SLOT_RESTORING_SAVED ? SLOT_SAVED : SLOT_FOLLOWED);
}
