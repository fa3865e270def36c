/* own_provider_internal.h: shared by the algorithms of own_provider.h. */
#ifndef CSSL_SSLAGENT_OWN_PROVIDER_INTERNAL_H
#define CSSL_SSLAGENT_OWN_PROVIDER_INTERNAL_H

#include <openssl/core.h>
#include <openssl/evp.h>

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

/* The context of key derivations without state between two calls. */
void *own_kdf_new(void *of);
void own_kdf_free(void *kdf);

extern const OSSL_ALGORITHM own_mac_algorithms[], own_key_algorithms[], own_exchange_algorithms[];
/* Give the capability TLS-GROUP of X25519 to @callback. Returns what @callback returns. */
int own_x25519_group(OSSL_CALLBACK *callback, void *callback_ctx);

extern const OSSL_DISPATCH tls13_kdf_functions[], tls12_prf_functions[];

#endif
