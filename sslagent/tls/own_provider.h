/* own_provider.h: a provider of algorithms within this process, beside those that OpenSSL has by default or by its
 * configuration. Of what it offers a handshake needs so many that looking each up by name would be a part of its cost:
 * the key schedule of TLS 1.3 (tls13_kdf.h) and HMAC (own_hmac.h), both over SHA-256 and SHA-384. */
#ifndef CSSL_SSLAGENT_OWN_PROVIDER_H
#define CSSL_SSLAGENT_OWN_PROVIDER_H

/* Contexts with this property query take its algorithms, and the others from elsewhere. */
#define OWN_PROVIDER_QUERY "?provider=cssl"

int own_provider_load(void); /* once per process, however often it is called. 0 or CSSL_E_CRYPTO. Thread-safe. */

#endif
