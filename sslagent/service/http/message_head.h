/* message_head.h: reads the head of an HTTP/1.x message line by line (RFC 9112 2 to 5), and of a response those fields
 * that tell whether and how its body can go on elsewhere (download.h, delivered.h). It works on bytes only; all texts
 * point into them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_HEAD_MAX 8192u /* bytes of a response's head; a longer one is not read */
#define HEAD_ETAG_MAX    128u

struct head_text {
	const char *at;
	size_t len;
};

struct head_lines {
	const char *at, *end;
};

enum head_line {
	HEAD_FIELD,
	HEAD_LAST, /* the empty line after the head */
	HEAD_NONE  /* incomplete or malformed */
};

/* The next line, without its CRLF. */
enum head_line head_next_line(struct head_lines *l, struct head_text *out);
/* 0, or CSSL_E_RANGE: not one field in one line (RFC 9112 5.2: folded lines are obsolete). */
int head_split_field(const struct head_text *line, struct head_text *name, struct head_text *value);
/* Does every line up to the empty one end in CRLF, and is none of them folded (RFC 9112 5.2)? */
bool head_is_plain(const uint8_t *at, const uint8_t *end);
/* Is @t @word, in upper or lower case? */
bool head_is_word(const struct head_text *t, const char *word);

/* Fields of a response that stand in its head. */
enum head_seen {
	SEEN_LENGTH = 1 << 0,
	SEEN_ETAG = 1 << 1,
	SEEN_RANGE = 1 << 2,
	SEEN_RANGES = 1 << 3,
	SEEN_CODING = 1 << 4,
	SEEN_CLOSE = 1 << 5,
	SEEN_OLD = 1 << 6, /* HTTP/1.0 */
};

struct response_head {
	unsigned status, seen; /* enum head_seen */
	unsigned odd;          /* of these, the fields that stand twice or have another value than expected: a length;
				  a strong ETag; one range of bytes; bytes; chunked */
	size_t len;            /* of the head */
	uint64_t length;
	struct head_text etag; /* with its quotes */
	uint64_t first, last, total;
};

/* 0; RESPONSE_HEAD_INCOMPLETE; CSSL_E_RANGE: not the head of a response. */
#define RESPONSE_HEAD_INCOMPLETE 1
int response_head_read(const uint8_t *data, size_t len, struct response_head *out);

/* Does another response follow on its connection, as far as it says? */
bool response_head_persists(const struct response_head *h);

/* Writes a head for an answer whose body goes on elsewhere. Only the follower of the messages reads it. @len: of the
 * body, or ANSWER_CHUNKED (RFC 9112 7.1). Returns the bytes written. */
#define ANSWER_CHUNKED UINT64_MAX
enum answer_close { ANSWER_PERSISTS, ANSWER_CLOSES };
#define ANSWER_HEAD_MAX 96u
size_t answer_head_write(uint64_t len, enum answer_close closes, char out[static ANSWER_HEAD_MAX]);
