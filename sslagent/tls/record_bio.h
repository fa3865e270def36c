/* record_bio.h: OpenSSL's two memory BIOs as one: it reads out of the record that was fed, without a copy, and writes
 * into one buffer of whole records. So "nothing of the client's is left inside" is a subtraction. */
#ifndef CSSL_SSLAGENT_RECORD_BIO_H
#define CSSL_SSLAGENT_RECORD_BIO_H

#include <openssl/bio.h>
#include <stddef.h>
#include <stdint.h>

/* Embedded; zeroed = empty. The holder outlives the BIO. */
struct record_bio {
	const uint8_t *in; /* borrowed while a record is fed */
	size_t in_len;
	uint8_t *out; /* owned */
	size_t out_start, out_end, out_cap;
};

/* For SSL_set_bio, reading and writing. NULL: out of memory. */
BIO *record_bio_create(struct record_bio *b);
/* Frees the output. After the BIO. */
void record_bio_clear(struct record_bio *b);

#endif
