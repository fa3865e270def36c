/* stream_bio.h: an OpenSSL BIO over a stream: it reads the bytes of the stream's on_data, and writes into its output.
 * Bytes are copied once each way.
 */
#pragma once

#include <openssl/ssl.h>
#include <stddef.h>
#include <stdint.h>

#include "net/stream/stream.h"

/* Embedded beside the SSL object. */
struct stream_bio {
	struct stream *stream;
	const uint8_t *in; /* bytes that the stream has and OpenSSL has not taken */
	size_t in_len;
};

/* For all BIOs of a process; freed with BIO_meth_free(). NULL: out of memory. */
BIO_METHOD *stream_bio_method(void);

/* An SSL object over @stream, whose BIO's state is @wire. NULL: out of memory. */
SSL *stream_ssl_new(SSL_CTX *ctx, BIO_METHOD *method, struct stream *stream, struct stream_bio *wire);
/* NULL is legal. The session can still be resumed. */
void stream_ssl_free(SSL *ssl);
