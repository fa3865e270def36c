/* reply.h: reads replies of servers, line by line (RFC 5321 4.2), within bounds. */
#ifndef CSSL_SMTP_REPLY_H
#define CSSL_SMTP_REPLY_H

#include "smtp/span.h"

#define SMTP_REPLY_LINES_MAX 128u  /* more is refused: an EHLO reply has some twenty */
#define SMTP_REPLY_TEXT_MAX  8192u /* all lines together, with their ends */

/* RFC 3463 2, at the head of the text (RFC 2034 4). status 0: there is none. */
struct smtp_enhanced {
	uint8_t status;
	uint16_t subject, detail;
};

/* One line. Spans point into it. */
struct smtp_reply_line {
	uint16_t code;
	uint8_t is_last; /* a space, or nothing, behind the code */
	struct smtp_enhanced enhanced;
	struct smtp_span text; /* behind code and separator, the enhanced code with it */
};

/* Reads the text of a line (line.h). 0; CSSL_E_RANGE: not the line of a reply, which is three digits from 200 to 599,
 * then a space, a hyphen or the end. */
int smtp_reply_line_parse(struct smtp_span text, struct smtp_reply_line *out);

/* A whole reply. Members are read by the caller after SMTP_REPLY_DONE; begin anew with zeros. */
struct smtp_reply {
	uint16_t code;
	uint16_t lines;
	uint32_t len;                  /* of all lines, with two bytes each for their ends */
	struct smtp_enhanced enhanced; /* of the first line */
};

enum smtp_reply_result { SMTP_REPLY_MORE, SMTP_REPLY_DONE };

/* Adds the next line, after its flaws (line.h). SMTP_REPLY_MORE, SMTP_REPLY_DONE; negative: CSSL_E_RANGE: not the line
 * of a reply, or one with NUL, bare CR or bare LF; CSSL_E_MISMATCH: another code than in the lines before;
 * CSSL_E_TOO_LONG: above the bounds. */
int smtp_reply_add(struct smtp_reply *reply, struct smtp_span text, unsigned flaws, struct smtp_reply_line *line);

/* "2.0.0 " and the like at the head of @text; its length goes to @taken. status 0 when there is none or its class is
 * not that of @code. */
struct smtp_enhanced smtp_enhanced_parse(struct smtp_span text, unsigned code, size_t *taken);

#endif
