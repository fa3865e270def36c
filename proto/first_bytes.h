/* first_bytes.h: what a client that begins no TLS handshake does begin, and what it is told before the connection is
 * closed: an alert where it speaks TLS, a sentence where it speaks HTTP, else nothing. For whoever sees a client's
 * first bytes: RAgent, and an agent's own TLS listener.
 */
#ifndef CSSL_PROTO_FIRST_BYTES_H
#define CSSL_PROTO_FIRST_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "proto/end_reason.h"

enum first_bytes {
	FIRST_BYTES_INCOMPLETE,   /* may still become anything: read on */
	FIRST_BYTES_HANDSHAKE,    /* the whole header of a handshake record */
	FIRST_BYTES_HTTP,         /* a request without TLS */
	FIRST_BYTES_PROXY,        /* a PROXY header, v1 or v2 */
	FIRST_BYTES_SSLV2,        /* a hello in the format of SSL 2.0 (RFC 5246 E.2) */
	FIRST_BYTES_OTHER_RECORD, /* a record of TLS that no connection begins with */
	FIRST_BYTES_BAD_VERSION,  /* a handshake record whose major version is not 3 */
	FIRST_BYTES_TOO_LONG,     /* a handshake record that is longer than any may be */
	FIRST_BYTES_OTHER,
};
#define FIRST_BYTES_COUNT (FIRST_BYTES_OTHER + 1)

/* At most FIRST_BYTES_MAX bytes are looked at; it is never INCOMPLETE with so many. */
#define FIRST_BYTES_MAX 12u
enum first_bytes first_bytes_judge(const uint8_t *data, size_t len);

/* What such a client is told. NULL and 0: nothing, close with a reset. */
const void *first_bytes_answer(enum first_bytes what, size_t *len);
/* Why its connection ends. */
enum end_reason first_bytes_reason(enum first_bytes what);

#endif
