/* client_certificate.c: OpenSSL verifies chains. A resumption shows no certificate, so OpenSSL does not check again the
 * certificate on which its session rests. */
#include "sslagent/tls/client_certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/pem_file.h"
#include "proto/error.h"
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

static bool certificate_is_revoked(const X509 *leaf, const STACK_OF(X509_CRL) * crls)
{
	X509_REVOKED *entry;

	for (int i = 0; i < sk_X509_CRL_num(crls); i++) {
		X509_CRL *crl = sk_X509_CRL_value(crls, i);
		/* 2: taken off again (removeFromCRL, RFC 5280 5.3.1) */
		if (X509_NAME_cmp(X509_CRL_get_issuer(crl), X509_get_issuer_name(leaf)) == 0 &&
			X509_CRL_get0_by_cert(crl, &entry, (X509 *)leaf) == 1)
			return true;
	}
	return false;
}

enum certificate_standing client_certificate_standing(const X509 *leaf, const STACK_OF(X509_CRL) * crls, uint64_t now_s)
{
	time_t now = (time_t)now_s;

	if (!leaf)
		return CERTIFICATE_STANDS;
	if (X509_cmp_time(X509_get0_notAfter(leaf), &now) <= 0) /* 0: not readable */
		return CERTIFICATE_OVER;
	return crls && certificate_is_revoked(leaf, crls) ? CERTIFICATE_REVOKED : CERTIFICATE_STANDS;
}

static void certificate_copy_name(const X509_NAME *subject, char out[static NAME_MAX_LEN + 1])
{
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	unsigned char *text = NULL;
	int len = at < 0 ? -1 : ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));

	if (len > 0 && len <= (int)NAME_MAX_LEN && !memchr(text, '\0', (size_t)len))
		memcpy(out, text, (size_t)len); /* it was zero */
	OPENSSL_free(text);
}

char *certificate_name_text(const X509_NAME *name)
{
	BIO *text = BIO_new(BIO_s_mem());
	char *at = NULL;

	if (text && X509_NAME_print_ex(text, name, 0, XN_FLAG_RFC2253) >= 0 && BIO_write(text, "", 1) == 1)
		BIO_get_mem_data(text, &at);
	at = strdup(at ? at : "");
	BIO_free(text);
	return at;
}

int certificate_words_read(const uint8_t *der, size_t len, struct certificate_words *out)
{
	const unsigned char *at = der;
	uint8_t hash[32];

	*out = (struct certificate_words){ 0 };
	X509 *certificate = len ? d2i_X509(NULL, &at, (long)len) : NULL;
	if (!certificate)
		return CSSL_E_NOT_FOUND;
	certificate_copy_name(X509_get_subject_name(certificate), out->common_name);
	out->subject = certificate_name_text(X509_get_subject_name(certificate));
	out->issuer = certificate_name_text(X509_get_issuer_name(certificate));
	BIGNUM *serial = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), NULL);
	out->serial = serial ? BN_bn2hex(serial) : NULL;
	BN_free(serial);
	X509_free(certificate);
	if (!out->subject || !out->issuer || !out->serial)
		return CSSL_E_NO_MEMORY;
	crypto_hash_sha256(hash, der, len);
	sodium_bin2hex(out->fingerprint, sizeof out->fingerprint, hash, sizeof hash);
	return 0;
}

void certificate_words_clear(struct certificate_words *w)
{
	free(w->subject);
	free(w->issuer);
	OPENSSL_free(w->serial);
}
