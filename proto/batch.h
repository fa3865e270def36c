/* batch.h: protection of an open link. A sealed link sends batches: length (4, of the plaintext) | ciphertext | tag (16), one
 * AES-256-GCM (ChaCha20-Poly1305 where the CPU has no AES: said in the opening's transcript by both) operation through EVP per batch,
 * nonce = 96-bit counter, the length is associated data; a new key by HKDF before 2^24 batches. Plaintext <= 64 KiB. */
#ifndef CSSL_PROTO_BATCH_H
#define CSSL_PROTO_BATCH_H

#include <stddef.h>
#include <stdint.h>

#define BATCH_HEADER_LEN 4u
#define BATCH_TAG_LEN 16u
#define BATCH_PLAINTEXT_MAX 65536u
#define BATCH_OVERHEAD (BATCH_HEADER_LEN + BATCH_TAG_LEN)

/* One direction of a sealed link. */
struct batch_cipher;

struct batch_cipher *batch_cipher_create(const uint8_t key[static 32]);
void batch_cipher_destroy(struct batch_cipher *c);

/* Seal @len bytes that stand at @buf + BATCH_HEADER_LEN in place; header and tag are written around them, so @buf has room
 * for len + BATCH_OVERHEAD bytes. 0 or negative. */
int batch_seal(struct batch_cipher *c, uint8_t *buf, size_t len);

#define BATCH_INCOMPLETE 1

/* Open the batch at the head of @in in place. 0: *plain and *plain_len are set and *taken bytes of @in are used up.
 * BATCH_INCOMPLETE: more input is needed. Negative: the link must end. */
int batch_open(struct batch_cipher *c, uint8_t *in, size_t len, uint8_t **plain, size_t *plain_len, size_t *taken);

/* For tests and reload: the state as bytes (key material). */
#define BATCH_STATE_LEN 48u
void batch_cipher_save(const struct batch_cipher *c, uint8_t out[static BATCH_STATE_LEN]);
struct batch_cipher *batch_cipher_restore(const uint8_t in[static BATCH_STATE_LEN]);

#endif
