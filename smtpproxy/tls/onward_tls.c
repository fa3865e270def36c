/* onward_tls.c: OpenSSL between two memory BIOs. */
#include "smtpproxy/tls/onward_tls.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "conf/pem_file.h"
#include "proto/error.h"

struct onward_tls {
	SSL *ssl;
	BIO *in, *out; /* the SSL object owns them */
	enum onward_tls_state state;
	const char *failure;
};

/* A daemon cannot ask for one. */
static int on_passphrase(char *buf, int size, int writing, void *arg)
{
	return -1;
}

SSL_CTX *onward_tls_context(const char *key, const char *ca, char *why, size_t cap)
{
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());
	snprintf(why, cap, "the system's authorities cannot be read");
	if (!c)
		return NULL;
	SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
	SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_default_passwd_cb(c, on_passphrase);
	if (SSL_CTX_dane_enable(c) == 1 &&
		(ca ? pem_file_use(c, key, ca, PEM_AUTHORITIES, SSL_CTX_load_verify_file, why, cap) == 0
		    : SSL_CTX_set_default_verify_paths(c) == 1))
		return c;
	SSL_CTX_free(c);
	return NULL;
}

/* Of the certificate that was used last. */
static int onward_tls_use_key(SSL_CTX *context, const char *path)
{
	return SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1 &&
	       SSL_CTX_check_private_key(context) == 1;
}

int onward_tls_identify(SSL_CTX *context, const char *certificate, const char *key, char *why, size_t cap)
{
	const int r = pem_file_use(
		context, "certificate", certificate, PEM_CHAIN, SSL_CTX_use_certificate_chain_file, why, cap);
	return r ? r : pem_file_use(context, "key", key, PEM_KEY, onward_tls_use_key, why, cap);
}

/* SNI has no addresses (RFC 6066 3). */
static bool expect_name(SSL *ssl, const char *name)
{
	SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1)
		return true;
	ERR_clear_error();
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/* With DANE-EE, neither names nor dates of the certificate count (RFC 7672 3.1.1). */
static bool expect_records(SSL *ssl, const struct tlsa_set *set)
{
	bool usable = false;
	SSL_set_verify(ssl, SSL_VERIFY_PEER, NULL);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (SSL_dane_enable(ssl, set->base) != 1)
		return false;
	SSL_dane_set_flags(ssl, DANE_FLAG_NO_DANE_EE_NAMECHECKS);
	for (unsigned i = 0; i < set->count; i++) {
		const struct dns_tlsa *r = &set->at[i];
		usable |= SSL_dane_tlsa_add(ssl, r->usage, r->selector, r->matching, r->data, r->len) == 1;
	}
	ERR_clear_error();
	return usable;
}

static bool onward_tls_expect(SSL *ssl, const char *name, const struct tlsa_set *set)
{
	if (set)
		return expect_records(ssl, set);
	return !name || expect_name(ssl, name);
}

static int onward_tls_prepare(struct onward_tls *t, SSL_CTX *context, const char *name, const struct tlsa_set *set)
{
	t->ssl = SSL_new(context);
	t->in = BIO_new(BIO_s_mem());
	t->out = BIO_new(BIO_s_mem());
	if (!t->ssl || !t->in || !t->out) {
		BIO_free(t->in);
		BIO_free(t->out);
		return CSSL_E_NO_MEMORY;
	}
	BIO_set_mem_eof_return(t->in, -1);
	SSL_set_bio(t->ssl, t->in, t->out);
	SSL_set_connect_state(t->ssl);
	return onward_tls_expect(t->ssl, name, set) ? 0 : CSSL_E_CRYPTO;
}

static void onward_tls_starve(struct onward_tls *t)
{
	t->state = ONWARD_TLS_STARVED;
	t->failure = "no memory";
	ERR_clear_error();
}

/* Takes the errors. OpenSSL's own lack of memory is one of them; if it could not even be noted, there is none. */
static bool are_for_memory(void)
{
	unsigned long e = ERR_get_error();
	bool are = e == 0;
	for (; e; e = ERR_get_error())
		are |= ERR_GET_REASON(e) == ERR_R_MALLOC_FAILURE;
	return are;
}

static void onward_tls_fail(struct onward_tls *t)
{
	const unsigned long last = ERR_peek_last_error();
	if (are_for_memory()) {
		onward_tls_starve(t);
		return;
	}
	const long verdict = SSL_get_verify_result(t->ssl);
	t->state = ONWARD_TLS_FAILED;
	t->failure = SSL_get_verify_mode(t->ssl) != SSL_VERIFY_NONE && verdict != X509_V_OK
			     ? X509_verify_cert_error_string(verdict)
			     : ERR_reason_error_string(last);
}

/* A call has brought nothing. */
static void note_error(struct onward_tls *t, int r)
{
	switch (SSL_get_error(t->ssl, r)) {
	case SSL_ERROR_WANT_READ: break;
	case SSL_ERROR_ZERO_RETURN: t->state = ONWARD_TLS_ENDED; break;
	default: onward_tls_fail(t); break;
	}
}

static void onward_tls_shake(struct onward_tls *t)
{
	ERR_clear_error();
	const int r = SSL_do_handshake(t->ssl);
	if (r == 1)
		t->state = ONWARD_TLS_OPEN;
	else
		note_error(t, r);
}

struct onward_tls *onward_tls_create(SSL_CTX *context, const char *name, const struct tlsa_set *set)
{
	struct onward_tls *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	if (onward_tls_prepare(t, context, name, set) == 0) {
		onward_tls_shake(t);
		return t;
	}
	onward_tls_destroy(t);
	return NULL;
}

void onward_tls_destroy(struct onward_tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t);
}

enum onward_tls_state onward_tls_take(struct onward_tls *t, const uint8_t *in, size_t len)
{
	if (BIO_write(t->in, in, (int)len) != (int)len)
		onward_tls_starve(t);
	else if (t->state == ONWARD_TLS_SHAKES)
		onward_tls_shake(t);
	return t->state;
}

size_t onward_tls_read(struct onward_tls *t, uint8_t *out, size_t cap)
{
	if (t->state != ONWARD_TLS_OPEN)
		return 0;
	ERR_clear_error();
	const int r = SSL_read(t->ssl, out, (int)cap);
	if (r > 0)
		return (size_t)r;
	note_error(t, r);
	return 0;
}

enum onward_tls_state onward_tls_state(const struct onward_tls *t)
{
	return t->state;
}

int onward_tls_write(struct onward_tls *t, const void *plain, size_t len)
{
	const uint8_t *at = plain;
	ERR_clear_error();
	while (len > 0) {
		const int r = SSL_write(t->ssl, at, (int)len);
		if (r <= 0) {
			onward_tls_fail(t);
			return CSSL_E_CRYPTO;
		}
		at += r;
		len -= (size_t)r;
	}
	return 0;
}

int onward_tls_flush(struct onward_tls *t, struct stream *s)
{
	const size_t len = BIO_ctrl_pending(t->out);
	uint8_t *room = len > 0 ? stream_reserve(s, len) : NULL;
	if (len > 0 && !room)
		return -1;
	if (len > 0)
		stream_commit(s, BIO_read(t->out, room, (int)len) > 0 ? len : 0);
	return 0;
}

const char *onward_tls_version(const struct onward_tls *t)
{
	return SSL_get_version(t->ssl);
}

const char *onward_tls_cipher(const struct onward_tls *t)
{
	return SSL_get_cipher_name(t->ssl);
}

const char *onward_tls_failure(const struct onward_tls *t)
{
	return t->failure ? t->failure : "the receiver ended the handshake";
}
