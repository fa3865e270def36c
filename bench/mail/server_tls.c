/* server_tls.c: one SSL_CTX. */
#include "bench/mail/server_tls.h"

#include <stdio.h>

#include "proto/error.h"

static const unsigned char context_id[] = "smtp-sink";

int server_tls_open(struct server_tls_shared *shared, const char *who, const char *certificate, const char *key)
{
	shared->wire = stream_bio_method();
	shared->ctx = SSL_CTX_new(TLS_server_method());
	if (shared->ctx && shared->wire && SSL_CTX_use_certificate_chain_file(shared->ctx, certificate) == 1 &&
		SSL_CTX_use_PrivateKey_file(shared->ctx, key, SSL_FILETYPE_PEM) == 1 &&
		SSL_CTX_check_private_key(shared->ctx) == 1 &&
		SSL_CTX_set_session_id_context(shared->ctx, context_id, sizeof context_id - 1) == 1) {
		SSL_CTX_clear_mode(shared->ctx, SSL_MODE_AUTO_RETRY);
		return 0;
	}
	fprintf(stderr, "%s: certificate %s or key %s cannot be used\n", who, certificate, key);
	server_tls_close(shared);
	return CSSL_E_CONFIG;
}

void server_tls_close(struct server_tls_shared *shared)
{
	SSL_CTX_free(shared->ctx);
	BIO_meth_free(shared->wire);
	shared->ctx = NULL;
	shared->wire = NULL;
}

SSL *server_tls_begin(const struct server_tls_shared *shared, struct stream *stream, struct stream_bio *wire)
{
	BIO *bio = stream_bio_new(shared->wire, wire);
	SSL *ssl = bio ? SSL_new(shared->ctx) : NULL;
	if (!ssl) {
		BIO_free(bio);
		return NULL;
	}
	wire->stream = stream;
	wire->in_len = 0;
	SSL_set_bio(ssl, bio, bio);
	SSL_set_accept_state(ssl);
	return ssl;
}

void server_tls_end(SSL *ssl)
{
	if (!ssl)
		return;
	/* Without this, OpenSSL treats the session as broken and forgets it. */
	SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(ssl);
}
