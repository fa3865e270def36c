/* sealed_copy.h: the sealed copy of a live part that RAgent keeps for the next owner. RAgent cannot open it.
 * XChaCha20-Poly1305 under a subkey of agents.key:
 *   version (1) | epoch (2) | key id length (1) | key id | nonce (24) | ciphertext | tag (16)
 * The nonce is random and begins with the adopt token of the live part, which then has no token inside. So RAgent
 * proves by the copy that it knows the token, and an agent that has this live part already need not open the copy.
 * Associated data: all before the nonce, connection id, listener: a copy opens only for these. The plaintext is an
 * encoded SESS_OBJ with a live part and without a resumption part. */
#pragma once

#include "proto/agents_key.h"
#include "proto/sess_obj.h"

#define SEALED_COPY_VERSION 1u

/* RAgents refuse a longer copy: it would fit no block of memory that outlives their process. */
#define SEALED_COPY_MAX       8180u
/* So this is the longest encoded SESS_OBJ, without a live part, from which copies may be made: there is room for every
 * live part, for what grows with the time, and for the seal. */
#define SEALED_COPY_FACTS_MAX (SEALED_COPY_MAX - 560u)

/* Seal @obj, for its own connection, listener and epoch, under the ring's first key. The nonce begins with the live
 * part's token if there is one, and is random else. Bytes written, or negative. */
ptrdiff_t sealed_copy_seal(const struct key_ring *ring, const struct sess_obj *obj, uint8_t *out, size_t cap);

/* Read the part in clear, not authenticated. RAgent can read no more of a copy. @key_id is terminated. 0 or negative.
 */
struct sealed_copy_label {
	uint16_t epoch;
	char key_id[KEY_ID_MAX + 1];
	uint8_t token[ADOPT_TOKEN_LEN];
};
int sealed_copy_peek(const uint8_t *in, size_t len, struct sealed_copy_label *out);

/* Open a copy. *epoch is the epoch of the owner that sealed it, authenticated. RAgent kept the copy for @age_s seconds:
 * they are subtracted from remaining_s of the live part and added to family_age_s of the facts. 0: @out is filled, free
 * it with sess_obj_destroy(). Negative, with nothing to free: CSSL_E_KEY_UNKNOWN, CSSL_E_AUTH, CSSL_E_VERSION,
 * CSSL_E_EXPIRED (no remaining_s is left), CSSL_E_MISMATCH (the object is of another connection, listener or epoch), or
 * an error of sess_obj_decode(). */
int sealed_copy_open(const struct key_ring *ring, const struct connection_id *connection, const char *listener,
	const uint8_t *in, size_t len, uint32_t age_s, struct sess_obj *out, uint16_t *epoch);
