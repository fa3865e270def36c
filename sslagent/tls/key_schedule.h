/* key_schedule.h: from secrets to record keys: HKDF-Expand-Label of TLS 1.3 (RFC 8446 7.1-7.3, with the KeyUpdate step)
 * and the TLS 1.2 key block (RFC 5246 6.3). */
#pragma once

#include <openssl/kdf.h>

#include "proto/cipher_suite.h"
#include "proto/sess_obj.h"
#include "sslagent/tls/tls_library.h"

/* A TLS13-KDF, fetched once, for a thread; by the algorithms of @a. EVP_KDF_CTX_free() frees it. NULL: out of memory,
 * or libcrypto lacks it. */
EVP_KDF_CTX *key_schedule_create(enum tls_algorithms a);

/* TLS 1.3: fill key and iv of @d from its secret. 0 or CSSL_E_CRYPTO. */
int key_schedule_derive(EVP_KDF_CTX *k, const struct cipher_suite *suite, struct direction_keys *d);

/* TLS 1.3: the secret of the next generation (RFC 8446 7.2); @out may be @secret. 0 or CSSL_E_CRYPTO. */
int key_schedule_next_secret(EVP_KDF_CTX *k, const struct cipher_suite *suite, const uint8_t *secret, uint8_t *out);

/* TLS 1.2: the length in bytes of the keys and ivs of both directions; and cut them from the beginning of a key block.
 */
#define KEY_BLOCK_MAX (2u * (AEAD_KEY_MAX + AEAD_IV_LEN))
size_t key_schedule_block_len(const struct cipher_suite *suite);
void key_schedule_cut_block(const struct cipher_suite *suite, const uint8_t *block, struct direction_keys *client_write,
	struct direction_keys *server_write);

/* TLS 1.2: keys and ivs of both directions, by the PRF of @a. Any thread may call it. 0 or CSSL_E_CRYPTO. */
struct tls12_secrets {
	const uint8_t *master;                        /* 48 bytes */
	const uint8_t *client_random, *server_random; /* 32 bytes each */
};
int key_schedule_expand_block(enum tls_algorithms a, const struct cipher_suite *suite, const struct tls12_secrets *s,
	struct direction_keys *client_write, struct direction_keys *server_write);
