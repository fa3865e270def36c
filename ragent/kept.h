/* kept.h: the client records of one connection that are not consumed yet, in order, whole. They are sent to the owner
 * as link credit allows, and again to the next owner when the connection moves. Pure: bytes in, bytes out.
 *
 *      first_record                                       next_record
 *          |----- sent on the current stream -----|--- not sent ---|
 *        start                                  sent              end
 */
#ifndef CSSL_RAGENT_KEPT_H
#define CSSL_RAGENT_KEPT_H

#include <stddef.h>
#include <stdint.h>

#include "ragent/block_pool.h"

/* Embedded; zero is an empty queue at the connection's first record. */
struct kept {
	uint8_t *data; /* NULL while empty */
	uint32_t cap, start, sent, end;
	uint64_t first_record; /* number of the record at start, from 0 */
	uint64_t next_record;  /* number of the record that comes next */
};

/* Append @records whole records of @len bytes (copied). 0, CSSL_E_NO_MEMORY, or CSSL_E_TOO_LONG above half of
 * BLOCK_LARGEST. */
int kept_append(struct kept *k, struct block_pool *pool, const uint8_t *data, size_t len, unsigned records);

/* Whole records at the head of what is not sent, at most @max bytes: *data and the number of bytes; 0: none. */
size_t kept_unsent(const struct kept *k, size_t max, const uint8_t **data);
/* @len bytes of it were sent. */
void kept_mark_sent(struct kept *k, size_t len);
/* How many records were sent on the current stream. */
uint64_t kept_sent_records(const struct kept *k);
/* Nothing was sent on the stream that begins now. */
void kept_rewind(struct kept *k);

/* Drop the records below number @record. 0, or CSSL_E_RANGE (nothing changed): already dropped further, or beyond what
 * was sent. */
int kept_consume(struct kept *k, struct block_pool *pool, uint64_t record);

void kept_clear(struct kept *k, struct block_pool *pool);

static inline size_t kept_len(const struct kept *k)
{
	return k->end - k->start;
}
static inline size_t kept_unsent_len(const struct kept *k)
{
	return k->end - k->sent;
}

#endif
