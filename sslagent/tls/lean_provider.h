/* lean_provider.h: OpenSSL's default provider with fewer ciphers: those of TLS. OpenSSL 3.0 walks the list of all names
 * of a library context each time it makes a context for a key, some eight times in a handshake, and two thirds of the
 * default provider's names are ciphers that TLS never had (OFB, XTS, key wrap). */
#ifndef CSSL_SSLAGENT_LEAN_PROVIDER_H
#define CSSL_SSLAGENT_LEAN_PROVIDER_H

#include <openssl/types.h>

#define LEAN_PROVIDER_NAME "cssl-lean"

/* Keep OpenSSL from adding its old ciphers' names to each library context. To be called before anything else of
 * OpenSSL; for the whole process. 0 or CSSL_E_CRYPTO. */
int lean_provider_begin(void);

/* 1: openssl.cnf names no providers but the default one. Others (FIPS, tokens) stand as they are: do not load it. */
int lean_provider_may_load(void);

/* Register the provider in @library, which has none yet, in place of the default one. Its algorithms are those of the
 * default provider of @whole, a library context for them alone. Both stay until the process ends. At most once in a
 * process. 0 or CSSL_E_CRYPTO. */
int lean_provider_load(OSSL_LIB_CTX *library, OSSL_LIB_CTX *whole);

#endif
