/* line.h: cuts bytes into lines (RFC 5321 2.3.8: only CR LF ends one) in a buffer of fixed size.
 *
 * A line that is whole in the input is returned in place; only a split one is collected in the caller's buffer. The
 * lines are the same wherever the input is split.
 */
#pragma once

#include "smtp/span.h"

/* Lengths with CRLF. */
#define SMTP_COMMAND_MAX   512u   /* RFC 5321 4.5.3.1.4; parameters of extensions add to it */
#define SMTP_TEXT_MAX      1000u  /* RFC 5321 4.5.3.1.6 */
#define SMTP_AUTH_LINE_MAX 12288u /* RFC 4954 4 */

/* What is wrong with a line; bits. */
enum smtp_line_flaw {
	SMTP_LINE_NUL = 1,
	SMTP_LINE_CONTROL = 2, /* another control character than NUL, TAB, CR, LF */
	SMTP_LINE_8BIT = 4,
	SMTP_LINE_BARE_CR = 8,  /* a CR without LF behind; it is part of the line */
	SMTP_LINE_BARE_LF = 16, /* a LF without CR before */
	SMTP_LINE_TOO_LONG = 32,
};

struct smtp_line {
	struct smtp_span text; /* without its end; until the next call */
	struct smtp_span wire; /* with its end; both begin at the same place */
	unsigned flaws;
};

/* Embedded; members are the reader's own. */
struct smtp_line_reader {
	uint16_t max;  /* of a line with its end; the size of the buffer */
	uint16_t held; /* bytes of an unfinished line in the buffer */
	uint16_t most; /* the most that was ever in it */
	uint8_t skips; /* the rest of a line that was too long */
	char *buf;
};

/* @buf has @max bytes, at most 65,535, and lives as long as the reader does. */
void smtp_line_begin(struct smtp_line_reader *r, size_t max, char *buf);

#define SMTP_LINE 1

/* Take the next line of @in; *taken bytes of it were read. SMTP_LINE: @out is a line. 0: all was taken, more is needed.
 * A line of more than @max bytes is returned once, with its first @max bytes and SMTP_LINE_TOO_LONG, as soon
 * as so many have come; the rest of it is skipped. */
int smtp_line_read(struct smtp_line_reader *r, const char *in, size_t len, size_t *taken, struct smtp_line *out);

/* Wipe what was ever in the buffer. */
void smtp_line_wipe(const struct smtp_line_reader *r);

/* True between lines: nothing is held and nothing is being skipped. */
bool smtp_line_is_between(const struct smtp_line_reader *r);
