/* tls_certificate.h: one certificate of the cluster file with its chain and key, and the host names for which it is
 * valid. */
#pragma once

#include <openssl/ssl.h>

#include "conf/complaints.h"
#include "conf/conf.h"
#include "proto/sess_obj.h"

/* A context holds at most one certificate of each type, and OpenSSL picks by what the client can verify. */
enum certificate_type {
	CERTIFICATE_RSA,
	CERTIFICATE_ECDSA,
	CERTIFICATE_ED25519,
	CERTIFICATE_ED448,
	CERTIFICATE_TYPE_COUNT
};

struct tls_certificate {
	const struct conf_certificate *from;
	X509 *leaf; /* NULL: it has a fault */
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
	enum certificate_type type;
	char **names; /* dNSNames of subjectAltName, else the common name; lower case; "*.x" stands for one label */
	size_t name_count;
	char *issuer;
	int64_t not_after_s; /* since 1970; the earliest end of the chain */
};

/* 0, or CSSL_E_CONFIG with a complaint, or CSSL_E_NO_MEMORY. */
int tls_certificate_load(const struct conf *conf, const struct conf_certificate *from, struct tls_certificate *out,
	struct complaints *complaints);
void tls_certificate_unload(struct tls_certificate *c); /* legal on a zeroed or half-loaded one */

int tls_certificate_use(const struct tls_certificate *c, SSL_CTX *ctx); /* 0 or CSSL_E_CRYPTO */

/* Has the certificate exactly that name? (A pattern equals itself.) */
bool tls_certificate_has_name(const struct tls_certificate *c, const char *name);

/* "*.example.org" for "www.example.org"; empty when no pattern could match. */
void host_name_pattern(const char *name, char out[static NAME_MAX_LEN + 1]);
