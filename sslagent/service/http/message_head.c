/* message_head.c: implements message_head.h. */
#include "sslagent/service/http/message_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"

/* --- line by line --- */

enum head_line head_next_line(struct head_lines *l, struct head_text *out)
{
	const char *newline = l->at < l->end ? memchr(l->at, '\n', (size_t)(l->end - l->at)) : NULL;

	if (!newline || newline == l->at || newline[-1] != '\r')
		return HEAD_NONE;
	*out = (struct head_text){ l->at, (size_t)(newline - 1 - l->at) };
	l->at = newline + 1;
	return out->len ? HEAD_FIELD : HEAD_LAST;
}

bool head_is_plain(const uint8_t *at, const uint8_t *end)
{
	while (at && at < end && *at != ' ' && *at != '\t') {
		const uint8_t *lf = memchr(at, '\n', (size_t)(end - at));
		if (!lf || lf == at || lf[-1] != '\r')
			return false;
		if (lf - at == 1)
			return true;
		at = lf + 1;
	}
	return false;
}

static bool head_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

int head_split_field(const struct head_text *line, struct head_text *name, struct head_text *value)
{
	const char *colon = memchr(line->at, ':', line->len), *end = line->at + line->len;

	if (!colon || head_is_blank(line->at[0]))
		return CSSL_E_RANGE;
	*name = (struct head_text){ line->at, (size_t)(colon - line->at) };
	const char *at = colon + 1;
	while (at < end && head_is_blank(*at))
		at++;
	while (end > at && head_is_blank(end[-1]))
		end--;
	*value = (struct head_text){ at, (size_t)(end - at) };
	return 0;
}

bool head_is_word(const struct head_text *t, const char *word)
{
	return strlen(word) == t->len && strncasecmp(t->at, word, t->len) == 0;
}

/* Reads digits at the start of @t and moves @t behind them. 0 or CSSL_E_RANGE. */
static int head_take_number(struct head_text *t, uint64_t *out)
{
	uint64_t n = 0;
	size_t digits = 0;

	for (; digits < t->len && t->at[digits] >= '0' && t->at[digits] <= '9'; digits++) {
		if (digits == 18)
			return CSSL_E_RANGE;
		n = n * 10 + (uint64_t)(t->at[digits] - '0');
	}
	t->at += digits;
	t->len -= digits;
	*out = n;
	return digits ? 0 : CSSL_E_RANGE;
}

static int take_char(struct head_text *t, char c)
{
	if (t->len == 0 || t->at[0] != c)
		return CSSL_E_RANGE;
	t->at++;
	t->len--;
	return 0;
}

/* --- response heads --- */

/* Each returns 0 or negative. Negative: the field has another value than expected. */
static int take_length(struct response_head *h, struct head_text v)
{
	return head_take_number(&v, &h->length) < 0 || v.len ? CSSL_E_RANGE : 0;
}

static bool is_etagc(unsigned char byte)
{
	return byte > ' ' && byte != '"' && byte != 0x7f;
}

/* Only a strong tag proves that the bytes are the same (RFC 9110 8.8.1; 8.8.3 has its syntax). */
static int take_etag(struct response_head *h, struct head_text v)
{
	if (v.len < 2 || v.len > HEAD_ETAG_MAX || v.at[0] != '"' || v.at[v.len - 1] != '"')
		return CSSL_E_RANGE;
	for (size_t i = 1; i < v.len - 1; i++)
		if (!is_etagc((unsigned char)v.at[i]))
			return CSSL_E_RANGE;
	h->etag = v;
	return 0;
}

/* bytes first-last/total */
static int head_take_range(struct response_head *h, struct head_text v)
{
	if (v.len < 6 || strncasecmp(v.at, "bytes ", 6) != 0)
		return CSSL_E_RANGE;
	v.at += 6;
	v.len -= 6;
	/* a total of "*" is refused: it cannot prove that the representation is the same */
	if (head_take_number(&v, &h->first) < 0 || take_char(&v, '-') < 0 || head_take_number(&v, &h->last) < 0 ||
		take_char(&v, '/') < 0 || head_take_number(&v, &h->total) < 0 || v.len)
		return CSSL_E_RANGE;
	return h->first <= h->last && h->last < h->total ? 0 : CSSL_E_RANGE;
}

static const struct field_row {
	const char *name;
	enum head_seen bit;
	int (*take)(struct response_head *h, struct head_text value);
	const char *expected; /* without take(): the value */
} response_fields[] = {
	{ "Content-Length", SEEN_LENGTH, take_length, NULL },
	{ "ETag", SEEN_ETAG, take_etag, NULL },
	{ "Content-Range", SEEN_RANGE, head_take_range, NULL },
	{ "Accept-Ranges", SEEN_RANGES, NULL, "bytes" },
	{ "Transfer-Encoding", SEEN_CODING, NULL, "chunked" },
};

/* 0, or negative: it is no field. */
static int head_take_field(struct response_head *h, const struct head_text *line)
{
	struct head_text name, value;

	if (head_split_field(line, &name, &value) < 0)
		return CSSL_E_RANGE;
	if (head_is_word(&name, "Connection")) {
		h->seen |=
			head_is_word(&value, "keep-alive") ? 0u : SEEN_CLOSE; /* a list may hold more words than it */
		return 0;
	}
	for (size_t i = 0; i < sizeof response_fields / sizeof response_fields[0]; i++) {
		const struct field_row *row = &response_fields[i];
		if (!head_is_word(&name, row->name))
			continue;
		if (h->seen & row->bit || (row->take ? row->take(h, value) < 0 : !head_is_word(&value, row->expected)))
			h->odd |= row->bit;
		h->seen |= row->bit;
	}
	return 0;
}

/* HTTP/1.x SSS */
static int take_status(struct response_head *h, const struct head_text *line)
{
	struct head_text t = *line;
	uint64_t minor, status;

	if (t.len < 12 || memcmp(t.at, "HTTP/1.", 7) != 0)
		return CSSL_E_RANGE;
	t.at += 7;
	t.len -= 7;
	if (head_take_number(&t, &minor) < 0 || minor > 1 || take_char(&t, ' ') < 0 ||
		head_take_number(&t, &status) < 0 || status > 999)
		return CSSL_E_RANGE;
	h->status = (unsigned)status;
	h->seen |= minor == 0 ? SEEN_OLD : 0u;
	return 0;
}

int response_head_read(const uint8_t *data, size_t len, struct response_head *h)
{
	struct head_lines lines = { (const char *)data, (const char *)data + len };
	struct head_text line;
	enum head_line kind = head_next_line(&lines, &line);

	*h = (struct response_head){ 0 };
	if (kind == HEAD_FIELD && take_status(h, &line) < 0)
		return CSSL_E_RANGE;
	while (kind == HEAD_FIELD && (kind = head_next_line(&lines, &line)) == HEAD_FIELD) {
		if (head_take_field(h, &line) < 0)
			return CSSL_E_RANGE;
	}
	h->len = (size_t)(lines.at - (const char *)data);
	if (kind == HEAD_LAST)
		return h->status ? 0 : CSSL_E_RANGE;
	return memchr(lines.at, '\n', len - h->len) ? CSSL_E_RANGE : RESPONSE_HEAD_INCOMPLETE;
}

bool response_head_persists(const struct response_head *h)
{
	return !(h->seen & (SEEN_CLOSE | SEEN_OLD));
}

size_t answer_head_write(uint64_t len, enum answer_close closes, char out[static ANSWER_HEAD_MAX])
{
	char framing[48] = "Transfer-Encoding: chunked";

	if (len != ANSWER_CHUNKED)
		snprintf(framing, sizeof framing, "Content-Length: %llu", (unsigned long long)len);
	return (size_t)snprintf(out, ANSWER_HEAD_MAX, "HTTP/1.1 200 OK\r\n%s\r\n%s\r\n", framing,
		closes == ANSWER_CLOSES ? "Connection: close\r\n" : "");
}
