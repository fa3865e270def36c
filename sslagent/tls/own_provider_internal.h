/* own_provider_internal.h: shared by the algorithms of own_provider.h. HMAC (RFC 2104) and HKDF (RFC 5869) return 1 or
 * 0, as OpenSSL's functions do. */
#pragma once

#include <openssl/core.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sslagent/tls/own_provider.h"

#define OWN_PROVIDER_PROPERTIES "provider=" OWN_PROVIDER_NAME

#define OWN_HASH_MAX  48u
#define OWN_BLOCK_MAX 128u

struct own_hash {
	const char *name, *other_name;
	size_t len, block_len; /* bytes */
	EVP_MD *md;            /* fetched when the provider was loaded */
};

/* By either name, in any case; NULL: another one. */
const struct own_hash *own_hash_named(const char *name);

struct own_bytes {
	const uint8_t *data;
	size_t len;
};

/* Both passes share one digest context. The user sets hash and ctx before, owns ctx and frees it, and wipes all memory
 * that has held a key. */
struct own_hmac {
	const struct own_hash *hash;
	EVP_MD_CTX *ctx;              /* between begin and end: EVP_DigestUpdate with the message */
	uint8_t outer[OWN_BLOCK_MAX]; /* the key, padded */
};
bool own_hmac_key(struct own_hmac *h, struct own_bytes key);
/* All at once, under the last key: that of @parts, one behind the other. */
bool own_hmac_of(struct own_hmac *h, const struct own_bytes *parts, unsigned count, uint8_t *out);

/* Writes h->hash->len bytes to @out. An empty @salt counts as hash->len zeros (RFC 5869 2.2). */
bool own_hkdf_extract(struct own_hmac *h, struct own_bytes salt, struct own_bytes key, uint8_t *out);
/* Writes @len bytes to @out. Refuses more than 255 * hash->len bytes (RFC 5869 2.3). */
bool own_hkdf_expand(struct own_hmac *h, struct own_bytes key, struct own_bytes info, uint8_t *out, size_t len);

extern const OSSL_ALGORITHM own_mac_algorithms[], own_key_algorithms[], own_exchange_algorithms[];
/* Give the capability TLS-GROUP of X25519 to @callback. Returns what @callback returns. */
int own_x25519_group(OSSL_CALLBACK *callback, void *callback_ctx);
