/* server_tls.h: the TLS side of a server's sessions, over their streams. Sessions are resumed by tickets and by id. */
#ifndef CSSL_BENCH_MAIL_SERVER_TLS_H
#define CSSL_BENCH_MAIL_SERVER_TLS_H

#include <openssl/ssl.h>

#include "bench/load/stream_bio.h"

/* Shared by all sessions. All zero before it is opened. */
struct server_tls_shared {
	SSL_CTX *ctx;
	BIO_METHOD *wire;
};

/* PEM files. Complains on standard error in the name of @who. 0 or CSSL_E_CONFIG. */
int server_tls_open(struct server_tls_shared *shared, const char *who, const char *certificate, const char *key);
void server_tls_close(struct server_tls_shared *shared);

/* A new SSL object over @stream, whose BIO's state is @wire. NULL: out of memory. */
SSL *server_tls_begin(const struct server_tls_shared *shared, struct stream *stream, struct stream_bio *wire);

/* NULL is legal. The session can still be resumed. */
void server_tls_end(SSL *ssl);

#endif
