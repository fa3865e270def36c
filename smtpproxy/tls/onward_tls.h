/* onward_tls.h: TLS toward a receiver, or a Redis server. Bytes in, bytes out: no sockets. */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#include "net/stream/stream.h"
#include "smtpproxy/dns/tlsa.h"

/* For all connections of the process. @ca: a PEM file, which the key @key of the configuration names; NULL: the
 * system's authorities. NULL: @why tells. */
SSL_CTX *onward_tls_context(const char *key, const char *ca, char *why, size_t cap);
/* What this process shows to a server that asks for a certificate: PEM files. 0, or CSSL_E_CONFIG with @why; so for a
 * key that others can read, or with a passphrase. */
int onward_tls_identify(SSL_CTX *context, const char *certificate, const char *key, char *why, size_t cap);

struct onward_tls;

/* @set: the certificate must match one of its records (RFC 7672 3), whatever the authorities. Otherwise @name: it must
 * come from a known authority, and be for this name or address. Both NULL: any certificate is accepted. The first bytes
 * to send are ready at once. NULL: out of memory, or no record of @set can be used. */
struct onward_tls *onward_tls_create(SSL_CTX *context, const char *name, const struct tlsa_set *set);
void onward_tls_destroy(struct onward_tls *t); /* NULL is legal */

enum onward_tls_state {
	ONWARD_TLS_SHAKES,
	ONWARD_TLS_OPEN,
	ONWARD_TLS_ENDED, /* by close_notify */
	ONWARD_TLS_FAILED,
	ONWARD_TLS_STARVED, /* no memory here, which says nothing about the receiver */
};

/* Bytes of the receiver. Plaintext then waits for onward_tls_read(). */
enum onward_tls_state onward_tls_take(struct onward_tls *t, const uint8_t *in, size_t len);

/* The next plaintext; 0: there is none. */
size_t onward_tls_read(struct onward_tls *t, uint8_t *out, size_t cap);
enum onward_tls_state onward_tls_state(const struct onward_tls *t);

/* 0, or CSSL_E_CRYPTO. */
int onward_tls_write(struct onward_tls *t, const void *plain, size_t len);

/* Move output into that of @s. 0 or -1: out of memory. */
int onward_tls_flush(struct onward_tls *t, struct stream *s);

/* For events. */
const char *onward_tls_version(const struct onward_tls *t);
const char *onward_tls_cipher(const struct onward_tls *t);
const char *onward_tls_failure(const struct onward_tls *t); /* of FAILED and STARVED */
