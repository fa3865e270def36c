/* sealed_download.h: what a successor has to know of an answer (download.h), left with RAgent, which cannot open it:
 * XChaCha20-Poly1305 under a subkey of agents.key of its own:
 *   version (1) | key id length (1) | key id | nonce (24) | ciphertext | tag (16)
 * Associated data: all before the nonce, connection id, listener.
 */
#ifndef CSSL_SSLAGENT_SEALED_DOWNLOAD_H
#define CSSL_SSLAGENT_SEALED_DOWNLOAD_H

#include "proto/agents_key.h"
#include "proto/sess_obj.h"
#include "sslagent/service/download.h"

#define SEALED_DOWNLOAD_VERSION 1u
#define SEALED_DOWNLOAD_MAX     (2u + KEY_ID_MAX + 24u + 30u + DOWNLOAD_ETAG_MAX + 16u)

struct download_binding {
	struct connection_id connection;
	const char *listener;
};

/* Seal under the ring's first key with a random nonce. Bytes written, or CSSL_E_TOO_LONG (the listener's name). */
ptrdiff_t sealed_download_seal(const struct key_ring *ring, const struct download_binding *to, const struct download *d,
	uint8_t out[static SEALED_DOWNLOAD_MAX]);

/* 0: @out is filled. CSSL_E_KEY_UNKNOWN, CSSL_E_AUTH, CSSL_E_VERSION, CSSL_E_TRUNCATED, CSSL_E_TRAILING, CSSL_E_RANGE.
 */
int sealed_download_open(const struct key_ring *ring, const struct download_binding *to, const uint8_t *in, size_t len,
	struct download *out);

#endif
