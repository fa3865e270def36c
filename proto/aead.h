/* aead.h: one AEAD operation over a whole message. Messages between CSSL's processes use it (batch.h, datagram.h); the
 * TLS record layer does not. */
#ifndef CSSL_PROTO_AEAD_H
#define CSSL_PROTO_AEAD_H

#include <stddef.h>
#include <stdint.h>

#include "proto/aead_cipher.h"

#define AEAD_SECRET_LEN 32u

enum aead { AEAD_AES_256_GCM = 1, AEAD_CHACHA20_POLY1305 = 2 };

/* The faster one on this CPU: AES-256-GCM if it has AES instructions, else ChaCha20-Poly1305. */
enum aead aead_preferred(void);

/* The algorithm for two sides with these preferences: AES-256-GCM if both prefer it, else ChaCha20-Poly1305. */
enum aead aead_agree(enum aead a, enum aead b);

/* A key that is loaded, for sealing and opening. Not thread-safe. Keys live for seconds to hours, so each fetches its
 * cipher anew (a few us). */
struct aead_key;

/* NULL: out of memory, or the algorithm is unknown to us or to libcrypto. */
struct aead_key *aead_key_create(enum aead aead, const uint8_t secret[static AEAD_SECRET_LEN]);
void aead_key_destroy(struct aead_key *k);

/* Change the secret; algorithm and context stay. 0 or CSSL_E_CRYPTO. */
int aead_key_replace(struct aead_key *k, const uint8_t secret[static AEAD_SECRET_LEN]);

struct aead_message {
	const uint8_t *nonce; /* AEAD_NONCE_LEN */
	const uint8_t *ad;
	size_t ad_len;
	const uint8_t *in;
	size_t len; /* of the plaintext, also when opening */
};

/* Writes m->len bytes to @out (which may be m->in) and AEAD_TAG_LEN bytes to @tag. 0 or CSSL_E_CRYPTO. */
int aead_seal(struct aead_key *k, const struct aead_message *m, uint8_t *out, uint8_t tag[static AEAD_TAG_LEN]);

/* 0; CSSL_E_AUTH: @out was wiped; CSSL_E_CRYPTO. */
int aead_open(struct aead_key *k, const struct aead_message *m, const uint8_t tag[static AEAD_TAG_LEN], uint8_t *out);

#endif
