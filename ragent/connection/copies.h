/* copies.h: the sealed copies of a connection's live part. The owner leaves them with RAgent, which cannot open
 * them. A new copy is pending until the commits reach its generations, because an adopter can compute newer keys
 * from an older copy, but never older keys from a newer one. For the same reason one pending copy is enough. Pure.
 */
#ifndef CSSL_RAGENT_COPIES_H
#define CSSL_RAGENT_COPIES_H

#include "ragent/connection/position.h"

#define COPY_MAX_LEN 8192u /* live part, facts and a client certificate's hash; a longer one is not from an agent */

struct sealed_blob {
	uint32_t read_generation, write_generation;
	uint32_t len;
	uint8_t data[];
};

/* Embedded; zero means no copy. */
struct copies {
	struct sealed_blob *current, *pending;
};

/* A copy from KEPT or HANDED_OFF becomes current at once. A copy from COPY is pending until copies_commit(). @data
 * is copied. 0, CSSL_E_TOO_LONG, CSSL_E_NO_MEMORY (nothing changed). An empty @data is no copy: 0. */
int copies_set(struct copies *c, const uint8_t *data, size_t len, uint32_t read_generation, uint32_t write_generation);
int copies_offer(
	struct copies *c, const uint8_t *data, size_t len, uint32_t read_generation, uint32_t write_generation);

/* The position changed. 1: the pending copy became current; else 0. */
int copies_commit(struct copies *c, const struct position *p);

void copies_clear(struct copies *c);

#endif
