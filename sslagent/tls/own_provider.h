/* own_provider.h: a provider of algorithms within this process, beside those that OpenSSL has by default or by its
 * configuration. Of what it offers a handshake needs so many that looking each up by name would be a part of its cost:
 * the key schedule of TLS 1.3 (tls13_kdf.h), the PRF of TLS 1.2 (tls12_prf.c) and HMAC (own_hmac.h), all over SHA-256
 * and SHA-384. X25519 (own_x25519.c) is libsodium's, which is faster. */
#ifndef CSSL_SSLAGENT_OWN_PROVIDER_H
#define CSSL_SSLAGENT_OWN_PROVIDER_H

#include <openssl/types.h>

#define OWN_PROVIDER_NAME "cssl"

/* Register it in @library, for as long as that lives. At most once in a process. 0 or CSSL_E_CRYPTO. */
int own_provider_load(OSSL_LIB_CTX *library);

/* Does each of its algorithms give what RFC 4231 says, and what OpenSSL's own implementation in @library gives? 0, or
 * CSSL_E_MISMATCH. */
int own_provider_check(OSSL_LIB_CTX *library);

#endif
