/* copies.h: what owners leave with RAgent, which cannot open it: the sealed copies of a connection's live part, and
 * notes (doc/words.md) about the response under way. With a note, another agent can ask the backend for the rest of the
 * response. A service that resolves the loss (smtp) leaves a note about its whole conversation instead, which RAgent
 * keeps beyond checkpoints.
 *
 * A new copy is pending until the commits reach its generations, because an adopter can compute newer keys
 * from an older copy, but never older keys from a newer one. For the same reason one pending copy is enough. Pure.
 */
#pragma once

#include "proto/sealed_copy.h"
#include "ragent/connection/bytes/blocks.h"
#include "ragent/connection/ownership/position.h"

/* A copy, or a note: then its generations are 0. */
struct sealed_blob {
	uint32_t read_generation, write_generation;
	uint32_t len;
	uint8_t data[];
};

/* Such a blob fits a block that outlives the process. */
#define COPY_MAX_LEN (FINE_BLOCK_MAX - sizeof(struct sealed_blob))
_Static_assert(SEALED_COPY_MAX <= COPY_MAX_LEN, "each copy from an agent fits");

/* Embedded; zero means no copy. */
struct copies {
	struct sealed_blob *current, *pending;
	struct sealed_blob *former; /* current before; the next process may still need it */
};

/* Embedded; zero means no note. */
struct note {
	struct sealed_blob *current; /* NULL: none */
	struct sealed_blob *former;  /* before the last change; the next process may still need it */
};

/* A copy and the generations of its keys. */
struct copy_offer {
	const uint8_t *data;
	size_t len;
	uint32_t read_generation, write_generation;
	enum { COPY_ALONE, COPY_OF_LIVE } of; /* from COPY: pending until copies_commit(); KEPT, HANDED_OFF: at once */
};

/* In each of these @from is where the memory of all blobs comes from, and goes to; NULL: malloc. */

/* NULL is legal for *@place, which is NULL then. When another image for the next process (connection_saved.h) is valid,
 * drop the former copy and the former note by this. */
void sealed_blob_drop(struct sealed_blob **place, struct blocks *from);

/* Copied. 0, CSSL_E_TOO_LONG, CSSL_E_NO_MEMORY (nothing changed). One of no bytes is no copy: 0. */
int copies_offer(struct copies *c, struct blocks *from, const struct copy_offer *o);

/* The position moved. 1: the pending copy became current; else 0. */
bool copies_commit(struct copies *c, struct blocks *from, const struct position *p);

void copies_clear(struct copies *c, struct blocks *from);

/* The note is this one now. Copied. 0, CSSL_E_TOO_LONG (also of no bytes), CSSL_E_NO_MEMORY (nothing changed). */
int note_set(struct note *n, struct blocks *from, const uint8_t *data, size_t len);
/* There is none now. */
void note_drop(struct note *n, struct blocks *from);

static inline size_t sealed_blob_len(const struct sealed_blob *b)
{
	return sizeof *b + b->len;
}
