/* download.h: answers that can go on after the loss of their owner (law 10): which can, how the rest of one is asked
 * for, and how it is recognised as the rest of the same representation (RFC 9110 8.8, 13, 14). Bytes in, bytes out.
 */
#ifndef CSSL_SSLAGENT_DOWNLOAD_H
#define CSSL_SSLAGENT_DOWNLOAD_H

#include <stddef.h>
#include <stdint.h>

#define DOWNLOAD_ETAG_MAX 128u
#define DOWNLOAD_HEAD_MAX 8192u /* of a response; a longer one is not looked at */

/* What a successor has to know of an answer. */
struct download {
	uint64_t first;    /* where in the representation its body begins: not 0 only for one range (206) */
	uint64_t len;      /* of the body */
	uint64_t total;    /* of the representation */
	uint32_t head_len; /* bytes in front of the body */
	uint8_t closes;    /* enum download_close */
	uint8_t etag_len;
	char etag[DOWNLOAD_ETAG_MAX]; /* a strong one, with its quotes */
};
enum download_close { DOWNLOAD_PERSISTS, DOWNLOAD_CLOSES };

/* The answer to a GET begins with [data, data + len). 0: it can go on, @out says how. DOWNLOAD_NOT: it cannot, or its
 * head is not all there. */
#define DOWNLOAD_NOT 1
int download_begins(const uint8_t *data, size_t len, struct download *out);

/* Ask for what is left behind @done bytes of the body (less than all): the client's own request [head, head + len),
 * with other conditions. Bytes written, or negative: CSSL_E_RANGE (no whole head, or more than it), CSSL_E_TOO_LONG. */
#define DOWNLOAD_ASK_MORE (DOWNLOAD_ETAG_MAX + 128u) /* bytes the question may be longer than the request */
ptrdiff_t download_ask(
	const struct download *d, uint64_t done, const uint8_t *head, size_t len, uint8_t *out, size_t cap);

/* The answer to that. 0: the body that begins at *head_len is the rest, and @closes is joined with what the answer says
 * of its connection. DOWNLOAD_INCOMPLETE: its head is not all there. CSSL_E_MISMATCH: it is something else, or changed.
 */
#define DOWNLOAD_INCOMPLETE 1
int download_resumes(struct download *d, uint64_t done, const uint8_t *data, size_t len, size_t *head_len);

/* A head that stands for the one the client got, in front of a body of @left bytes: for who follows the messages. Bytes
 * written. */
#define DOWNLOAD_REST_HEAD_MAX 128u
size_t download_rest_head(const struct download *d, uint64_t left, char out[static DOWNLOAD_REST_HEAD_MAX]);

/* The download as the bytes of a note (service.h), and back: 0 and *out, or CSSL_E_TRUNCATED, CSSL_E_TRAILING,
 * CSSL_E_RANGE (it makes no sense). */
#define DOWNLOAD_NOTE_MAX (30u + DOWNLOAD_ETAG_MAX)
size_t download_write(const struct download *d, uint8_t out[static DOWNLOAD_NOTE_MAX]);
int download_read(const uint8_t *in, size_t len, struct download *out);

#endif
