/* trail.h: what the next process needs to go on with a busy connection: two images of what changes, the log
 * of the client's bytes, and the bytes for the client that no agent holds any more (connection_saved.c). One store says
 * which image is valid, so there is always a whole one. In memory that outlives the process. A compact connection has
 * no trail, because nothing of it changes.
 */
#ifndef CSSL_RAGENT_TRAIL_H
#define CSSL_RAGENT_TRAIL_H

#include "ragent/connection/bytes/byte_log.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_saved.h"

struct trail_image {
	struct connection_now now;
	struct exposure exposure;
	uint64_t first_byte, first_record; /* of the client, that are kept */
	struct preamble_now preamble;
	struct sealed_blob *download; /* of its busy part, in memory that outlives the process, too */
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

#endif
