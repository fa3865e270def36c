/* record_bio.c: a BIO over two buffers in memory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sslagent/tls/handshake_internal.h"

#define OUTPUT_FIRST 4096u           /* a server's flight with one small certificate */
#define OUTPUT_MAX   (1024u * 1024u) /* no correct handshake writes so much */

static int bio_on_read(BIO *bio, char *out, int len)
{
	struct record_bio *b = BIO_get_data(bio);
	size_t n = b->in_len < (size_t)len ? b->in_len : (size_t)len;

	BIO_clear_retry_flags(bio);
	if (n == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(out, b->in, n);
	b->in += n;
	b->in_len -= n;
	return (int)n;
}

static int record_bio_make_room(struct record_bio *b, size_t len)
{
	size_t cap = b->out_cap ? b->out_cap : OUTPUT_FIRST;
	uint8_t *grown;

	while (cap - b->out_end < len && cap < OUTPUT_MAX)
		cap *= 2;
	if (cap - b->out_end < len)
		return -1;
	if (cap == b->out_cap)
		return 0;
	grown = realloc(b->out, cap);
	if (!grown)
		return -1;
	b->out = grown;
	b->out_cap = cap;
	return 0;
}

static int bio_on_write(BIO *bio, const char *in, int len)
{
	struct record_bio *b = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (len <= 0 || record_bio_make_room(b, (size_t)len) < 0)
		return -1;
	memcpy(b->out + b->out_end, in, (size_t)len);
	b->out_end += (size_t)len;
	return len;
}

static long bio_on_ctrl(BIO *bio, int command, long number, void *pointer)
{
	struct record_bio *b = BIO_get_data(bio);

	switch (command) {
	case BIO_CTRL_FLUSH: return 1;
	case BIO_CTRL_PENDING: return (long)b->in_len;
	case BIO_CTRL_WPENDING: return (long)(b->out_end - b->out_start);
	default: return 0;
	}
}

static BIO_METHOD *method;

static void method_make(void)
{
	BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "record");

	if (m && BIO_meth_set_read(m, bio_on_read) && BIO_meth_set_write(m, bio_on_write) &&
		BIO_meth_set_ctrl(m, bio_on_ctrl))
		method = m;
	else
		BIO_meth_free(m);
}

BIO *record_bio_create(struct record_bio *b)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, method_make);
	BIO *bio = method ? BIO_new(method) : NULL;
	if (!bio)
		return NULL;
	BIO_set_data(bio, b);
	BIO_set_init(bio, 1);
	return bio;
}

void record_bio_clear(struct record_bio *b)
{
	free(b->out);
	*b = (struct record_bio){ 0 };
}
