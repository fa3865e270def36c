/* record_aead.h: the AEAD operation of TLS records, for many keys on one thread.
 *
 * Ciphers are fetched once. A loaded context costs some 1.1 KB and saves a key expansion (about 120 ns) per record, so
 * contexts form a bounded LRU per cipher: busy keys keep theirs, idle keys are loaded again for each record. Not
 * thread-safe.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/aead.h"
#include "proto/cipher_suite.h"

#define RECORD_TAG_LEN       AEAD_TAG_LEN
#define RECORD_AEAD_CONTEXTS 256u /* per cipher */

enum record_cipher { RECORD_AES_128_GCM, RECORD_AES_256_GCM, RECORD_CHACHA20_POLY1305, RECORD_CIPHER_COUNT };

/* The cipher of a suite's `aead` name. CSSL_E_TYPE: not one of these ciphers. */
int record_cipher_find(const char *aead, enum record_cipher *out);

struct record_aead;
struct record_aead *record_aead_create(void);    /* NULL: out of memory, or libcrypto lacks a cipher */
void record_aead_destroy(struct record_aead *a); /* after the last key was dropped */

/* A key of one direction of one connection. Embedded; set the first two, zero the third. Its address must not change
 * between uses. */
struct record_key {
	const uint8_t *bytes; /* the holder's memory, of the cipher's key length */
	enum record_cipher cipher;
	struct record_context *context; /* the context that has it loaded, or NULL */
};

/* Forget and wipe the loaded key. Call it before @k->bytes change or are freed. */
void record_key_drop(struct record_aead *a, struct record_key *k);

struct record_operation {
	uint8_t nonce[AEAD_IV_LEN];
	const uint8_t *ad;
	size_t ad_len;
	const uint8_t *in;
	size_t len;
	uint8_t *out; /* @in itself, or memory that does not overlap it */
};

/* Seal @o->in, with the byte *@tail after it when @tail is not NULL (the inner content type of TLS 1.3), then the tag:
 * writes o->len + (tail != NULL) + RECORD_TAG_LEN bytes. 0 or CSSL_E_CRYPTO. */
int record_aead_seal(
	struct record_aead *a, struct record_key *k, const struct record_operation *o, const uint8_t *tail);

/* Open o->len bytes. Their tag follows them at o->in + o->len. 0; CSSL_E_AUTH: do not use @out; CSSL_E_CRYPTO. */
int record_aead_open(struct record_aead *a, struct record_key *k, const struct record_operation *o);
