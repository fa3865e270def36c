/* copies.h: the sealed copies of a connection's live part. The owner leaves them with RAgent, which cannot open
 * them. A new copy is pending until the commits reach its generations, because an adopter can compute newer keys
 * from an older copy, but never older keys from a newer one. For the same reason one pending copy is enough. Pure.
 */
#ifndef CSSL_RAGENT_COPIES_H
#define CSSL_RAGENT_COPIES_H

#include "proto/sealed_copy.h"
#include "ragent/connection/fine_blocks.h"
#include "ragent/connection/position.h"

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

/* A copy and the generations of its keys. */
struct copy_offer {
	const uint8_t *data;
	size_t len;
	uint32_t read_generation, write_generation;
};

/* In each of these @from is where the memory of all copies of @c comes from, and goes to; NULL: malloc. */

/* From KEPT or HANDED_OFF: current at once. From COPY: pending until copies_commit(). Copied. 0, CSSL_E_TOO_LONG,
 * CSSL_E_NO_MEMORY (nothing changed). One of no bytes is no copy: 0. */
int copies_set(struct copies *c, struct fine_blocks *from, const struct copy_offer *o);
int copies_offer(struct copies *c, struct fine_blocks *from, const struct copy_offer *o);

/* The position moved. 1: the pending copy became current; else 0. */
int copies_commit(struct copies *c, struct fine_blocks *from, const struct position *p);
/* The memory for the next process does not name the former copy any more. */
void copies_forget_former(struct copies *c, struct fine_blocks *from);

void copies_clear(struct copies *c, struct fine_blocks *from);

static inline size_t sealed_blob_len(const struct sealed_blob *b)
{
	return sizeof *b + b->len;
}

#endif
