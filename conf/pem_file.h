/* pem_file.h: opens PEM files (RFC 7468), and says why one is of no use: what was found, what was expected, and the
 * remedy. Texts never quote a file. */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>

enum pem_kind { PEM_CHAIN, PEM_KEY, PEM_AUTHORITIES, PEM_CRLS };

/* A private key that others can read is refused (key_file.h). The caller frees it. NULL: @why tells. */
BIO *pem_file_open(const char *path, enum pem_kind kind, char *why, size_t why_cap);

/* OpenSSL did not take the objects of @in (its error queue may have a reason, and is emptied). Reads it again. */
void pem_file_explain(BIO *in, const char *path, enum pem_kind kind, char *why, size_t why_cap);

/* Has @use, which returns 1 when OpenSSL took the file, use it for @tls. 0, or CSSL_E_CONFIG with @why, as above,
 * behind the name of the configuration's key. */
int pem_file_use(SSL_CTX *tls, const char *key, const char *path, enum pem_kind kind,
	int (*use)(SSL_CTX *tls, const char *path), char *why, size_t why_cap);
