/* dots.h: dot-stuffing (RFC 5321 4.5.2): a message to the wire form that DATA carries, and back. In pieces of any size.
 */
#ifndef CSSL_SMTP_DOTS_H
#define CSSL_SMTP_DOTS_H

#include <stddef.h>
#include <stdint.h>

#include "smtp/span.h"

/* Embedded; zero is the head of a message. */
struct smtp_dots {
	uint8_t last[2]; /* the two bytes before */
	uint8_t begun;
};

/* Writes @in with a dot added to each dot that follows CR LF or begins the message. @out has room for 2 * @len. Returns
 * what was written. */
size_t smtp_dots_add(struct smtp_dots *dots, const char *in, size_t len, char *out);

/* The bytes to send behind the last piece: CR LF if the message does not end with it, and the line with the dot. */
struct smtp_span smtp_dots_end(const struct smtp_dots *dots);

/* Remove the added dots from bytes that smtp_data_follow() has taken, without the last three bytes of all. @out has
 * room for @len and may be @in. Returns the bytes written. */
size_t smtp_dots_remove(struct smtp_dots *dots, const char *in, size_t len, char *out);

#endif
