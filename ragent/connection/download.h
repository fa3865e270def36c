/* download.h: a note (doc/words.md) about a response that its owner leaves with RAgent, which cannot open it. With it,
 * another agent can ask the backend for the rest of the response. A service that resolves the loss (smtp) leaves a note
 * about its whole conversation instead, which RAgent keeps beyond checkpoints. Pure.
 */
#ifndef CSSL_RAGENT_DOWNLOAD_H
#define CSSL_RAGENT_DOWNLOAD_H

#include <stdint.h>

#include "ragent/connection/fine_blocks.h"

#define DOWNLOAD_MAX_LEN 16384u /* agents of this release leave less than 1 KiB */

struct download {
	uint32_t len;
	uint8_t data[];
};

/* In both, @from is where the memory comes from, and goes to; NULL: malloc. */

/* *@d, which is NULL, becomes a copy of @data. 0, CSSL_E_TOO_LONG, CSSL_E_NO_MEMORY (it stays NULL). */
int download_make(struct download **d, struct fine_blocks *from, const uint8_t *data, size_t len);
void download_drop(struct download **d, struct fine_blocks *from);

static inline size_t download_len(const struct download *d)
{
	return sizeof *d + d->len;
}

#endif
