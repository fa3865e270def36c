/* tls_library.h: OpenSSL as the TLS of this process uses it: a library context apart from the default one, which links,
 * broadcast and sealed copies use. It has the providers that openssl.cnf names, and beside them the one of
 * own_provider.h. Made once, kept until the process ends. Thread-safe. */
#ifndef CSSL_SSLAGENT_TLS_LIBRARY_H
#define CSSL_SSLAGENT_TLS_LIBRARY_H

#include <openssl/types.h>

/* NULL: OpenSSL cannot make one. */
OSSL_LIB_CTX *tls_library(void);

/* Whose HMAC, TLS13-KDF, TLS1-PRF and X25519 handshakes use. */
enum tls_algorithms {
	TLS_ALGORITHMS_OWN,     /* of own_provider.h */
	TLS_ALGORITHMS_OPENSSL, /* what OpenSSL would use without it */
	TLS_ALGORITHMS_COUNT
};

/* The property query under which contexts fetch their algorithms. */
const char *tls_library_query(enum tls_algorithms a);

/* TLS1-PRF, for key_schedule.h; the library keeps it. NULL: OpenSSL has none. */
EVP_KDF *tls_library_prf(enum tls_algorithms a);

/* Own algorithms that passed the comparison with OpenSSL's (own_provider_check) when the library was made; else
 * OpenSSL's: the reason is logged, once, and handshakes go on with those. */
enum tls_algorithms tls_library_best(void);

#endif
