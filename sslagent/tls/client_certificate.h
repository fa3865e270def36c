/* client_certificate.h: checks a client certificate again after the handshake that verified it, and reads its name. */
#ifndef CSSL_SSLAGENT_CLIENT_CERTIFICATE_H
#define CSSL_SSLAGENT_CLIENT_CERTIFICATE_H

#include <openssl/x509.h>
#include <stddef.h>
#include <stdint.h>

/* All CRLs of a PEM file; free with sk_X509_CRL_pop_free(). NULL: the file is missing, has no CRL, or holds other
 * objects too; @why tells. */
STACK_OF(X509_CRL) * client_crls_load(const char *path, char *why, size_t why_cap);

/* Verify the clients of @store's contexts against @crls. A chain is refused when the CRL of an issuer names one of its
 * certificates, or when an issuer has no CRL that is valid now. 0 or CSSL_E_CRYPTO. */
int client_crls_use(const STACK_OF(X509_CRL) * crls, X509_STORE *store);

enum certificate_standing { CERTIFICATE_STANDS, CERTIFICATE_OVER, CERTIFICATE_REVOKED };

/* Check, at the time @now_s, the certificate that the client showed when its session was made: its end of validity, and
 * @crls (NULL: none). @leaf NULL: the client showed none, which stands. */
enum certificate_standing client_certificate_standing(
	const X509 *leaf, const STACK_OF(X509_CRL) * crls, uint64_t now_s);

/* The common name of a certificate in DER form, for the PROXY header towards a backend: UTF-8, terminated, of at most
 * @cap bytes. 0, or CSSL_E_NOT_FOUND: no certificate, no name, or one with a NUL in it. */
int certificate_common_name(const uint8_t *der, size_t len, char *out, size_t cap);

#endif
