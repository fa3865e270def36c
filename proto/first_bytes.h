/* first_bytes.h: recognizes what a client begins with, and has the answer for a client that does not begin with a TLS
 * handshake: an alert if it speaks TLS, a sentence if it speaks HTTP, else nothing. Used by RAgent and by an agent's
 * own TLS listeners.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/end_reason.h"

enum first_bytes {
	FIRST_BYTES_INCOMPLETE,   /* not decided yet: read on */
	FIRST_BYTES_HANDSHAKE,    /* the whole header of a handshake record */
	FIRST_BYTES_HTTP,         /* a request without TLS */
	FIRST_BYTES_PROXY,        /* a PROXY header, v1 or v2 */
	FIRST_BYTES_SSLV2,        /* a hello in the format of SSL 2.0 (RFC 5246 E.2) */
	FIRST_BYTES_OTHER_RECORD, /* a TLS record of another type */
	FIRST_BYTES_BAD_VERSION,  /* a handshake record whose major version is not 3 */
	FIRST_BYTES_TOO_LONG,     /* a handshake record above the largest legal length */
	FIRST_BYTES_OTHER,
};
#define FIRST_BYTES_COUNT (FIRST_BYTES_OTHER + 1)

/* Looks at the first FIRST_BYTES_MAX bytes at most; with so many, the result is not INCOMPLETE. */
#define FIRST_BYTES_MAX 12u
enum first_bytes first_bytes_judge(const uint8_t *data, size_t len);

/* Nonzero: this is no TLS of any kind. After STARTTLS such bytes were injected (RFC 3207 4.2). */
bool first_bytes_is_text(enum first_bytes what);

/* The answer for such a client. NULL with *len 0: none, close with a reset. */
const void *first_bytes_answer(enum first_bytes what, size_t *len);
/* Why its connection ends. */
enum end_reason first_bytes_reason(enum first_bytes what);
