/* own_hmac.h: HMAC (RFC 2104), for the key schedule (tls13_kdf.c) and as an algorithm that OpenSSL fetches. Both passes
 * share one digest context. The user owns it and frees it, and wipes all memory that has held a key. */
#ifndef CSSL_SSLAGENT_OWN_HMAC_H
#define CSSL_SSLAGENT_OWN_HMAC_H

#include <stddef.h>
#include <stdint.h>

#include "sslagent/tls/own_provider_internal.h"

struct own_bytes {
	const uint8_t *data;
	size_t len;
};

struct own_hmac {
	const struct own_hash *hash;
	EVP_MD_CTX *ctx;              /* between begin and end: EVP_DigestUpdate with the message */
	uint8_t outer[OWN_BLOCK_MAX]; /* the key, padded */
};

/* Set hash and ctx before. Returns 1 or 0, as OpenSSL's functions do. */
int own_hmac_begin(struct own_hmac *h, const uint8_t *key, size_t len);
int own_hmac_again(struct own_hmac *h);             /* again under the last key */
int own_hmac_end(struct own_hmac *h, uint8_t *out); /* hash->len bytes */

#endif
