/* tls_contexts_internal.h: the data of a listener for its OpenSSL callbacks. */
#pragma once

#include <openssl/ssl.h>

#include "sslagent/tls/session_source.h"
#include "sslagent/tls/tls_certificate.h"
#include "sslagent/tls/tls_library.h"

/* The certificates that a host name selects: at most one of each type. */
struct named_set {
	const char *name; /* of a certificate; lower case. "": the first certificate has none */
	const struct tls_certificate *of_type[CERTIFICATE_TYPE_COUNT];
	SSL_CTX *ctx; /* names with the same certificates share it */
};

struct tls_listener {
	const struct conf_listener *conf;
	struct session_source *source;
	enum tls_algorithms algorithms;
	const struct tls_certificate **certificates; /* of struct tls_contexts */
	size_t certificate_count;
	struct named_set *names; /* sorted */
	size_t name_count;
	SSL_CTX *fallback;         /* of the first certificate */
	STACK_OF(X509_CRL) * crls; /* of client_crl; NULL: none */
	uint8_t *alpn;             /* wire format, in our order of preference */
	unsigned alpn_len;
};

/* The context for a normalized host name: exact name, then wildcard, then the default. */
SSL_CTX *tls_listener_choose(const struct tls_listener *l, const char *name);
SSL_CTX *tls_listener_default(const struct tls_listener *l);

/* Lists of groups where the cluster file has none, up to NULL: OpenSSL gets the first one that it accepts. */
extern const char *const tls_default_groups[];
