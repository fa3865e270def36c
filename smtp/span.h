/* span.h: a piece of text that others own: a pointer and a length, not terminated. All of smtp/ uses it.
 *
 * smtp/ is SMTP as bytes and states. It has no sockets, no clock, no loop and no log, and allocates nothing: every
 * object is embedded in its caller's and every buffer is the caller's. Letters are compared as ASCII (RFC 5321 2.4).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct smtp_span {
	const char *at;
	size_t len;
};

/* Of a terminated text; NULL is empty. */
struct smtp_span smtp_span_of(const char *text);

/* True when both are the same but for the case of ASCII letters. */
bool smtp_span_is(struct smtp_span span, const char *text);
bool smtp_span_equal(struct smtp_span a, struct smtp_span b);

/* Takes the first word from @rest, with the spaces and tabs around it; empty when there is none. */
struct smtp_span smtp_span_word(struct smtp_span *rest);

/* Takes what stands before the first @separator, and the separator, from @rest; all of it when there is none. */
struct smtp_span smtp_span_until(struct smtp_span *rest, char separator);

/* Without spaces and tabs at both ends. */
struct smtp_span smtp_span_trim(struct smtp_span span);

/* Decimal digits only. 0, or CSSL_E_RANGE when it is empty, something else, or larger than @max. */
int smtp_span_number(struct smtp_span span, uint64_t max, uint64_t *out);

/* Copies and terminates. 0, or CSSL_E_TOO_LONG with an empty @out. */
int smtp_span_copy(struct smtp_span span, char *out, size_t cap);

/* Writes small letters in place of capital ones of ASCII. */
void smtp_lower(char *text);

/* A letter or digit of ASCII. */
bool smtp_is_alnum(char c);
/* How many bytes at the head of @span can be a keyword: (ALPHA / DIGIT) *(ALPHA / DIGIT / "-"), as RFC 5321 4.1.1.1 and
 * 4.1.2 have it. */
size_t smtp_span_keyword(struct smtp_span span);

/* True when every byte is printable ASCII (0x21 to 0x7e) other than those in @except. */
bool smtp_span_is_graphic(struct smtp_span span, const char *except);

/* True for well-formed UTF-8 (RFC 3629 4) without control characters; ASCII is. */
bool smtp_span_is_utf8(struct smtp_span span);

/* True when a byte above 127 is in it. */
bool smtp_span_has_8bit(struct smtp_span span);
