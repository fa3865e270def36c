/* stream_kept.c: bytes that the owner did not use. They are copied out of the worker's buffer, and copied back in front
 * of the next bytes. */
#include "net/stream/stream_kept.h"

#include <assert.h>
#include <string.h>

#include "net/stream/stream_state.h"
#include "proto/error.h"

static size_t kept_len(const struct stream_buffer *b)
{
	return b->end - b->start;
}

static void kept_drop(struct stream *s, struct stream_buffer *b)
{
	buffers_give(worker_buffers(s->worker), b->data, b->cap);
	*b = (struct stream_buffer){ 0 };
}

void stream_drop_kept(struct stream *s)
{
	kept_drop(s, &s->kept);
}

size_t stream_kept(const struct stream *s)
{
	return kept_len(&s->kept);
}

const uint8_t *stream_kept_data(const struct stream *s)
{
	return s->kept.data ? s->kept.data + s->kept.start : NULL;
}

/* Keep a copy. The bytes kept before are gone. */
static int kept_copy(struct stream *s, const uint8_t *data, size_t len)
{
	struct stream_buffer b = { .end = (uint32_t)len };

	b.data = buffers_take(worker_buffers(s->worker), len, &b.cap);
	if (!b.data)
		return CSSL_E_NO_MEMORY;
	memcpy(b.data, data, len);
	kept_drop(s, &s->kept);
	s->kept = b;
	return 0;
}

int stream_keep(struct stream *s, const void *data, size_t len)
{
	struct stream_buffer b = { .end = (uint32_t)(len + stream_kept(s)) };

	if (len == 0)
		return 0;
	b.data = buffers_take(worker_buffers(s->worker), b.end, &b.cap);
	if (!b.data)
		return CSSL_E_NO_MEMORY;
	memcpy(b.data, data, len);
	if (stream_kept(s))
		memcpy(b.data + len, stream_kept_data(s), stream_kept(s));
	kept_drop(s, &s->kept);
	s->kept = b;
	if (s->reading == READING_ON) { /* the next byte may never come */
		stream_read_stop(s);
		s->reading = READING_KEPT;
		worker_at_turn_end(s->worker, &s->turn);
	}
	return 0;
}

/* Offer the kept bytes to the owner, in place. */
void stream_deliver_kept(struct stream *s)
{
	struct stream_buffer b = s->kept;

	s->kept = (struct stream_buffer){ 0 };
	size_t used = s->ops->on_data(s, b.data + b.start, kept_len(&b));
	if (!stream_is_open(s)) {
		kept_drop(s, &b);
		return;
	}
	assert(used <= kept_len(&b));
	b.start += (uint32_t)used;
	if (kept_len(&b) == 0) {
		kept_drop(s, &b);
		return;
	}
	assert(!s->kept.data); /* nothing is read or kept while on_data runs */
	s->kept = b;
	/* Few bytes in a large buffer: move them into a smaller one. Without memory they stay. */
	if (kept_len(&b) <= b.cap / 8) {
		s->kept = (struct stream_buffer){ 0 };
		if (kept_copy(s, b.data + b.start, kept_len(&b)) == 0)
			kept_drop(s, &b);
		else
			s->kept = b;
	}
}

void stream_read_again(struct stream *s)
{
	if (stream_is_open(s) && stream_kept(s))
		stream_deliver_kept(s);
}

/* New input, in the worker's buffer */

uint8_t *stream_read_room(struct stream *s, size_t *len)
{
	uint8_t *front = worker_read_buffer(s->worker);
	size_t kept = stream_kept(s), room = WORKER_READ_BUFFER_LEN - kept;

	if (kept)
		memcpy(front, stream_kept_data(s), kept);
	*len = room < s->read_max ? room : s->read_max;
	return front + kept;
}

void stream_deliver_read(struct stream *s, size_t new_len)
{
	uint8_t *front = worker_read_buffer(s->worker);
	size_t len = stream_kept(s) + new_len;

	stream_drop_kept(s); /* its copy is at the front */
	size_t used = s->ops->on_data(s, front, len);
	if (!stream_is_open(s))
		return;
	assert(used <= len);
	if (used < len && kept_copy(s, front + used, len - used) < 0)
		stream_tell_end(s, UV_ENOMEM);
}
