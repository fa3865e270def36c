/* message.h: a message that is kept in memory while hooks judge it: its header as a list of fields, which they may
 * change, and its body. No sockets, no clock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "smtp/data.h"
#include "smtp/span.h"

#define MESSAGE_FIELDS_MAX 10000u
#define MESSAGE_MBOX_NAME  16u /* bytes */

struct message_field {
	struct smtp_span text; /* with its last line's end */
	char *own;             /* a changed one's memory, or NULL */
};

/* Embedded; zero is empty. */
struct message {
	char *at; /* as DATA carries it; after message_read() without added dots */
	size_t len, cap;
	struct message_field *fields;
	size_t count, field_cap;
	struct smtp_span gap, body; /* the empty line between, if there is one */
	/* The reading of message_next(). */
	size_t part, part_at; /* the fields, the gap, the body; behind them the end */
	struct smtp_dots dots;
};

void message_free(struct message *m);

/* The value of @cap when @len more bytes have come. */
size_t message_cap_with(const struct message *m, size_t len, size_t most);
/* Append bytes of DATA's content. 0; CSSL_E_NO_MEMORY; CSSL_E_TOO_LONG: it would have more than @most. */
int message_add(struct message *m, const void *data, size_t len, size_t most);

/* A message may begin with the line that parts mails in a file: "From " or ">From ". No field can stand in front of
 * it, so it has to become one. 0: @text begins in another way; or the length of @out, which goes in front of it. */
size_t message_mbox_line(struct smtp_span text, char out[static MESSAGE_MBOX_NAME]);

/* All has come, the last line with the dot included. Finds its fields; an mbox line is one. 0; CSSL_E_NO_MEMORY;
 * CSSL_E_TOO_LONG: more than MESSAGE_FIELDS_MAX. */
int message_read(struct message *m);

/* Name and value of a field: the value with everything behind the colon, without its last CRLF. */
void message_split(const struct message_field *f, struct smtp_span *name, struct smtp_span *value);

/* How a milter changes the header. Lines of a value are parted by LF or CRLF, and each but the first begins with a
 * space or tab. All of them: 0; CSSL_E_RANGE: name or value would break the header; CSSL_E_NO_MEMORY. */

/* A field in front of number @at, from 0; behind all if there are not so many. */
int message_insert(struct message *m, size_t at, struct smtp_span name, struct smtp_span value);
/* The @nth field of that name, from 1 (0 is 1, as Sendmail and Postfix take it), has this value now; empty: the field
 * is deleted. A field that is not there is added behind all, unless @value is empty. */
int message_change(struct message *m, size_t nth, struct smtp_span name, struct smtp_span value);

/* Piece number @n, from 0, of the message without added dots: its fields, the empty line, its body. 1, or 0: there are
 * no more. */
bool message_piece(const struct message *m, size_t n, struct smtp_span *out);

/* The next piece for DATA, with dots added and the final dot, in @out of @cap (at least 64) bytes. 0: that was all. */
size_t message_next(struct message *m, char *out, size_t cap);
