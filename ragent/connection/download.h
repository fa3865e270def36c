/* download.h: a note (doc/words.md) about a response that its owner leaves with RAgent, which cannot open it. With it,
 * another agent can ask the backend for the rest of the response. A service that resolves the loss (smtp) leaves a note
 * about its whole conversation instead, which RAgent keeps beyond checkpoints. Pure.
 */
#ifndef CSSL_RAGENT_DOWNLOAD_H
#define CSSL_RAGENT_DOWNLOAD_H

#include <stddef.h>
#include <stdint.h>

#define DOWNLOAD_MAX_LEN 16384u /* a request head and a few numbers, sealed */

struct download {
	uint32_t len;
	uint8_t data[];
};

/* *@d becomes a copy of @data. 0, CSSL_E_TOO_LONG, CSSL_E_NO_MEMORY (nothing changed). */
int download_set(struct download **d, const uint8_t *data, size_t len);
void download_drop(struct download **d);

#endif
