/* batch.h: protection of an open link. A sealed link sends batches: length (4, of the plaintext) | ciphertext | tag
 * (16), with one AEAD operation each. The opening agreed on the algorithm. The length is associated data. The nonce is
 * a 96-bit counter of this direction's batches, which a key change does not reset. Before 2^24 batches, both sides
 * derive the next key by HKDF-Expand at the same batch, and wipe the old one. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/aead.h"

#define BATCH_HEADER_LEN    4u
#define BATCH_TAG_LEN       AEAD_TAG_LEN
#define BATCH_PLAINTEXT_MAX 65536u
#define BATCH_OVERHEAD      (BATCH_HEADER_LEN + BATCH_TAG_LEN)
#define BATCHES_PER_KEY     (UINT32_C(1) << 23)
#define BATCHES_PER_KEY_MAX ((UINT32_C(1) << 24) - 1)

/* One direction of a sealed link. Not thread-safe. */
struct batch_cipher;

/* @batches_per_key: BATCHES_PER_KEY, or fewer in tests; the same at both ends. NULL: out of memory, an unknown
 * algorithm, or @batches_per_key outside 1..BATCHES_PER_KEY_MAX. */
struct batch_cipher *batch_cipher_create(
	enum aead aead, const uint8_t key[static AEAD_SECRET_LEN], uint32_t batches_per_key);
void batch_cipher_destroy(struct batch_cipher *c);

/* Seal @len bytes (1..BATCH_PLAINTEXT_MAX) at @buf + BATCH_HEADER_LEN in place. The header is written before them and
 * the tag behind them, so @buf has room for len + BATCH_OVERHEAD bytes. 0, or negative: the link must end. */
int batch_seal(struct batch_cipher *c, uint8_t *buf, size_t len);

/* The same for @len bytes at @plain, which does not overlap @buf and is not changed. */
int batch_seal_from(struct batch_cipher *c, uint8_t *buf, const uint8_t *plain, size_t len);

#define BATCH_INCOMPLETE 1

/* Open the batch at the head of @in in place. 0: *plain and *plain_len are set and *taken bytes of @in are used up.
 * BATCH_INCOMPLETE: more input is needed (of @in nothing was changed). Negative: the link must end. */
int batch_open(struct batch_cipher *c, uint8_t *in, size_t len, uint8_t **plain, size_t *plain_len, size_t *taken);

/* For a new process: save writes the state (key material) to @out, and restore makes a cipher that continues there.
 * After the save, the saved cipher refuses with CSSL_E_STATE, because two sealers would repeat nonces. Save: 0, or
 * CSSL_E_STATE: the cipher failed or was saved before. Restore: NULL: a malformed state, or out of memory. */
#define BATCH_STATE_LEN 48u
int batch_cipher_save(struct batch_cipher *c, uint8_t out[static BATCH_STATE_LEN]);
struct batch_cipher *batch_cipher_restore(const uint8_t in[static BATCH_STATE_LEN]);

/* Let the saved cipher continue, after the new process failed. Only legal if the restored cipher has sealed and opened
 * nothing. */
void batch_cipher_resume(struct batch_cipher *c);
