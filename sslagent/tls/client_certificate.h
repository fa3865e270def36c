/* client_certificate.h: what becomes of a client certificate after the handshake that verified it. */
#ifndef CSSL_SSLAGENT_CLIENT_CERTIFICATE_H
#define CSSL_SSLAGENT_CLIENT_CERTIFICATE_H

#include <openssl/x509.h>
#include <stdint.h>

/* All CRLs of a PEM file; free with sk_X509_CRL_pop_free(). NULL: the file is not there, has none, or anything else. */
STACK_OF(X509_CRL) * client_crls_load(const char *path);

/* Verify clients of @store's contexts against them: a chain with a certificate that its issuer's CRL names, or whose
 * issuer has no CRL that is valid now, is refused. 0 or CSSL_E_CRYPTO. */
int client_crls_use(const STACK_OF(X509_CRL) * crls, X509_STORE *store);

enum certificate_standing { CERTIFICATE_STANDS, CERTIFICATE_OVER, CERTIFICATE_REVOKED };

/* Of the certificate that was shown when a session was made, at the time @now_s: its end of validity, and what @crls
 * (NULL: none) say of it. @leaf NULL: none was shown, which stands. */
enum certificate_standing client_certificate_standing(
	const X509 *leaf, const STACK_OF(X509_CRL) * crls, uint64_t now_s);

#endif
