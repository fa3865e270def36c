/* kept.h: the client records of one connection from its last checkpoint on, in order, whole. They are sent to the owner
 * as link credit allows; the unconsumed ones again to the next owner when the connection moves; all of them when the
 * owner is lost and what it consumed has to be asked again. Pure: bytes in, bytes out.
 *
 *      first_record            consumed_record                         next_record
 *          |--- kept for replay ---|--- sent, unconsumed ---|--- not sent ---|
 *        start                  consumed                  sent              end
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "ragent/connection/bytes/blocks.h"

/* What the client speaks in clear has no records: there each byte counts as one (connection_clear.c). */
enum kept_unit { KEPT_RECORDS, KEPT_BYTES };

/* Embedded; zero is an empty queue before the connection's first record. */
struct kept {
	uint8_t *data; /* NULL while empty */
	uint32_t cap, start, consumed, sent, end;
	uint64_t first_record;    /* number of the record at start, from 0 */
	uint64_t consumed_record; /* number of the record at consumed */
	uint64_t next_record;     /* number of the record that comes next */
	uint8_t unit;             /* enum kept_unit */
};

/* Append @records complete records of @len bytes in all (copied). 0, CSSL_E_NO_MEMORY, or CSSL_E_TOO_LONG above half
 * of BLOCK_LARGEST. */
int kept_append(struct kept *k, struct blocks *pool, const uint8_t *data, size_t len, unsigned records);

/* The first complete records that are not sent, at most @max bytes: *data, and their length is returned; 0: none. */
size_t kept_unsent(const struct kept *k, size_t max, const uint8_t **data);
/* The next @len bytes were sent. */
void kept_mark_sent(struct kept *k, size_t len);
/* Of the unconsumed records, those below number @record were sent, and no others. 0, or CSSL_E_RANGE (nothing
 * changed): there are not so many. */
int kept_mark_sent_to(struct kept *k, uint64_t record);
/* How many unconsumed records were sent on the current stream. */
uint64_t kept_sent_records(const struct kept *k);
/* A new stream begins: all unconsumed records count as not sent. */
static inline void kept_rewind(struct kept *k)
{
	k->sent = k->consumed;
}
/* All kept records count as neither consumed nor sent. */
static inline void kept_return(struct kept *k)
{
	k->sent = k->consumed = k->start;
	k->consumed_record = k->first_record;
}

/* The records below number @record are consumed. 0, or CSSL_E_RANGE (nothing changed): more are consumed already, or
 * not all of them were sent. */
int kept_consume(struct kept *k, uint64_t record);
/* Move the kept bytes into a smaller block if they fit. */
void kept_fit(struct kept *k, struct blocks *pool);
/* The consumed records will not be replayed: forget them. */
void kept_forget_consumed(struct kept *k, struct blocks *pool);

/* Restore the queue of another process. @k has its record numbers. @data has the records, of which @consumed_len
 * bytes were consumed and @sent_len (including those) were sent. 0, CSSL_E_NO_MEMORY, CSSL_E_TOO_LONG, or
 * CSSL_E_RANGE: these are not complete records, or not as many as the numbers say. */
int kept_restore(
	struct kept *k, struct blocks *pool, const uint8_t *data, size_t len, size_t consumed_len, size_t sent_len);

void kept_clear(struct kept *k, struct blocks *pool);

/* Bytes that are not consumed; these count against the client's window. */
static inline size_t kept_len(const struct kept *k)
{
	return k->end - k->consumed;
}
static inline size_t kept_unsent_len(const struct kept *k)
{
	return k->end - k->sent;
}
/* Bytes that are kept for replay only. */
static inline size_t kept_replay_len(const struct kept *k)
{
	return k->consumed - k->start;
}
