/* aead.h: the AEADs of libcrypto, called at their provider (provider-cipher(7)) and not by EVP. EVP asks the provider
 * for the lengths of key and nonce at each operation, and names each parameter: an operation on 50 bytes takes 190 ns
 * so, and 320 ns by EVP. The TLS record layer uses ciphers and contexts. Messages between CSSL's processes (batch.h,
 * datagram.h) use keys: one operation over a whole message.
 */
#pragma once

#include <openssl/types.h>
#include <stddef.h>
#include <stdint.h>

#define AEAD_NONCE_LEN  12u
#define AEAD_TAG_LEN    16u
#define AEAD_SECRET_LEN 32u

/* --- ciphers and contexts --- */

struct aead_cipher;

/* By its name in OpenSSL. NULL: out of memory, or no provider of @library has it. It may be used by many threads. */
struct aead_cipher *aead_cipher_fetch(OSSL_LIB_CTX *library, const char *name);
void aead_cipher_free(struct aead_cipher *c); /* after its contexts; NULL: nothing happens */

/* A key that is loaded (some 1 KB), for one thread at a time. */
struct aead_context;
struct aead_context *aead_context_create(const struct aead_cipher *c);       /* without a key; NULL: out of memory */
void aead_context_free(const struct aead_cipher *c, struct aead_context *x); /* wipes it; NULL: nothing happens */

/* An operation is one call of each of these, in this order; run() may be called several times, and ad() not at all.
 * They return 0 or CSSL_E_CRYPTO, and open() also CSSL_E_AUTH: the plaintext is not to be used. */
enum aead_direction { AEAD_OPENS, AEAD_SEALS };
/* @key has the cipher's length; NULL: that of the operation before. @nonce: AEAD_NONCE_LEN; NULL: only load the key. */
int aead_context_begin(const struct aead_cipher *c, struct aead_context *x, enum aead_direction direction,
	const uint8_t *key, const uint8_t *nonce);
int aead_context_ad(const struct aead_cipher *c, struct aead_context *x, const uint8_t *ad, size_t len);
/* @out has @len bytes. It is @in, or does not overlap it. */
int aead_context_run(const struct aead_cipher *c, struct aead_context *x, const uint8_t *in, size_t len, uint8_t *out);
int aead_context_seal(const struct aead_cipher *c, struct aead_context *x, uint8_t tag[static AEAD_TAG_LEN]);
int aead_context_open(const struct aead_cipher *c, struct aead_context *x, const uint8_t tag[static AEAD_TAG_LEN]);

/* --- keys --- */

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
