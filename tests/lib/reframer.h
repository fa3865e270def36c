/* reframer.h: puts a client's handshake messages into records of another length than OpenSSL does: a message over many
 * records, or many messages in one. Both are legal (RFC 8446 5.1, RFC 5246 6.2.1).
 */
#pragma once

#include <openssl/bio.h>

#include "proto/cipher_suite.h"
#include "proto/sess_obj.h"

struct reframer;

/* Records of up to @len bytes. NULL: out of memory. */
struct reframer *reframer_create(size_t len);
void reframer_destroy(struct reframer *r);

/* From here on everything is sealed. 0 or negative. */
int reframer_seal(struct reframer *r, const struct cipher_suite *suite, const struct direction_keys *keys);

/* Bytes of this content type; those of one type that follow each other go into the same records. */
void reframer_take(struct reframer *r, uint8_t type, const void *bytes, size_t len);
/* Write the records of all that was taken, up to the end of the last message. */
void reframer_give(struct reframer *r, BIO *out);
