/* download.c: reads only those fields of a head that matter here. The follower of the messages (http_follower.h)
 * checks, before or later, that this is HTTP at all. If this reader does not accept a head, the answer is simply no
 * download.
 */
#include "sslagent/service/http/download.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "proto/error.h"
#include "proto/wire.h"

/* --- heads, line by line --- */

struct text {
	const char *at;
	size_t len;
};

struct lines {
	const char *at, *end;
};

enum line {
	LINE_FIELD,
	LINE_LAST /* the empty line after the head */,
	LINE_NONE /* incomplete or malformed */
};

static enum line next_line(struct lines *l, struct text *out)
{
	const char *newline = l->at < l->end ? memchr(l->at, '\n', (size_t)(l->end - l->at)) : NULL;

	if (!newline || newline == l->at || newline[-1] != '\r')
		return LINE_NONE;
	*out = (struct text){ l->at, (size_t)(newline - 1 - l->at) };
	l->at = newline + 1;
	return out->len ? LINE_FIELD : LINE_LAST;
}

static int is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* 0, or CSSL_E_RANGE: not one field in one line (RFC 9112 5.2: folded lines are obsolete). */
static int split_field(const struct text *line, struct text *name, struct text *value)
{
	const char *colon = memchr(line->at, ':', line->len), *end = line->at + line->len;

	if (!colon || is_blank(line->at[0]))
		return CSSL_E_RANGE;
	*name = (struct text){ line->at, (size_t)(colon - line->at) };
	const char *at = colon + 1;
	while (at < end && is_blank(*at))
		at++;
	while (end > at && is_blank(end[-1]))
		end--;
	*value = (struct text){ at, (size_t)(end - at) };
	return 0;
}

static int is_word(const struct text *t, const char *word, size_t len)
{
	return t->len == len && strncasecmp(t->at, word, len) == 0;
}

/* Reads digits at the start of @t and moves @t behind them. 0 or CSSL_E_RANGE. */
static int take_number(struct text *t, uint64_t *out)
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

static int take_char(struct text *t, char c)
{
	if (t->len == 0 || t->at[0] != c)
		return CSSL_E_RANGE;
	t->at++;
	t->len--;
	return 0;
}

/* --- response heads --- */

enum seen {
	SEEN_LENGTH = 1 << 0,
	SEEN_ETAG = 1 << 1,
	SEEN_RANGE = 1 << 2,
	SEEN_RANGES = 1 << 3,
	SEEN_CODING = 1 << 4,
	SEEN_CLOSE = 1 << 5,
	SEEN_OLD = 1 << 6, /* HTTP/1.0 */
};

struct response_head {
	unsigned status, seen; /* enum seen */
	size_t len;
	uint64_t length;
	struct text etag;
	uint64_t first, last, total;
};

/* Each returns 0 or negative. If a field cannot be read, the answer is no download. */
static int take_length(struct response_head *h, struct text v)
{
	return take_number(&v, &h->length) < 0 || v.len ? CSSL_E_RANGE : 0;
}

static int is_etagc(unsigned char byte)
{
	return byte > ' ' && byte != '"' && byte != 0x7f;
}

/* Only a strong tag proves that the bytes are the same (RFC 9110 8.8.1; 8.8.3 has its syntax). */
static int take_etag(struct response_head *h, struct text v)
{
	if (v.len < 2 || v.len > DOWNLOAD_ETAG_MAX || v.at[0] != '"' || v.at[v.len - 1] != '"')
		return CSSL_E_RANGE;
	for (size_t i = 1; i < v.len - 1; i++)
		if (!is_etagc((unsigned char)v.at[i]))
			return CSSL_E_RANGE;
	h->etag = v;
	return 0;
}

/* bytes first-last/total */
static int take_range(struct response_head *h, struct text v)
{
	if (v.len < 6 || strncasecmp(v.at, "bytes ", 6) != 0)
		return CSSL_E_RANGE;
	v.at += 6;
	v.len -= 6;
	if (take_number(&v, &h->first) < 0 || take_char(&v, '-') < 0 || take_number(&v, &h->last) < 0 ||
		take_char(&v, '/') < 0 || take_number(&v, &h->total) < 0 || v.len)
		return CSSL_E_RANGE;
	return h->first <= h->last && h->last < h->total ? 0 : CSSL_E_RANGE;
}

static int take_ranges(struct response_head *h, struct text v)
{
	return is_word(&v, "bytes", 5) ? 0 : CSSL_E_RANGE;
}

static int take_nothing(struct response_head *h, struct text v)
{
	return 0;
}

/* The list may hold more words than the one that matters. */
static int take_connection(struct response_head *h, struct text v)
{
	return is_word(&v, "keep-alive", 10) ? 0 : CSSL_E_RANGE;
}

#define FIELD(name, bit, take)                                                                                         \
	{                                                                                                              \
		name, sizeof name - 1, bit, take                                                                       \
	}
static const struct field_row {
	const char *name;
	size_t len;
	enum seen bit;
	int (*take)(struct response_head *h, struct text value);
} response_fields[] = {
	FIELD("Content-Length", SEEN_LENGTH, take_length),
	FIELD("ETag", SEEN_ETAG, take_etag),
	FIELD("Content-Range", SEEN_RANGE, take_range),
	FIELD("Accept-Ranges", SEEN_RANGES, take_ranges),
	FIELD("Transfer-Encoding", SEEN_CODING, take_nothing),
};

/* 0, or negative: a field that matters stands twice or cannot be read. */
static int take_field(struct response_head *h, const struct text *line)
{
	struct text name, value;

	if (split_field(line, &name, &value) < 0)
		return CSSL_E_RANGE;
	if (is_word(&name, "Connection", 10)) {
		h->seen |= take_connection(h, value) < 0 ? SEEN_CLOSE : 0u;
		return 0;
	}
	for (size_t i = 0; i < sizeof response_fields / sizeof response_fields[0]; i++) {
		const struct field_row *row = &response_fields[i];
		if (!is_word(&name, row->name, row->len))
			continue;
		if (h->seen & row->bit)
			return CSSL_E_RANGE;
		h->seen |= row->bit;
		return row->take(h, value);
	}
	return 0;
}

/* HTTP/1.x SSS */
static int take_status(struct response_head *h, const struct text *line)
{
	struct text t = *line;
	uint64_t minor, status;

	if (t.len < 12 || memcmp(t.at, "HTTP/1.", 7) != 0)
		return CSSL_E_RANGE;
	t.at += 7;
	t.len -= 7;
	if (take_number(&t, &minor) < 0 || minor > 1 || take_char(&t, ' ') < 0 || take_number(&t, &status) < 0 ||
		status > 999)
		return CSSL_E_RANGE;
	h->status = (unsigned)status;
	h->seen |= minor == 0 ? SEEN_OLD : 0u;
	return 0;
}

/* 0; DOWNLOAD_INCOMPLETE; CSSL_E_RANGE. */
static int read_head(const uint8_t *data, size_t len, struct response_head *h)
{
	struct lines lines = { (const char *)data, (const char *)data + len };
	struct text line;
	enum line kind = next_line(&lines, &line);

	*h = (struct response_head){ 0 };
	if (kind == LINE_FIELD && take_status(h, &line) < 0)
		return CSSL_E_RANGE;
	while (kind == LINE_FIELD && (kind = next_line(&lines, &line)) == LINE_FIELD) {
		if (take_field(h, &line) < 0)
			return CSSL_E_RANGE;
	}
	h->len = (size_t)(lines.at - (const char *)data);
	if (kind == LINE_LAST)
		return h->status ? 0 : CSSL_E_RANGE;
	return memchr(lines.at, '\n', len - h->len) ? CSSL_E_RANGE : DOWNLOAD_INCOMPLETE;
}

static enum download_close closes(const struct response_head *h)
{
	return h->seen & (SEEN_CLOSE | SEEN_OLD) ? DOWNLOAD_CLOSES : DOWNLOAD_PERSISTS;
}

int download_begins(const uint8_t *data, size_t len, struct download *out)
{
	struct response_head h;

	if (read_head(data, len < DOWNLOAD_HEAD_MAX ? len : DOWNLOAD_HEAD_MAX, &h) != 0 || (h.seen & SEEN_CODING) ||
		!(h.seen & SEEN_LENGTH) || !(h.seen & SEEN_ETAG) || h.length == 0)
		return DOWNLOAD_NOT;
	int whole = h.status == 200 && (h.seen & SEEN_RANGES) && !(h.seen & SEEN_RANGE);
	int range = h.status == 206 && (h.seen & SEEN_RANGE) && h.last - h.first + 1 == h.length;
	if (!whole && !range)
		return DOWNLOAD_NOT;
	*out = (struct download){
		.first = range ? h.first : 0,
		.len = h.length,
		.total = range ? h.total : h.length,
		.head_len = (uint32_t)h.len,
		.closes = (uint8_t)closes(&h),
		.etag_len = (uint8_t)h.etag.len,
	};
	memcpy(out->etag, h.etag.at, h.etag.len);
	return 0;
}

int download_resumes(struct download *d, uint64_t done, const uint8_t *data, size_t len, size_t *head_len)
{
	struct response_head h;
	size_t at = 0;
	int r;

	do { /* skip interim responses */
		r = read_head(data + at, len - at, &h);
		at += h.len;
	} while (r == 0 && h.status / 100 == 1 && h.status != 101);
	if (r == DOWNLOAD_INCOMPLETE && len < DOWNLOAD_HEAD_MAX)
		return DOWNLOAD_INCOMPLETE;
	const unsigned must = SEEN_LENGTH | SEEN_ETAG | SEEN_RANGE;
	if (r != 0 || h.status != 206 || (h.seen & must) != must || (h.seen & SEEN_CODING))
		return CSSL_E_MISMATCH;
	if (h.first != d->first + done || h.last != d->first + d->len - 1 || h.total != d->total ||
		h.length != d->len - done || h.etag.len != d->etag_len || memcmp(h.etag.at, d->etag, d->etag_len) != 0)
		return CSSL_E_MISMATCH;
	if (closes(&h) == DOWNLOAD_CLOSES)
		d->closes = DOWNLOAD_CLOSES;
	*head_len = at;
	return 0;
}

size_t download_rest_head(const struct download *d, uint64_t left, char out[static DOWNLOAD_REST_HEAD_MAX])
{
	return (size_t)snprintf(out, DOWNLOAD_REST_HEAD_MAX,
		"HTTP/1.1 206 Partial Content\r\nContent-Length: %llu\r\n%s\r\n", (unsigned long long)left,
		d->closes == DOWNLOAD_CLOSES ? "Connection: close\r\n" : "");
}

/* --- the question --- */

/* The client's own field would ask for another range, or for another state of the representation. */
static int is_replaced(const struct text *name)
{
	static const char *const names[] = { "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since",
		"If-Unmodified-Since" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (is_word(name, names[i], strlen(names[i])))
			return 1;
	}
	return 0;
}

struct question {
	uint8_t *at, *end;
};

static int put(struct question *q, const void *data, size_t len)
{
	if ((size_t)(q->end - q->at) < len)
		return CSSL_E_TOO_LONG;
	memcpy(q->at, data, len);
	q->at += len;
	return 0;
}

static int put_line(struct question *q, const struct text *line)
{
	return put(q, line->at, line->len + 2); /* CR LF follows the line */
}

static int put_conditions(struct question *q, const struct download *d, uint64_t done)
{
	char text[DOWNLOAD_ASK_MORE];
	int len = snprintf(text, sizeof text, "Range: bytes=%llu-%llu\r\nIf-Match: %.*s\r\n\r\n",
		(unsigned long long)(d->first + done), (unsigned long long)(d->first + d->len - 1), (int)d->etag_len,
		d->etag);

	return put(q, text, (size_t)len);
}

ptrdiff_t download_ask(
	const struct download *d, uint64_t done, const uint8_t *head, size_t len, uint8_t *out, size_t cap)
{
	struct lines lines = { (const char *)head, (const char *)head + len };
	struct question q = { out, out + cap };
	struct text line, name, value;
	enum line kind = next_line(&lines, &line);
	int r = kind == LINE_FIELD ? put_line(&q, &line) : CSSL_E_RANGE;

	while (r == 0 && (kind = next_line(&lines, &line)) == LINE_FIELD) {
		r = split_field(&line, &name, &value);
		if (r == 0 && !is_replaced(&name))
			r = put_line(&q, &line);
	}
	if (r == 0)
		r = kind == LINE_LAST && lines.at == lines.end ? put_conditions(&q, d, done) : CSSL_E_RANGE;
	return r < 0 ? r : q.at - out;
}

/* --- the note for a successor --- */

size_t download_write(const struct download *d, uint8_t out[static DOWNLOAD_NOTE_MAX])
{
	struct wire_writer w = wire_writer(out, DOWNLOAD_NOTE_MAX);

	wire_put_u64(&w, d->first);
	wire_put_u64(&w, d->len);
	wire_put_u64(&w, d->total);
	wire_put_u32(&w, d->head_len);
	wire_put_u8(&w, d->closes);
	wire_put_u8(&w, d->etag_len);
	wire_put_bytes(&w, d->etag, d->etag_len);
	return (size_t)wire_writer_len(&w);
}

int download_read(const uint8_t *in, size_t len, struct download *out)
{
	struct wire_reader r = wire_reader(in, len);
	struct download d = { 0 };

	d.first = wire_u64(&r);
	d.len = wire_u64(&r);
	d.total = wire_u64(&r);
	d.head_len = wire_u32(&r);
	d.closes = wire_u8(&r);
	d.etag_len = wire_u8(&r);
	const uint8_t *etag = wire_bytes(&r, d.etag_len);
	int error = wire_reader_end(&r);
	if (error)
		return error;
	if (d.len == 0 || d.len > d.total || d.first > d.total - d.len || d.head_len == 0 ||
		d.head_len > DOWNLOAD_HEAD_MAX || d.closes > DOWNLOAD_CLOSES || d.etag_len > DOWNLOAD_ETAG_MAX)
		return CSSL_E_RANGE;
	memcpy(d.etag, etag, d.etag_len);
	*out = d;
	return 0;
}
