/* reply.h: reads replies of servers, line by line (RFC 5321 4.2), within bounds. Agents, relays and the queue have this
 * one reader. */
#pragma once

#include "smtp/span.h"

#define SMTP_REPLY_TEXT_MAX  8192u  /* all lines together, with their ends, before the last one */
#define SMTP_REPLY_BYTES_MAX 65536u /* as it came; more is refused */

/* RFC 3463 2, at the head of the text (RFC 2034 4). status 0: there is none. */
struct smtp_enhanced {
	uint8_t status;
	uint16_t subject, detail;
};

/* One line. Spans point into it, and are valid until the next one is read. */
struct smtp_reply_line {
	uint16_t code;
	uint16_t number; /* in its reply, from 1 */
	uint8_t is_last; /* a space, or nothing, behind the code */
	uint8_t is_cut;
	struct smtp_enhanced enhanced;
	struct smtp_span text; /* behind code and separator, the enhanced code with it */
	struct smtp_span wire; /* all of it, with CR LF; only of smtp_reply_read() */
};

/* Reads the text of a line, without its end. 0; CSSL_E_RANGE: not the line of a reply, which is three digits from 200
 * to 599, then a space, a hyphen or the end. */
int smtp_reply_line_parse(struct smtp_span text, struct smtp_reply_line *out);

/* Reads replies as servers of the world write them: LF alone ends a line, and so does any number of CRs before it; a
 * longer line than the buffer is cut; control characters become '?'; behind the code may stand anything. The last line
 * decides, also if those before have other codes. Each line is given as RFC 5321 4.2 wants it: in place if it came so,
 * else written anew. Embedded; the members are the reader's own, but @lines. */
struct smtp_reply_reader {
	char *buf;
	uint16_t max; /* bytes of @buf */
	uint16_t held;
	uint16_t given; /* bytes of the lines that were given */
	uint16_t lines; /* of a reply that has begun */
	uint32_t bytes; /* of it, as they came */
	uint8_t cut;
};

/* @buf has @max bytes, at least 64, and lives as long as the reader does. */
void smtp_reply_begin(struct smtp_reply_reader *r, char *buf, size_t max);

enum smtp_reply_result {
	SMTP_REPLY_NONE, /* no line: all was taken */
	SMTP_REPLY_MORE, /* a line; the reply goes on */
	SMTP_REPLY_DONE, /* the last line */
};

/* Takes the next line of @in; *taken bytes of it were read. Of a reply above SMTP_REPLY_TEXT_MAX the lines up to the
 * last one are left out. Negative: CSSL_E_RANGE: not the line of a reply; CSSL_E_TOO_LONG: the reply does not end. */
int smtp_reply_read(
	struct smtp_reply_reader *r, const char *in, size_t len, size_t *taken, struct smtp_reply_line *out);

/* The rest of a reply that has begun is a reply of its own. */
void smtp_reply_drop(struct smtp_reply_reader *r);

/* True between two replies. */
bool smtp_reply_is_between(const struct smtp_reply_reader *r);
