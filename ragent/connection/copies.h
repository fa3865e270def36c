/* copies.h: the sealed copies of a connection's live part that its owner leaves with RAgent, which cannot open them. A
 * fresh copy is pending until the commits reached its generations: an adopter can ratchet keys forward from an older
 * copy, never backward from a newer one. One pending copy is enough for the same reason. Pure.
 */
#ifndef CSSL_RAGENT_COPIES_H
#define CSSL_RAGENT_COPIES_H

#include "ragent/connection/position.h"

#define COPY_MAX_LEN 8192u /* live part, facts and a client certificate's hash; more is no copy of ours */

struct sealed_blob {
	uint32_t read_generation, write_generation;
	uint32_t len;
	uint8_t data[];
};

/* Embedded; zero holds none. */
struct copies {
	struct sealed_blob *current, *pending;
};

/* From KEPT or HANDED_OFF: current at once. From COPY: pending until copies_commit(). Copied. 0, CSSL_E_TOO_LONG,
 * CSSL_E_NO_MEMORY (nothing changed). An empty @data is no copy: 0. */
int copies_set(struct copies *c, const uint8_t *data, size_t len, uint32_t read_generation, uint32_t write_generation);
int copies_offer(
	struct copies *c, const uint8_t *data, size_t len, uint32_t read_generation, uint32_t write_generation);

/* The position moved. 1: the pending copy became current; else 0. */
int copies_commit(struct copies *c, const struct position *p);

void copies_clear(struct copies *c);

#endif
