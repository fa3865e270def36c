/* tls_certificate.c */
#include "sslagent/tls/tls_certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/tls_library.h"

void host_name_normalize(const char *name, size_t len, char out[static NAME_MAX_LEN + 1])
{
	out[0] = '\0';
	if (len > NAME_MAX_LEN || memchr(name, '\0', len))
		return;
	for (size_t i = 0; i < len; i++)
		out[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
	out[len] = '\0';
}

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

static int complain(const struct conf *conf, const struct conf_certificate *from, const char *key, const char *expected,
	char *error, size_t error_cap)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	const char *found = strcmp(key, "key") == 0 ? from->key : from->chain;

	snprintf(error, error_cap, "%s:%u: key '%s': found '%s', expected %s%s%s%s", conf->path, from->line, key, found,
		expected, reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
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

static int read_chain(const char *path, struct tls_certificate *c)
{
	BIO *in = BIO_new_file(path, "r");
	X509 *next;
	int r = CSSL_E_CONFIG;

	if (!in)
		return r;
	c->leaf = read_certificate(in, PEM_read_bio_X509_AUX);
	c->chain = sk_X509_new_null();
	if (!c->leaf || !c->chain)
		goto out;
	while ((next = read_certificate(in, PEM_read_bio_X509))) {
		if (sk_X509_push(c->chain, next) == 0) {
			X509_free(next);
			goto out;
		}
	}
	if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) { /* the end of the file */
		ERR_clear_error();
		r = 0;
	}
out:
	BIO_free(in);
	return r;
}

static int read_key(const char *path, struct tls_certificate *c)
{
	BIO *in = BIO_new_file(path, "r");

	if (in)
		c->key = PEM_read_bio_PrivateKey_ex(in, NULL, on_passphrase, NULL, tls_library(), NULL);
	BIO_free(in);
	return c->key ? 0 : CSSL_E_CONFIG;
}

static int type_of(const EVP_PKEY *key, enum certificate_type *out)
{
	static const struct {
		int evp;
		enum certificate_type type;
	} types[] = {
		{ EVP_PKEY_RSA, CERTIFICATE_RSA },
		{ EVP_PKEY_EC, CERTIFICATE_ECDSA },
		{ EVP_PKEY_ED25519, CERTIFICATE_ED25519 },
		{ EVP_PKEY_ED448, CERTIFICATE_ED448 },
	};

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
		if (EVP_PKEY_get_base_id(key) == types[i].evp) {
			*out = types[i].type;
			return 0;
		}
	}
	return CSSL_E_CONFIG;
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

int tls_certificate_load(const struct conf *conf, const struct conf_certificate *from, struct tls_certificate *out,
	char *error, size_t error_cap)
{
	struct tls_certificate c = { 0 };
	int r;

	ERR_clear_error();
	if (read_chain(from->chain, &c) < 0)
		r = complain(conf, from, "chain", "a PEM certificate and its chain", error, error_cap);
	else if (read_key(from->key, &c) < 0)
		r = complain(conf, from, "key", "a PEM private key without passphrase", error, error_cap);
	else if (type_of(c.key, &c.type) < 0)
		r = complain(conf, from, "key", "an RSA, ECDSA, Ed25519 or Ed448 key", error, error_cap);
	else if (X509_check_private_key(c.leaf, c.key) != 1)
		r = complain(conf, from, "key", "the key of the chain's first certificate", error, error_cap);
	else
		r = find_names(&c);
	if (r < 0)
		tls_certificate_unload(&c);
	else
		*out = c;
	return r;
}

void tls_certificate_unload(struct tls_certificate *c)
{
	for (size_t i = 0; i < c->name_count; i++)
		free(c->names[i]);
	free(c->names);
	X509_free(c->leaf);
	sk_X509_pop_free(c->chain, X509_free);
	EVP_PKEY_free(c->key);
	*c = (struct tls_certificate){ 0 };
}

int tls_certificate_use(const struct tls_certificate *c, SSL_CTX *ctx)
{
	return SSL_CTX_use_cert_and_key(ctx, c->leaf, c->key, c->chain, 0) == 1 ? 0 : CSSL_E_CRYPTO;
}

int tls_certificate_has_name(const struct tls_certificate *c, const char *name)
{
	for (size_t i = 0; i < c->name_count; i++)
		if (strcmp(c->names[i], name) == 0)
			return 1;
	return 0;
}
