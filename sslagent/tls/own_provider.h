/* own_provider.h: a provider of algorithms within this process, beside those that OpenSSL has by default or by its
 * configuration. OpenSSL looks up its own algorithms by name for each use, and a handshake uses these often: the key
 * schedule of TLS 1.3 (tls13_kdf.h), the PRF of TLS 1.2 (tls12_prf.h) and HMAC (own_hmac.h), all over SHA-256 and
 * SHA-384. X25519 (own_x25519.c) uses libsodium, which is faster. */
#ifndef CSSL_SSLAGENT_OWN_PROVIDER_H
#define CSSL_SSLAGENT_OWN_PROVIDER_H

#include <openssl/types.h>

#define OWN_PROVIDER_NAME "cssl"

/* Register the provider in @library, for the life of @library. At most once in a process. 0 or CSSL_E_CRYPTO. */
int own_provider_load(OSSL_LIB_CTX *library);

/* Compare its algorithms with the vectors of the RFCs and with OpenSSL's own implementation in @library. 0: all results
 * agree; CSSL_E_MISMATCH. */
int own_provider_check(OSSL_LIB_CTX *library);

#endif
