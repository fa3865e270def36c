/* sealed_copy.h: the copy of a SESS_OBJ's live part that an owner leaves with RAgent, which cannot open it.
 * XChaCha20-Poly1305 under a subkey of agents.key: version (1) | key id length (1) | key id | nonce (24) | ciphertext | tag.
 * Associated data: all before the nonce, connection id, listener, epoch. */
#ifndef CSSL_PROTO_SEALED_COPY_H
#define CSSL_PROTO_SEALED_COPY_H

#include "proto/agents_key.h"
#include "proto/sess_obj.h"

/* What a copy is bound to. */
struct copy_binding {
	struct connection_id connection;
	const char *listener;
	uint16_t epoch; /* of the ownership that sealed it */
};

/* Bytes a copy of @obj takes, or negative. */
ptrdiff_t sealed_copy_len(const struct key_ring *ring, const struct sess_obj *obj);

/* Seal under the ring's first key with a random nonce. Bytes written, or negative. */
ptrdiff_t sealed_copy_seal(const struct key_ring *ring, const struct copy_binding *to, const struct sess_obj *obj,
			   uint8_t *out, size_t cap);

/* Open; the epoch of the binding stands in the copy in clear and authenticated, and is returned in *epoch.
 * 0, CSSL_E_KEY_UNKNOWN, CSSL_E_AUTH, CSSL_E_VERSION, CSSL_E_EXPIRED (remaining_s ran out, judged by @age_s, the time
 * RAgent kept it), or a decode error. */
int sealed_copy_open(const struct key_ring *ring, const struct connection_id *connection, const char *listener,
		     const uint8_t *in, size_t len, uint32_t age_s, struct sess_obj *out, uint16_t *epoch);

#endif
