/* tls_certificate.c */
#include "sslagent/tls/tls_certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/pem_file.h"
#include "net/report/log.h"
#include "proto/client_hello.h"
#include "proto/error.h"
#include "sslagent/tls/client_certificate.h"
#include "sslagent/tls/tls_library.h"

#define WHY_MAX 1024u

void host_name_pattern(const char *name, char out[static NAME_MAX_LEN + 1])
{
	const char *dot = strchr(name, '.');

	out[0] = '\0';
	if (!dot || dot == name || strlen(dot) + 2 > NAME_MAX_LEN + 1)
		return;
	out[0] = '*';
	strcpy(out + 1, dot);
}

/* A daemon cannot ask for a passphrase: an encrypted key is an error at once. */
static int on_passphrase(char *buf, int size, int writing, void *arg)
{
	return -1;
}

/* The inputs of loading one, and the place for its fault. */
struct loading {
	const struct conf *conf;
	const struct conf_certificate *from;
	struct complaints *complaints;
};

__attribute__((format(printf, 3, 4))) static int certificate_fault(
	const struct loading *l, char *const *field, const char *format, ...)
{
	char text[WHY_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	complain_plain(l->complaints, conf_line(&l->conf->file, field), "key '%s': %s",
		field == &l->from->key ? "key" : "chain", text);
	ERR_clear_error();
	return CSSL_E_CONFIG;
}

/* Read the next certificate of the file, in the library context of TLS; NULL: none is left. */
static X509 *read_certificate(BIO *in, X509 *(*read)(BIO *, X509 **, pem_password_cb *, void *))
{
	X509 *certificate = X509_new_ex(tls_library(), NULL);

	if (certificate && read(in, &certificate, on_passphrase, NULL))
		return certificate;
	X509_free(certificate);
	return NULL;
}

/* 0 at the end of the file, or negative. */
static int read_certificates(BIO *in, struct tls_certificate *c)
{
	X509 *next;

	c->leaf = read_certificate(in, PEM_read_bio_X509_AUX);
	c->chain = sk_X509_new_null();
	if (!c->leaf || !c->chain)
		return CSSL_E_CONFIG;
	while ((next = read_certificate(in, PEM_read_bio_X509))) {
		if (sk_X509_push(c->chain, next) == 0) {
			X509_free(next);
			return CSSL_E_NO_MEMORY;
		}
	}
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return CSSL_E_CONFIG;
	ERR_clear_error();
	return 0;
}

static int certificate_read_key(BIO *in, struct tls_certificate *c)
{
	c->key = PEM_read_bio_PrivateKey_ex(in, NULL, on_passphrase, NULL, tls_library(), NULL);
	return c->key ? 0 : CSSL_E_CONFIG;
}

static int certificate_read_file(const struct loading *l, char *const *field, enum pem_kind kind,
	int (*read)(BIO *in, struct tls_certificate *c), struct tls_certificate *c)
{
	char why[WHY_MAX];
	BIO *in = pem_file_open(*field, kind, why, sizeof why);

	if (!in)
		return certificate_fault(l, field, "%s", why);
	int r = read(in, c);
	if (r == CSSL_E_CONFIG) {
		pem_file_explain(in, *field, kind, why, sizeof why);
		certificate_fault(l, field, "%s", why);
	}
	BIO_free(in);
	return r;
}

static int type_of(const EVP_PKEY *key, enum certificate_type *out)
{
	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA: *out = CERTIFICATE_RSA; return 0;
	case EVP_PKEY_EC: *out = CERTIFICATE_ECDSA; return 0;
	case EVP_PKEY_ED25519: *out = CERTIFICATE_ED25519; return 0;
	case EVP_PKEY_ED448: *out = CERTIFICATE_ED448; return 0;
	default: return CSSL_E_CONFIG;
	}
}

static int add_name(struct tls_certificate *c, const ASN1_STRING *from)
{
	char name[NAME_MAX_LEN + 1];
	char **grown;

	host_name_normalize((const char *)ASN1_STRING_get0_data(from), (size_t)ASN1_STRING_length(from), name);
	if (name[0] == '\0' || tls_certificate_has_name(c, name))
		return 0;
	grown = realloc(c->names, (c->name_count + 1) * sizeof *grown);
	if (!grown)
		return CSSL_E_NO_MEMORY;
	c->names = grown;
	c->names[c->name_count] = strdup(name);
	if (!c->names[c->name_count])
		return CSSL_E_NO_MEMORY;
	c->name_count++;
	return 0;
}

static int add_common_name(struct tls_certificate *c)
{
	X509_NAME *subject = X509_get_subject_name(c->leaf);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

	return at < 0 ? 0 : add_name(c, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

/* RFC 6125 6.4.4: the common name only where there is no dNSName. */
static int find_names(struct tls_certificate *c)
{
	GENERAL_NAMES *all = X509_get_ext_d2i(c->leaf, NID_subject_alt_name, NULL, NULL);
	int r = 0;

	for (int i = 0; r == 0 && i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(all, i);
		if (n->type == GEN_DNS)
			r = add_name(c, n->d.dNSName);
	}
	GENERAL_NAMES_free(all);
	return r == 0 && c->name_count == 0 ? add_common_name(c) : r;
}

static int load_key(const struct loading *l, struct tls_certificate *c)
{
	const int r = certificate_read_file(l, &l->from->key, PEM_KEY, certificate_read_key, c);

	if (r == 0 && type_of(c->key, &c->type) < 0)
		return certificate_fault(
			l, &l->from->key, "found '%s', expected an RSA, ECDSA, Ed25519 or Ed448 key", l->from->key);
	return r;
}

static int check_pair(const struct loading *l, struct tls_certificate *c)
{
	if (X509_check_private_key(c->leaf, c->key) != 1)
		return certificate_fault(l, &l->from->key,
			"found '%s', expected the key of the first certificate in '%s': name the files of one "
			"certificate, and put it first",
			l->from->key, l->from->chain);
	return find_names(c);
}

static int64_t x509_seconds(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? timegm(&tm) : 0;
}

/* A certificate that clients will refuse is no fault of the file: the agent serves with it, as nginx does. */
static int find_times(struct tls_certificate *c)
{
	int64_t begin_s = 0, now_s = time(NULL);

	c->not_after_s = INT64_MAX;
	for (int i = -1; i < sk_X509_num(c->chain); i++) {
		const X509 *x = i < 0 ? c->leaf : sk_X509_value(c->chain, i);
		const int64_t from_s = x509_seconds(X509_get0_notBefore(x)), to_s = x509_seconds(X509_get0_notAfter(x));
		begin_s = from_s > begin_s ? from_s : begin_s;
		c->not_after_s = to_s < c->not_after_s ? to_s : c->not_after_s;
	}
	if (c->not_after_s < now_s || begin_s > now_s)
		log_event(LOG_WARNING, NULL,
			c->not_after_s < now_s ? "certificate has expired" : "certificate not valid yet",
			"certificate=%s file=%s effect=\"clients refuse it\"", c->from->name, c->from->chain);
	c->issuer = certificate_name_text(X509_get_issuer_name(c->leaf));
	return c->issuer ? 0 : CSSL_E_NO_MEMORY;
}

int tls_certificate_load(const struct conf *conf, const struct conf_certificate *from, struct tls_certificate *out,
	struct complaints *complaints)
{
	const struct loading l = { conf, from, complaints };
	struct tls_certificate c = { .from = from };

	ERR_clear_error();
	int r = certificate_read_file(&l, &from->chain, PEM_CHAIN, read_certificates, &c);
	const int r_of_key = load_key(&l, &c); /* both faults are told */
	r = r ? r : r_of_key;
	if (r == 0)
		r = check_pair(&l, &c);
	if (r == 0)
		r = find_times(&c);
	if (r < 0)
		tls_certificate_unload(&c);
	*out = c;
	return r;
}

void tls_certificate_unload(struct tls_certificate *c)
{
	for (size_t i = 0; i < c->name_count; i++)
		free(c->names[i]);
	free(c->names);
	free(c->issuer);
	X509_free(c->leaf);
	sk_X509_pop_free(c->chain, X509_free);
	EVP_PKEY_free(c->key);
	*c = (struct tls_certificate){ 0 };
}

int tls_certificate_use(const struct tls_certificate *c, SSL_CTX *ctx)
{
	return SSL_CTX_use_cert_and_key(ctx, c->leaf, c->key, c->chain, 0) == 1 ? 0 : CSSL_E_CRYPTO;
}

bool tls_certificate_has_name(const struct tls_certificate *c, const char *name)
{
	for (size_t i = 0; i < c->name_count; i++)
		if (strcmp(c->names[i], name) == 0)
			return true;
	return false;
}
