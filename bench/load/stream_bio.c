/* stream_bio.c: three functions of a BIO. */
#include "bench/load/stream_bio.h"

#include <string.h>

static int wire_write(BIO *bio, const char *data, int len)
{
	struct stream_bio *wire = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	return stream_write(wire->stream, data, (size_t)len) == 0 ? len : -1;
}

static int wire_read(BIO *bio, char *out, int cap)
{
	struct stream_bio *wire = BIO_get_data(bio);
	size_t len = wire->in_len < (size_t)cap ? wire->in_len : (size_t)cap;

	BIO_clear_retry_flags(bio);
	if (len == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(out, wire->in, len);
	wire->in += len;
	wire->in_len -= len;
	return (int)len;
}

/* OpenSSL uses it for nothing but a flush. */
static long wire_ctrl(BIO *bio, int command, long number, void *pointer)
{
	return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *stream_bio_method(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");

	if (m && BIO_meth_set_write(m, wire_write) && BIO_meth_set_read(m, wire_read) &&
		BIO_meth_set_ctrl(m, wire_ctrl))
		return m;
	BIO_meth_free(m);
	return NULL;
}

SSL *stream_ssl_new(SSL_CTX *ctx, BIO_METHOD *method, struct stream *stream, struct stream_bio *wire)
{
	BIO *bio = BIO_new(method);
	SSL *ssl = bio ? SSL_new(ctx) : NULL;

	if (!ssl) {
		BIO_free(bio);
		return NULL;
	}
	*wire = (struct stream_bio){ .stream = stream };
	BIO_set_data(bio, wire);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	return ssl;
}

void stream_ssl_free(SSL *ssl)
{
	if (!ssl)
		return;
	/* Without this, OpenSSL treats the session as broken and forgets it. */
	SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(ssl);
}
