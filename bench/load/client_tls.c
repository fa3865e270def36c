/* client_tls.c: the SSL_CTX that the options ask for, and SSL objects over a stream's BIO.
 *
 * Each connection gets an SSL object of its own: one that is cleared and used again costs as much CPU (438 and 429 us a
 * full handshake, of which decoding the certificate and verifying with it are a third), and holds its memory in
 * between. Where nothing is to be verified, OpenSSL would still build and check the chain (and throw the result away):
 * a callback of ours says yes instead.
 */
#include "bench/load/client_tls.h"

#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "proto/error.h"

/* The context */

static int on_client_session(SSL *ssl, SSL_SESSION *session)
{
	struct client_tls *t = SSL_get_app_data(ssl);

	SSL_SESSION_free(t->session);
	t->session = session;
	t->sessions++;
	return 1; /* the reference is ours */
}

static void on_info(const SSL *ssl, int where, int value)
{
	struct client_tls *t = SSL_get_app_data(ssl);

	/* close_notify is not counted as an alert: SSL_read reports it */
	if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT && (value & 0xff) != SSL_AD_CLOSE_NOTIFY)
		t->alert = value & 0xff;
}

static int on_certificate(X509_STORE_CTX *store, void *unused)
{
	X509_STORE_CTX_set_error(store, X509_V_OK);
	return 1;
}

static bool set_verification(SSL_CTX *ctx, const struct client_tls_options *o)
{
	if (!o->ca) {
		SSL_CTX_set_cert_verify_callback(ctx, on_certificate, NULL);
		return true;
	}
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return SSL_CTX_load_verify_file(ctx, o->ca) &&
	       X509_VERIFY_PARAM_set1_host(SSL_CTX_get0_param(ctx), o->server_name, 0);
}

static bool set_version(SSL_CTX *ctx, const struct client_tls_options *o)
{
	static const int versions[] = {
		[CLIENT_TLS_ANY] = 0, [CLIENT_TLS_1_2] = TLS1_2_VERSION, [CLIENT_TLS_1_3] = TLS1_3_VERSION
	};

	return SSL_CTX_set_min_proto_version(ctx, versions[o->version]) &&
	       SSL_CTX_set_max_proto_version(ctx, versions[o->version]);
}

/* Names of TLS 1.3 suites are not TLS 1.2 ciphers, and the other way round: OpenSSL refuses the wrong one. */
static int set_suite(SSL_CTX *ctx, const struct client_tls_options *o)
{
	if (!o->suite)
		return 1;
	if (strncmp(o->suite, "TLS_", 4) == 0)
		return SSL_CTX_set_ciphersuites(ctx, o->suite);
	return SSL_CTX_set_cipher_list(ctx, o->suite);
}

/* RFC 7301 3.1: the name follows its length. */
static bool set_alpn(SSL_CTX *ctx, const struct client_tls_options *o)
{
	uint8_t list[256];
	size_t len = o->alpn ? strlen(o->alpn) : 0;

	if (len == 0)
		return true;
	if (len > 255)
		return false;
	list[0] = (uint8_t)len;
	memcpy(list + 1, o->alpn, len);
	return SSL_CTX_set_alpn_protos(ctx, list, (unsigned)len + 1) == 0;
}

static void set_habits(SSL_CTX *ctx, const struct client_tls_options *o)
{
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_client_session);
	SSL_CTX_set_info_callback(ctx, on_info);
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	if (o->tickets == CLIENT_TLS_NO_TICKETS)
		SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
	if (o->memory == CLIENT_TLS_SPARE)
		SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
}

int client_tls_open(struct client_tls_shared *shared, const struct client_tls_options *o)
{
	const char *wrong = NULL;

	shared->server_name = o->server_name;
	shared->wire = stream_bio_method();
	shared->ctx = SSL_CTX_new(TLS_client_method());
	if (!shared->ctx || !shared->wire) {
		wrong = "OpenSSL cannot start";
	} else {
		set_habits(shared->ctx, o);
		wrong = !set_version(shared->ctx, o)                                     ? "--version is not possible"
			: !set_suite(shared->ctx, o)                                     ? "--suite is unknown"
			: o->groups && !SSL_CTX_set1_groups_list(shared->ctx, o->groups) ? "--group is unknown"
			: !set_alpn(shared->ctx, o)                                      ? "--alpn is too long"
			: !set_verification(shared->ctx, o)                              ? "--ca cannot be read"
											 : NULL;
	}
	if (!wrong)
		return 0;
	fprintf(stderr, "%s: %s\n", o->who, wrong);
	client_tls_close(shared);
	return CSSL_E_CONFIG;
}

void client_tls_close(struct client_tls_shared *shared)
{
	SSL_CTX_free(shared->ctx);
	BIO_meth_free(shared->wire);
	shared->ctx = NULL;
	shared->wire = NULL;
}

/* One client */

int client_tls_begin(struct client_tls *t, const struct client_tls_shared *shared, struct stream *stream,
	enum client_tls_offer offer)
{
	t->sessions = 0;
	t->alert = CLIENT_TLS_NO_ALERT;
	t->ssl = stream_ssl_new(shared->ctx, shared->wire, stream, &t->wire);
	if (!t->ssl)
		return CSSL_E_NO_MEMORY;
	SSL_set_app_data(t->ssl, t);
	SSL_set_connect_state(t->ssl);
	if (SSL_set_tlsext_host_name(t->ssl, shared->server_name) &&
		(offer == CLIENT_TLS_OFFER_NOTHING || !t->session || SSL_set_session(t->ssl, t->session)))
		return 0;
	client_tls_end(t);
	return CSSL_E_NO_MEMORY;
}

void client_tls_end(struct client_tls *t)
{
	stream_ssl_free(t->ssl);
	t->ssl = NULL;
}

void client_tls_wipe(struct client_tls *t)
{
	client_tls_end(t);
	SSL_SESSION_free(t->session);
	t->session = NULL;
}

void client_tls_tally_suite(const SSL *ssl, struct tally *suites)
{
	char text[TALLY_TEXT_MAX];
	snprintf(text, sizeof text, "%s %s", SSL_get_version(ssl), SSL_get_cipher_name(ssl));
	tally_row(suites, TALLY_SUITES_MAX, text, strlen(text))->count++;
}

const char *client_tls_failure(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	ERR_clear_error();
	return reason ? reason : "failed";
}
