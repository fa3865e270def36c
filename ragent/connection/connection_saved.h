/* connection_saved.h: what only the memory for the next process has of a connection: the log of the client's bytes, and
 * bytes for the client that no agent holds any more. That a change is saved at all is in connection_body.h.
 */
#pragma once

#include "ragent/connection/bytes/byte_log.h"
#include "ragent/connection/connection_preamble.h"

/* --- the trail: what the next process needs to go on with a busy connection ---
 *
 * In memory that outlives the process: two images of what changes, and two logs. One store says which image is valid,
 * so there is always a whole one. A compact connection has no trail, because nothing of it changes. */

struct trail_image {
	struct connection_now now;
	struct exposure exposure;
	uint64_t first_byte, first_record; /* of the client, that are kept */
	struct preamble_now preamble;
	struct sealed_blob *note;     /* of its busy part, in memory that outlives the process, too */
	uint32_t orders;              /* the same */
	uint8_t resumes, move_answer; /* the same */
};

struct trail {
	struct byte_log log;
	struct byte_log owed;
	_Atomic uint32_t now; /* the valid image: 0 or 1 */
	struct trail_image at[2];
};

static inline struct trail *trail_of(const struct connection *c)
{
	return c->slot.trail;
}

/* Its client sent these bytes, the first of which are those that were not used last time. Call it before anything is
 * done with them. Those that are only discarded need no log. */
void connection_log_input(struct connection *c, const uint8_t *data, size_t len);
/* connection_save_if_changed() while its client's bytes are read; these @len bytes are not used yet. */
void connection_save_amid_input(struct connection *c, const uint8_t *rest, size_t len);

/* The agent of all that is queued for the client forgets it: the next owner begins, or there is none any more. */
static inline void connection_owe_queued(struct connection *c)
{
	if (c->busy && c->now.queued != c->slot.bytes_written)
		c->busy->owed_end = c->now.queued;
}
/* Has its client not got all that no agent holds? */
static inline bool connection_owes(const struct connection *c)
{
	return c->busy && c->busy->owed_end > c->slot.bytes_written;
}

/* Bytes in its logs. */
static inline size_t connection_log_len(const struct connection *c)
{
	const struct trail *t = trail_of(c);

	return t ? (size_t)(byte_log_len(&t->log) + byte_log_len(&t->owed)) : 0;
}
/* To save memory: for a second it has no log, so it would end if this process died. */
void connection_give_up_log(struct connection *c);
/* Its memory is freed, or it needs no trail. */
void connection_forget_trail(struct connection *c);
