/* kept_bytes.h: plaintext that a connection has to keep for a while, and that is wiped. It is a part by itself, because
 * its memory grows without realloc(), so that no plaintext is left behind.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The longest head of a request that is kept; up to there, a block grows no larger. Longer ones, with their records,
 * are passed on in pieces: strangers' heads must not take the memory that other connections need. */
#define HEAD_KEPT_MAX 8192u

/* Members may be read. NULL: none. */
struct kept_bytes {
	uint32_t len, cap;
	uint8_t bytes[];
};

/* Append. 0 or CSSL_E_NO_MEMORY: nothing has changed. */
int kept_bytes_add(struct kept_bytes **k, const uint8_t *data, size_t len);
/* Wipe and free; *k is NULL then. */
void kept_bytes_wipe(struct kept_bytes **k);
