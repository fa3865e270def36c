/* tls_library.h: OpenSSL as the TLS of this process uses it: a library context of its own; links, broadcast and sealed
 * copies use the default one. It has the providers of openssl.cnf, or, if they are the default ones, the default
 * provider with the ciphers of TLS only, and a generator of random bytes of our own; and own_provider.h. Made once,
 * kept until the process ends. Thread-safe. */
#pragma once

#include <openssl/types.h>

#define LEAN_PROVIDER_NAME "cssl-lean"
#define OWN_RANDOM_NAME    "CSSL-RANDOM"

/* Keep OpenSSL from adding its old ciphers' names to each library context. To be called before anything else of
 * OpenSSL; for the whole process. 0 or CSSL_E_CRYPTO. */
int tls_library_begin(void);

/* NULL: OpenSSL cannot make one. */
OSSL_LIB_CTX *tls_library(void);

/* The origin of HMAC, TLS13-KDF, TLS1-PRF and X25519 in handshakes. */
enum tls_algorithms {
	TLS_ALGORITHMS_OWN,     /* those of own_provider.h */
	TLS_ALGORITHMS_OPENSSL, /* those that OpenSSL uses without it */
	TLS_ALGORITHMS_COUNT
};

/* The property query under which contexts fetch their algorithms. */
const char *tls_library_query(enum tls_algorithms a);

/* The agent's own algorithms, if they passed the comparison with OpenSSL's (own_provider_check) when the library was
 * made; else OpenSSL's. Then the reason is logged once. */
enum tls_algorithms tls_library_best(void);
