/* download.h: answers that can go on after the loss of their owner (law 10). This file tells which answers can, asks
 * for the rest of one, and checks that the rest belongs to the same representation (RFC 9110 8.8, 13, 14). It works
 * on bytes only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "sslagent/service/http/message_head.h"

/* The facts about an answer that a successor needs. */
struct download {
	uint64_t first;    /* offset of its body in the representation; not 0 only for one range (206) */
	uint64_t len;      /* of the body */
	uint64_t total;    /* of the representation */
	uint32_t head_len; /* bytes before the body */
	uint8_t closes;    /* enum answer_close */
	uint8_t etag_len;
	char etag[HEAD_ETAG_MAX]; /* a strong tag, with its quotes */
};

/* The answer to a GET begins with [data, data + len). 0: the answer can go on, and *out describes it. DOWNLOAD_NOT:
 * it cannot, or its head is not complete. */
#define DOWNLOAD_NOT 1
int download_begins(const uint8_t *data, size_t len, struct download *out);

/* Writes the request for the bytes of the body after the first @done (fewer than all): the client's own request
 * [head, head + len), with other conditions; @d NULL: for the whole answer, so as it was. Bytes written, or negative:
 * CSSL_E_RANGE (no complete head, or more than a head), CSSL_E_TOO_LONG. */
#define DOWNLOAD_ASK_MORE (HEAD_ETAG_MAX + 128u) /* so much longer than the client's request, in bytes */
ptrdiff_t download_ask(
	const struct download *d, uint64_t done, const uint8_t *head, size_t len, uint8_t *out, size_t cap);

/* Checks the answer to that request. 0: the body that begins at *head_len is the rest; @closes now also includes
 * what this answer says of its connection. RESPONSE_HEAD_INCOMPLETE: the head is not complete. CSSL_E_MISMATCH: the
 * answer is something else, or the representation has changed.
 */
int download_resumes(struct download *d, uint64_t done, const uint8_t *data, size_t len, size_t *head_len);

/* Writes the download as the bytes of a note (service.h), and reads it back: 0 and *out, or CSSL_E_TRUNCATED,
 * CSSL_E_TRAILING, CSSL_E_RANGE (the values make no sense). */
#define DOWNLOAD_NOTE_MAX (30u + HEAD_ETAG_MAX)
size_t download_write(const struct download *d, uint8_t out[static DOWNLOAD_NOTE_MAX]);
int download_read(const uint8_t *in, size_t len, struct download *out);
