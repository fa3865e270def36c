/* client_certificate.h: checks a client certificate again after the handshake that verified it, and reads its names. */
#pragma once

#include <openssl/x509.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/sess_obj.h"

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

/* What a certificate in DER form says, for the PROXY header towards a backend. */
struct certificate_words {
	char common_name[NAME_MAX_LEN + 1]; /* UTF-8; "": there is none, it is longer, or has a NUL in it */
	char *subject, *issuer, *serial;    /* owned; names as RFC 2253 has them, in ASCII; the serial number is hex */
	char fingerprint[65];               /* SHA-256, hex */
};

/* 0, CSSL_E_NOT_FOUND or CSSL_E_NO_MEMORY; @out is to be cleared in each case. */
int certificate_words_read(const uint8_t *der, size_t len, struct certificate_words *out);
void certificate_words_clear(struct certificate_words *w);

/* "": it has none, or has text of no known form. Owned by the caller: free(). NULL: out of memory. */
char *certificate_name_text(const X509_NAME *name);
