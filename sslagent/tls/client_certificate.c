/* client_certificate.c: OpenSSL verifies chains. A resumption shows no certificate, so OpenSSL does not check again the
 * certificate on which its session rests. */
#include "sslagent/tls/client_certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <time.h>

#include "proto/error.h"
#include "sslagent/tls/pem_file.h"
#include "sslagent/tls/tls_library.h"

STACK_OF(X509_CRL) * client_crls_load(const char *path, char *why, size_t why_cap)
{
	BIO *in = pem_file_open(path, PEM_CRLS, why, why_cap);
	STACK_OF(X509_CRL) *crls = in ? sk_X509_CRL_new_null() : NULL;
	int ok = crls != NULL;

	while (ok) {
		X509_CRL *next = X509_CRL_new_ex(tls_library(), NULL);
		if (!next || !PEM_read_bio_X509_CRL(in, &next, NULL, NULL)) {
			X509_CRL_free(next);
			break;
		}
		ok = sk_X509_CRL_push(crls, next) > 0;
		if (!ok)
			X509_CRL_free(next);
	}
	/* No further start line: the end of the file. */
	ok = ok && sk_X509_CRL_num(crls) > 0 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	if (in && !ok)
		pem_file_explain(in, path, PEM_CRLS, why, why_cap);
	ERR_clear_error();
	BIO_free(in);
	if (ok)
		return crls;
	sk_X509_CRL_pop_free(crls, X509_CRL_free);
	return NULL;
}

int client_crls_use(const STACK_OF(X509_CRL) * crls, X509_STORE *store)
{
	for (int i = 0; i < sk_X509_CRL_num(crls); i++)
		if (X509_STORE_add_crl(store, sk_X509_CRL_value(crls, i)) != 1)
			return CSSL_E_CRYPTO;
	return X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL) == 1 ? 0 : CSSL_E_CRYPTO;
}

static int is_revoked(const X509 *leaf, const STACK_OF(X509_CRL) * crls)
{
	X509_REVOKED *entry;

	for (int i = 0; i < sk_X509_CRL_num(crls); i++) {
		X509_CRL *crl = sk_X509_CRL_value(crls, i);
		/* 2: taken off again (removeFromCRL, RFC 5280 5.3.1) */
		if (X509_NAME_cmp(X509_CRL_get_issuer(crl), X509_get_issuer_name(leaf)) == 0 &&
			X509_CRL_get0_by_cert(crl, &entry, (X509 *)leaf) == 1)
			return 1;
	}
	return 0;
}

enum certificate_standing client_certificate_standing(const X509 *leaf, const STACK_OF(X509_CRL) * crls, uint64_t now_s)
{
	time_t now = (time_t)now_s;

	if (!leaf)
		return CERTIFICATE_STANDS;
	if (X509_cmp_time(X509_get0_notAfter(leaf), &now) <= 0) /* 0: not readable */
		return CERTIFICATE_OVER;
	return crls && is_revoked(leaf, crls) ? CERTIFICATE_REVOKED : CERTIFICATE_STANDS;
}

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
