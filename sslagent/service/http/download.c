/* download.c: reads only those fields of a head that matter here. The follower of the messages (http_follower.h)
 * checks, before or later, that this is HTTP at all. If this reader does not accept a head, the answer is simply no
 * download.
 */
#include "sslagent/service/http/download.h"

#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "proto/wire.h"

/* --- response heads --- */

/* As response_head_read(). CSSL_E_RANGE also for a field that matters and stands twice, or cannot be read. */
static int read_head(const uint8_t *data, size_t len, struct response_head *h)
{
	const int r = response_head_read(data, len, h);

	return h->odd ? CSSL_E_RANGE : r;
}

int download_begins(const uint8_t *data, size_t len, struct download *out)
{
	struct response_head h;

	/* law 10: only these prove later that the rest is of the same bytes; a coding may differ each time */
	if (read_head(data, len < MESSAGE_HEAD_MAX ? len : MESSAGE_HEAD_MAX, &h) != 0 || (h.seen & SEEN_CODING) ||
		!(h.seen & SEEN_LENGTH) || !(h.seen & SEEN_ETAG) || h.length == 0)
		return DOWNLOAD_NOT;
	bool whole = h.status == 200 && (h.seen & SEEN_RANGES) && !(h.seen & SEEN_RANGE);
	bool range = h.status == 206 && (h.seen & SEEN_RANGE) && h.last - h.first + 1 == h.length;
	if (!whole && !range)
		return DOWNLOAD_NOT;
	*out = (struct download){
		.first = range ? h.first : 0,
		.len = h.length,
		.total = range ? h.total : h.length,
		.head_len = (uint32_t)h.len,
		.closes = response_head_persists(&h) ? ANSWER_PERSISTS : ANSWER_CLOSES,
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
	if (r == RESPONSE_HEAD_INCOMPLETE && len < MESSAGE_HEAD_MAX)
		return RESPONSE_HEAD_INCOMPLETE;
	const unsigned must = SEEN_LENGTH | SEEN_ETAG | SEEN_RANGE;
	if (r != 0 || h.status != 206 || (h.seen & must) != must || (h.seen & SEEN_CODING))
		return CSSL_E_MISMATCH;
	if (h.first != d->first + done || h.last != d->first + d->len - 1 || h.total != d->total ||
		h.length != d->len - done || h.etag.len != d->etag_len || memcmp(h.etag.at, d->etag, d->etag_len) != 0)
		return CSSL_E_MISMATCH;
	if (!response_head_persists(&h))
		d->closes = ANSWER_CLOSES;
	*head_len = at;
	return 0;
}

/* --- the question --- */

/* The client's own field would ask for another range, or for another state of the representation. */
static bool is_replaced(const struct head_text *name)
{
	static const char *const names[] = { "Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since",
		"If-Unmodified-Since" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (head_is_word(name, names[i]))
			return true;
	}
	return false;
}

struct question {
	uint8_t *at, *end;
};

static int download_put(struct question *q, const void *data, size_t len)
{
	if ((size_t)(q->end - q->at) < len)
		return CSSL_E_TOO_LONG;
	memcpy(q->at, data, len);
	q->at += len;
	return 0;
}

static int download_put_line(struct question *q, const struct head_text *line)
{
	return download_put(q, line->at, line->len + 2); /* CR LF follows the line */
}

static int put_conditions(struct question *q, const struct download *d, uint64_t done)
{
	char text[DOWNLOAD_ASK_MORE];
	int len = snprintf(text, sizeof text, "Range: bytes=%llu-%llu\r\nIf-Match: %.*s\r\n\r\n",
		(unsigned long long)(d->first + done), (unsigned long long)(d->first + d->len - 1), (int)d->etag_len,
		d->etag);

	return download_put(q, text, (size_t)len);
}

ptrdiff_t download_ask(
	const struct download *d, uint64_t done, const uint8_t *head, size_t len, uint8_t *out, size_t cap)
{
	struct head_lines lines = { (const char *)head, (const char *)head + len };
	struct question q = { out, out + cap };
	struct head_text line, name, value;
	enum head_line kind = head_next_line(&lines, &line);
	int r = kind == HEAD_FIELD ? download_put_line(&q, &line) : CSSL_E_RANGE;

	while (r == 0 && (kind = head_next_line(&lines, &line)) == HEAD_FIELD) {
		r = head_split_field(&line, &name, &value);
		if (r == 0 && !(d && is_replaced(&name)))
			r = download_put_line(&q, &line);
	}
	/* a body of the request was not kept, so it cannot be sent again */
	if (r == 0 && (kind != HEAD_LAST || lines.at != lines.end))
		r = CSSL_E_RANGE;
	if (r == 0)
		r = d ? put_conditions(&q, d, done) : download_put_line(&q, &line);
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
	struct wire_reader reader = wire_reader(in, len);
	struct download d = { 0 };

	d.first = wire_u64(&reader);
	d.len = wire_u64(&reader);
	d.total = wire_u64(&reader);
	d.head_len = wire_u32(&reader);
	d.closes = wire_u8(&reader);
	d.etag_len = wire_u8(&reader);
	const uint8_t *etag = wire_bytes(&reader, d.etag_len);
	int r = wire_reader_end(&reader);
	if (r)
		return r;
	if (d.len == 0 || d.len > d.total || d.first > d.total - d.len || d.head_len == 0 ||
		d.head_len > MESSAGE_HEAD_MAX || d.closes > ANSWER_CLOSES || d.etag_len > HEAD_ETAG_MAX)
		return CSSL_E_RANGE;
	memcpy(d.etag, etag, d.etag_len);
	*out = d;
	return 0;
}
