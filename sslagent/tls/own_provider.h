/* own_provider.h: a provider of algorithms within this process, beside those that OpenSSL has by default or by its
 * configuration. OpenSSL looks up its own algorithms by name for each use, and a handshake uses these often: the key
 * schedule of TLS 1.3 and the PRF of TLS 1.2 (own_provider.c) and HMAC (own_hmac.c), all over SHA-256 and SHA-384.
 * X25519 (own_x25519.c) uses libsodium, which is faster. */
#pragma once

#include <openssl/types.h>
#include <stddef.h>
#include <stdint.h>

#define OWN_PROVIDER_NAME "cssl"

/* Register the provider in @library, for the life of @library. At most once in a process. 0 or CSSL_E_CRYPTO. */
int own_provider_load(OSSL_LIB_CTX *library);

/* Compare its algorithms with OpenSSL's own implementation in @library. 0: all results agree; CSSL_E_MISMATCH. */
int own_provider_check(OSSL_LIB_CTX *library);

/* Set the callback that gets, on this thread, application traffic secrets (TLS 1.3) and key blocks (RFC 5246 6.3) when
 * they are derived; NULL: none. OpenSSL's only other interface gives secrets as lines of text, with three more, and no
 * key block. The keys begin at the block's beginning; it may be longer than they need. */
enum own_derived { OWN_CLIENT_TRAFFIC, OWN_SERVER_TRAFFIC, OWN_KEY_BLOCK, OWN_DERIVED_COUNT };
typedef void own_derivation_watcher(void *ctx, enum own_derived what, const uint8_t *bytes, size_t len);
void own_derivations_watch(own_derivation_watcher *fn, void *ctx);
