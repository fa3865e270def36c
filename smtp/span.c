/* span.c: comparing, cutting and reading pieces of text. */
#include "smtp/span.h"

#include <string.h>
#include <strings.h>

#include "proto/error.h"

struct smtp_span smtp_span_of(const char *text)
{
	return (struct smtp_span){ text, text ? strlen(text) : 0 };
}

bool smtp_span_equal(struct smtp_span a, struct smtp_span b)
{
	return a.len == b.len && (a.len == 0 || strncasecmp(a.at, b.at, a.len) == 0);
}

/* Most words differ in their first character: no letters if in another bit than that of upper and lower case. */
bool smtp_span_is(struct smtp_span span, const char *text)
{
	if (span.len > 0 && ((span.at[0] ^ text[0]) & ~0x20))
		return false;
	return smtp_span_equal(span, smtp_span_of(text));
}

static bool smtp_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void smtp_span_skip(struct smtp_span *span, size_t len)
{
	span->at += len;
	span->len -= len;
}

static void skip_blanks(struct smtp_span *span)
{
	while (span->len > 0 && smtp_is_blank(*span->at))
		smtp_span_skip(span, 1);
}

struct smtp_span smtp_span_word(struct smtp_span *rest)
{
	skip_blanks(rest);
	struct smtp_span word = { rest->at, 0 };
	while (word.len < rest->len && !smtp_is_blank(word.at[word.len]))
		word.len++;
	if (word.len > 0)
		smtp_span_skip(rest, word.len);
	skip_blanks(rest);
	return word;
}

struct smtp_span smtp_span_until(struct smtp_span *rest, char separator)
{
	struct smtp_span head = *rest;
	const char *at = rest->len ? memchr(rest->at, separator, rest->len) : NULL;
	if (!at) {
		*rest = (struct smtp_span){ NULL, 0 };
		return head;
	}
	head.len = (size_t)(at - head.at);
	smtp_span_skip(rest, head.len + 1);
	return head;
}

struct smtp_span smtp_span_trim(struct smtp_span span)
{
	skip_blanks(&span);
	while (span.len > 0 && smtp_is_blank(span.at[span.len - 1]))
		span.len--;
	return span;
}

int smtp_span_number(struct smtp_span span, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;
	if (span.len == 0)
		return CSSL_E_RANGE;
	for (size_t i = 0; i < span.len; i++) {
		unsigned digit = (unsigned char)span.at[i] - (unsigned)'0';
		if (digit > 9 || value > (UINT64_MAX - digit) / 10)
			return CSSL_E_RANGE;
		value = value * 10 + digit;
	}
	if (value > max)
		return CSSL_E_RANGE;
	*out = value;
	return 0;
}

int smtp_span_copy(struct smtp_span span, char *out, size_t cap)
{
	bool fits = span.len < cap;
	if (fits && span.len > 0)
		memcpy(out, span.at, span.len);
	out[fits ? span.len : 0] = 0;
	return fits ? 0 : CSSL_E_TOO_LONG;
}

void smtp_lower(char *text)
{
	for (; *text; text++)
		*text = *text >= 'A' && *text <= 'Z' ? (char)(*text | 0x20) : *text;
}

bool smtp_is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

size_t smtp_span_keyword(struct smtp_span span)
{
	size_t len = 0;
	while (len < span.len && (smtp_is_alnum(span.at[len]) || (len > 0 && span.at[len] == '-')))
		len++;
	return len;
}

bool smtp_span_is_graphic(struct smtp_span span, const char *except)
{
	for (size_t i = 0; i < span.len; i++) {
		char c = span.at[i];
		if (c <= ' ' || c > '~' || strchr(except, c))
			return false;
	}
	return true;
}

bool smtp_span_has_8bit(struct smtp_span span)
{
	for (size_t i = 0; i < span.len; i++)
		if ((unsigned char)span.at[i] > 127)
			return true;
	return false;
}

/* RFC 3629 4: by first byte, how many follow and the range of the second; the others are 80 to BF. */
static const struct utf8_row {
	unsigned char from, to, follow, second_from, second_to;
} utf8_rows[] = {
	{ 0x20, 0x7e, 0, 0, 0 },
	{ 0xc2, 0xdf, 1, 0x80, 0xbf },
	{ 0xe0, 0xe0, 2, 0xa0, 0xbf },
	{ 0xe1, 0xec, 2, 0x80, 0xbf },
	{ 0xed, 0xed, 2, 0x80, 0x9f },
	{ 0xee, 0xef, 2, 0x80, 0xbf },
	{ 0xf0, 0xf0, 3, 0x90, 0xbf },
	{ 0xf1, 0xf3, 3, 0x80, 0xbf },
	{ 0xf4, 0xf4, 3, 0x80, 0x8f },
};

/* Length of the character at the head of @left bytes; 0 when it is none. */
static size_t character_len(const unsigned char *at, size_t left)
{
	const struct utf8_row *row = utf8_rows, *end = utf8_rows + sizeof utf8_rows / sizeof utf8_rows[0];
	while (row < end && (at[0] < row->from || at[0] > row->to))
		row++;
	if (row == end || row->follow >= left)
		return 0;
	if (row->follow > 0 && (at[1] < row->second_from || at[1] > row->second_to))
		return 0;
	if (at[0] == 0xc2 && at[1] < 0xa0) /* the control characters U+0080 to U+009F */
		return 0;
	for (unsigned i = 2; i <= row->follow; i++)
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	return row->follow + 1u;
}

bool smtp_span_is_utf8(struct smtp_span span)
{
	for (size_t at = 0, len; at < span.len; at += len) {
		len = character_len((const unsigned char *)span.at + at, span.len - at);
		if (len == 0)
			return false;
	}
	return true;
}
