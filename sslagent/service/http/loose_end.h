/* loose_end.h: an answer whose head the strict parser does not understand. Does it end with the connection, and only so
 * (RFC 9112 6.3, rule 8)? A head that names a length, or a coding, in whatever spelling, is read in the strictest way:
 * what is short of it, or cannot be measured, is cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOOSE_LINE_MAX 64u

/* Begins as all zeros. */
struct loose_end {
	enum { LOOSE_FIRST_LINE, LOOSE_FIELDS, LOOSE_BODY, LOOSE_UNKNOWN } part;
	enum { LOOSE_UNTIL_END, LOOSE_OF_LENGTH, LOOSE_NO_BODY } framing;
	uint64_t length, body;           /* bytes */
	size_t line_len;                 /* may be more than the bytes that are kept */
	char line[LOOSE_LINE_MAX], last; /* byte */
};

/* The bytes of the answer, from the first on. */
void loose_end_follow(struct loose_end *l, const uint8_t *data, size_t len);
/* The backend sent FIN. Is nothing cut off? @is_to_head: of HEAD. */
bool loose_end_is_whole(const struct loose_end *l, int is_to_head);
