/* byte_log.h: bytes of one direction of a client's TCP connection that the next process may need, in memory that
 * outlives this process. One log has what RAgent has read, from the first kept record on. The bytes are appended before
 * anything else is done with them. Bytes that were read and not yet appended when the process died are in its worker's
 * read buffer, which is such memory, too. Another log has bytes for the client that no agent holds
 * (connection_saved.h).
 *
 * Bytes are counted from the first one of this direction. A log is a chain of blocks. Each change is complete with one
 * store, so at every moment the next process finds all bytes from the last forgotten one on.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "ragent/connection/bytes/blocks.h"

struct slot_table;

struct log_block {
	struct log_block *next; /* NULL: this is the last one */
	uint64_t base;          /* number of the byte at data[0] */
	uint32_t cap;           /* bytes of the whole block */
	uint8_t data[];
};

/* In memory that outlives the process; zero: there are no bytes, and the next one is number 0. */
struct byte_log {
	struct log_block *first; /* NULL: there are no bytes */
	struct log_block *last;  /* of this process only */
	_Atomic uint64_t end;    /* number of the byte after the last one */
	uint64_t begin;          /* of this process only: the base of @first, which is seldom in the cache */
};

/* It begins with byte number @from, without any of before. */
void byte_log_begin(struct byte_log *l, struct blocks *pool, uint64_t from);
/* The blocks come from @pool, and have to be in @table. 0; CSSL_E_NO_MEMORY: not all bytes are in the log, so it is
 * good for nothing until it was dropped. */
int byte_log_append(
	struct byte_log *l, struct blocks *pool, const struct slot_table *table, const uint8_t *data, size_t len);
/* Nobody needs the bytes before number @needed. */
void byte_log_forget(struct byte_log *l, struct blocks *pool, uint64_t needed);
void byte_log_drop(struct byte_log *l, struct blocks *pool);

static inline uint64_t byte_log_end(const struct byte_log *l)
{
	return atomic_load_explicit(&l->end, memory_order_relaxed);
}

/* Bytes that the log keeps. */
static inline uint64_t byte_log_len(const struct byte_log *l)
{
	return l->first ? byte_log_end(l) - l->begin : 0;
}

/* After a death, of a process that may have written anything: copies the @len bytes from number @from on, which are all
 * up to the end. 0; CSSL_E_RANGE: they are not all in @table. */
int byte_log_copy(const struct byte_log *l, const struct slot_table *table, uint64_t from, uint8_t *out, size_t len);
