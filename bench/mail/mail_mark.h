/* mail_mark.h: a header that smtp-source puts into each mail. By it smtp-sink recognizes the mail and checks its body.
 * Relays may add other headers.
 *
 *   X-CSSL-Mail: id length hash
 */
#pragma once

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>

#include "smtp/span.h"

#define MAIL_MARK          "X-CSSL-Mail"
#define MAIL_MARK_ID_MAX   64u
#define MAIL_MARK_HASH_LEN 16u

struct mail_mark {
	char id[MAIL_MARK_ID_MAX + 1];
	uint64_t body_len;
	uint8_t hash[MAIL_MARK_HASH_LEN]; /* BLAKE2b of the body: all bytes after the first empty line */
};

void mail_mark_hash(const void *body, size_t len, uint8_t hash[static MAIL_MARK_HASH_LEN]);

/* Writes the header line with its CRLF, terminated; returns its length. */
#define MAIL_MARK_LINE_MAX 192u
size_t mail_mark_write(const struct mail_mark *mark, char out[static MAIL_MARK_LINE_MAX]);

/* Parse the text after the colon. 0 or CSSL_E_RANGE. */
int mail_mark_parse(struct smtp_span value, struct mail_mark *out);

enum mail_verdict {
	MAIL_UNMARKED, /* no such header: from another source */
	MAIL_RIGHT,
	MAIL_WRONG, /* the body does not match the mark */
};

/* Looks through one mail. Embedded; zero before. */
struct mail_check {
	struct mail_mark mark; /* valid once is_marked */
	uint8_t is_marked, in_body;
	uint8_t line_len; /* of the header line so far, as far as it is kept */
	char line[MAIL_MARK_LINE_MAX];
	uint64_t body_len;
	crypto_generichash_state hash;
};

void mail_check_begin(struct mail_check *check);

/* The next bytes of the mail itself, without stuffed dots. */
void mail_check_feed(struct mail_check *check, const char *data, size_t len);
enum mail_verdict mail_check_end(struct mail_check *check);
