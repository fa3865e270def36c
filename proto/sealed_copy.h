/* sealed_copy.h: the copy of a SESS_OBJ's live part that an owner leaves with RAgent, which cannot open it.
 * XChaCha20-Poly1305 under a subkey of agents.key:
 *   version (1) | epoch (2) | key id length (1) | key id | nonce (24) | ciphertext | tag (16)
 * The nonce is random and begins with the adopt token of the live part (which has none inside then): whoever shows the
 * copy shows the token, and an agent that has the same live part from elsewhere need not open the copy.
 * Associated data: all before the nonce (so the epoch too), connection id, listener. The plaintext is an encoded
 * SESS_OBJ with its live part and without its resumption part. */
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

#define SEALED_COPY_VERSION 1u

/* Bytes a copy of @obj takes, or negative. */
ptrdiff_t sealed_copy_len(const struct key_ring *ring, const struct sess_obj *obj);

/* Seal under the ring's first key with a random nonce, of which the live part's token is the beginning where it has
 * one. Bytes written, or negative. CSSL_E_MISMATCH: @to is not what @obj says of itself. */
ptrdiff_t sealed_copy_seal(const struct key_ring *ring, const struct copy_binding *to, const struct sess_obj *obj,
	uint8_t *out, size_t cap);

/* What stands in clear, unauthenticated: all that RAgent can say of a copy. @key_id is terminated. 0 or negative. */
struct sealed_copy_label {
	uint16_t epoch;
	char key_id[KEY_ID_MAX + 1];
	uint8_t token[ADOPT_TOKEN_LEN];
};
int sealed_copy_peek(const uint8_t *in, size_t len, struct sealed_copy_label *out);

/* Open; the epoch of the binding stands in the copy in clear and authenticated, and is returned in *epoch. @age_s, the
 * time RAgent kept it, is taken off the live part's remaining_s and added to the facts' family_age_s. 0: @out is
 * filled, free with sess_obj_destroy(). CSSL_E_KEY_UNKNOWN, CSSL_E_AUTH, CSSL_E_VERSION, CSSL_E_EXPIRED (@age_s reached
 * remaining_s), CSSL_E_MISMATCH (the object is not the binding's), or a decode error: nothing to free. */
int sealed_copy_open(const struct key_ring *ring, const struct connection_id *connection, const char *listener,
	const uint8_t *in, size_t len, uint32_t age_s, struct sess_obj *out, uint16_t *epoch);

#endif
