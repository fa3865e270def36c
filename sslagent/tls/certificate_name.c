/* certificate_name.c: by OpenSSL's X.509 parser. */
#include <string.h>

#include <openssl/x509.h>

#include "proto/error.h"
#include "sslagent/tls/certificate_name.h"

static int copy_name(const X509_NAME *subject, char *out, size_t cap)
{
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	unsigned char *text = NULL;

	if (at < 0)
		return CSSL_E_NOT_FOUND;
	int len = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	if (len < 0)
		return CSSL_E_NOT_FOUND;
	int r = CSSL_E_NOT_FOUND;
	if ((size_t)len < cap && !memchr(text, '\0', (size_t)len)) {
		memcpy(out, text, (size_t)len);
		out[len] = '\0';
		r = 0;
	}
	OPENSSL_free(text);
	return r;
}

int certificate_common_name(const uint8_t *der, size_t len, char *out, size_t cap)
{
	const unsigned char *at = der;

	if (len == 0)
		return CSSL_E_NOT_FOUND;
	X509 *certificate = d2i_X509(NULL, &at, (long)len);
	if (!certificate)
		return CSSL_E_NOT_FOUND;
	int r = copy_name(X509_get_subject_name(certificate), out, cap);
	X509_free(certificate);
	return r;
}
