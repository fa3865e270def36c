/* kept.h: the client records of one connection from its last checkpoint on, in order, whole. They are sent to the owner
 * as link credit allows; the unconsumed ones again to the next owner when the connection moves; all of them when the
 * owner is lost and what it consumed has to be asked again. Pure: bytes in, bytes out.
 *
 *      first_record            consumed_record                         next_record
 *          |--- kept for replay ---|--- sent, unconsumed ---|--- not sent ---|
 *        start                  consumed                  sent              end
 */
#ifndef CSSL_RAGENT_KEPT_H
#define CSSL_RAGENT_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "ragent/connection/block_pool.h"

/* Embedded; zero is an empty queue at the connection's first record. */
struct kept {
	uint8_t *data; /* NULL while empty */
	uint32_t cap, start, consumed, sent, end;
	uint64_t first_record;    /* number of the record at start, from 0 */
	uint64_t consumed_record; /* number of the record at consumed */
	uint64_t next_record;     /* number of the record that comes next */
};

/* Append @records whole records of @len bytes (copied). 0, CSSL_E_NO_MEMORY, or CSSL_E_TOO_LONG above half of
 * BLOCK_LARGEST. */
int kept_append(struct kept *k, struct block_pool *pool, const uint8_t *data, size_t len, unsigned records);

/* Whole records at the head of what is not sent, at most @max bytes: *data and the number of bytes; 0: none. */
size_t kept_unsent(const struct kept *k, size_t max, const uint8_t **data);
/* @len bytes of it were sent. */
void kept_mark_sent(struct kept *k, size_t len);
/* How many unconsumed records were sent on the current stream. */
uint64_t kept_sent_records(const struct kept *k);
/* Nothing was sent on the stream that begins now, which goes on behind what is consumed. */
void kept_rewind(struct kept *k);
/* Nothing that is kept counts as consumed or sent any more. */
void kept_return(struct kept *k);

/* The records below number @record are consumed. 0, or CSSL_E_RANGE (nothing changed): consumed further already, or
 * beyond what was sent. */
int kept_consume(struct kept *k, uint64_t record);
/* Into a smaller block, where there is one that holds what is kept. */
void kept_fit(struct kept *k, struct block_pool *pool);
/* What is consumed will not be replayed. */
void kept_forget_consumed(struct kept *k, struct block_pool *pool);

/* What another process kept: @k has its record numbers; @data are the records, of which @consumed_len bytes were
 * consumed and @sent_len (those among them) sent. 0, CSSL_E_NO_MEMORY, CSSL_E_TOO_LONG, or CSSL_E_RANGE: these are not
 * whole records, or not as many as the numbers say. */
int kept_restore(
	struct kept *k, struct block_pool *pool, const uint8_t *data, size_t len, size_t consumed_len, size_t sent_len);

void kept_clear(struct kept *k, struct block_pool *pool);

/* Bytes that are not consumed: what the client's window counts. */
static inline size_t kept_len(const struct kept *k)
{
	return k->end - k->consumed;
}
static inline size_t kept_unsent_len(const struct kept *k)
{
	return k->end - k->sent;
}
/* Bytes kept for replay only. */
static inline size_t kept_replay_len(const struct kept *k)
{
	return k->consumed - k->start;
}

#endif
