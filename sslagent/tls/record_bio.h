/* record_bio.h: OpenSSL's two memory BIOs as one: it reads from the fed record without a copy, and writes into one
 * buffer of whole records. So the bytes of the client that OpenSSL has not read yet are always known. */
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
/* Frees the output. Call it after the BIO was freed. */
void record_bio_clear(struct record_bio *b);

#endif
