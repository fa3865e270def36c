/* stream_write.c: output. One buffer fills, and a flush tries to write it completely. If the kernel does not take
 * all, the buffer goes to libuv (no copy), and another buffer fills meanwhile. That one is flushed when libuv has
 * written the first. A stream without output gives its buffer back.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/stream/stream_fault.h"
#include "net/stream/stream_shared.h"
#include "net/stream/stream_state.h"
#include "net/stream/stream_turn.h"
#include "proto/error.h"

/* The most that one stream may hold back. The limits of its owner are far lower. */
#define STREAM_OUTPUT_LIMIT (UINT32_C(1) << 30)
#define SHARED_AT_ONCE      512u /* so many bytes are copied into shared memory at once, fewer are collected */

/* Output that libuv writes when the kernel is ready. */
struct stream_write {
	uv_write_t req;
	uv_pipe_t passenger; /* the duplicated descriptor, if one is sent; else not initialised */
	struct stream *stream;
	struct stream_buffer buffer;
	enum { WRITE_BYTES, WRITE_WITH_FD } kind;
};

static bool write_may_add(const struct stream *s)
{
	/* before the FIN the owner may still seal its last batch */
	return s->state == STREAM_OPEN || (s->state == STREAM_CONNECTING && !s->failure) ||
	       (s->state == STREAM_SHUTTING && s->flushing == FLUSHING_IN_ON_FLUSH);
}

static bool write_may_flush(const struct stream *s)
{
	return s->state == STREAM_OPEN || s->state == STREAM_SHUTTING;
}

/* Collecting */

/* Output for which there was no memory is missing, so later output must not follow. */
static void write_fail_without_memory(struct stream *s)
{
	if (s->state != STREAM_CONNECTING) {
		stream_fail(s, UV_ENOMEM);
		return;
	}
	s->failure = UV_ENOMEM; /* reported as a failure to connect */
	stream_drop_output(s);
	worker_at_turn_end(s->worker, &s->turn);
}

static int write_grow(struct stream *s, size_t needed)
{
	size_t wanted = s->out.cap ? needed : needed > s->out_last ? needed : s->out_last;
	uint32_t cap;

	if (needed > STREAM_OUTPUT_LIMIT)
		return CSSL_E_NO_MEMORY;
	uint8_t *data = buffers_take(worker_buffers(s->worker), wanted, &cap);
	if (!data)
		return CSSL_E_NO_MEMORY;
	uint32_t end = s->out.end;
	if (end)
		memcpy(data, s->out.data, end);
	stream_drop_output(s);
	s->out = (struct stream_buffer){ .data = data, .end = end, .cap = cap };
	worker_at_turn_end(s->worker, &s->turn); /* if nothing is committed, the buffer goes back */
	return 0;
}

uint8_t *stream_reserve(struct stream *s, size_t len)
{
	if (!write_may_add(s))
		return NULL;
	if ((size_t)s->out.end + len > s->out.cap && write_grow(s, (size_t)s->out.end + len) < 0) {
		write_fail_without_memory(s);
		return NULL;
	}
	return s->out.data + s->out.end;
}

void stream_commit(struct stream *s, size_t len)
{
	if (!write_may_add(s))
		return;
	assert(len <= s->out.cap - s->out.end);
	s->out.end += (uint32_t)len;
	if (s->flushing == FLUSHING_IN_ON_FLUSH)
		return;
	if (s->out.end >= s->flush_mark && s->kind != STREAM_KIND_UNIX_FDS)
		stream_flush(s);
	else
		worker_at_turn_end(s->worker, &s->turn);
}

size_t stream_pending(const struct stream *s)
{
	return (size_t)s->out.end + s->in_flight_len;
}

/* libuv writes a buffer from its front. The size of its queue tells how much of it is left. */
size_t stream_unwritten_len(const struct stream *s)
{
	assert(s->kind != STREAM_KIND_UNIX_FDS && (!s->rings || rings_staged(s->rings) == 0));
	return uv_stream_get_write_queue_size(&s->uv.stream) + s->out.end;
}

void stream_unwritten_copy(const struct stream *s, uint8_t *out)
{
	size_t left = uv_stream_get_write_queue_size(&s->uv.stream);

	assert(s->kind != STREAM_KIND_UNIX_FDS);
	if (left)
		memcpy(out, s->in_flight->buffer.data + s->in_flight->buffer.end - left, left);
	if (s->out.end)
		memcpy(out + left, s->out.data, s->out.end);
}

uint8_t *stream_output(struct stream *s, size_t *len)
{
	*len = s->out.end;
	return s->out.data;
}

void stream_set_flush_mark(struct stream *s, uint32_t bytes)
{
	s->flush_mark = bytes;
}

/* Handing to libuv */

static void write_free(struct stream_write *w)
{
	struct stream *s = w->stream;

	buffers_give(worker_buffers(s->worker), w->buffer.data, w->buffer.cap);
	free(w);
}

static void on_passenger_closed(uv_handle_t *handle)
{
	struct stream_write *w = handle->data;
	struct stream *s = w->stream;

	write_free(w);
	stream_handle_closed(s);
}

static void on_write(uv_write_t *req, int status)
{
	struct stream_write *w = req->data;
	struct stream *s = w->stream;
	uint32_t len = w->buffer.end - w->buffer.start;

	s->writes--;
	s->in_flight_len -= len;
	if (s->in_flight == w)
		s->in_flight = NULL;
	if (w->kind == WRITE_WITH_FD)
		uv_close((uv_handle_t *)&w->passenger, on_passenger_closed);
	else
		write_free(w);
	if (!stream_is_open(s))
		return;
	if (status < 0) {
		stream_fail(s, status);
		return;
	}
	s->written += len;
	worker_at_turn_end(s->worker, &s->turn);
}

/* Move the output into @w and give it to libuv. */
static int write_hand_over(struct stream *s, struct stream_write *w)
{
	w->stream = s;
	w->req.data = w;
	w->buffer = s->out;
	uint32_t len = w->buffer.end - w->buffer.start;
	uv_buf_t buf = uv_buf_init((char *)w->buffer.data + w->buffer.start, len);
	uv_stream_t *passenger = w->kind == WRITE_WITH_FD ? (uv_stream_t *)&w->passenger : NULL;
	int r = passenger ? uv_write2(&w->req, &s->uv.stream, &buf, 1, passenger, on_write)
			  : uv_write(&w->req, &s->uv.stream, &buf, 1, on_write);
	if (r < 0)
		return r;
	s->out = (struct stream_buffer){ 0 };
	s->in_flight = w;
	s->in_flight_len += len;
	s->writes++;
	return 0;
}

/* Flushing */

static void write_shut_when_drained(struct stream *s)
{
	if (s->state != STREAM_SHUTTING || stream_pending(s))
		return;
	shutdown(stream_fd(s), SHUT_WR); /* if it fails, reading will report why */
	stream_move(s, STREAM_SHUT);
}

static void write_flush_rest(struct stream *s)
{
	struct stream_write *w = malloc(sizeof *w);

	if (!w) {
		stream_fail(s, UV_ENOMEM);
		return;
	}
	w->kind = WRITE_BYTES;
	int r = write_hand_over(s, w);
	if (r < 0) {
		free(w);
		stream_fail(s, r);
	}
}

static void write_flush_output(struct stream *s)
{
	/* The last bytes share a segment with the FIN, which follows at once. */
	const int flags = s->state == STREAM_SHUTTING && s->kind == STREAM_KIND_TCP ? MSG_MORE : 0;
	int n = stream_send_now(s, s->out.data, s->out.end, flags);

	if (n < 0 && n != UV_EAGAIN) {
		stream_fail(s, n);
		return;
	}
	s->out_last = s->out.end;
	s->out.start = n > 0 ? (uint32_t)n : 0;
	s->written += s->out.start;
	if (s->out.start == s->out.end)
		stream_drop_output(s);
	else
		write_flush_rest(s);
}

/* Output that would reach the flush mark need not be collected, and shared memory collects by itself. */
static bool write_may_pass(const struct stream *s, size_t len)
{
	if (s->state != STREAM_OPEN || s->writes > 0 || s->ops->on_flush || s->kind == STREAM_KIND_UNIX_FDS ||
		stream_fault_watches(s))
		return false;
	if (s->rings)
		return len >= SHARED_AT_ONCE;
	return s->out.end + len >= s->flush_mark;
}

/* The kernel took @taken bytes of the output and of [data, data + len) behind it. Collect the rest. */
static int write_collect_rest(struct stream *s, size_t taken, const uint8_t *data, size_t len)
{
	if (taken >= s->out.end) {
		taken -= s->out.end;
		stream_drop_output(s);
		data += taken;
		len -= taken;
		taken = 0;
	}
	if (len == 0)
		return 0;
	uint8_t *room = stream_reserve(s, len);
	if (!room)
		return CSSL_E_NO_MEMORY;
	memcpy(room, data, len);
	s->out.start = (uint32_t)taken;
	s->out.end += (uint32_t)len;
	write_flush_rest(s);
	return 0;
}

static int write_through(struct stream *s, const void *data, size_t len)
{
	struct iovec parts[2] = { { s->out.data, s->out.end }, { (void *)data, len } };
	struct msghdr both = { .msg_iov = parts, .msg_iovlen = 2 };
	int n = s->out.end ? stream_sent(sendmsg(stream_fd(s), &both, MSG_DONTWAIT | MSG_NOSIGNAL))
			   : stream_send_now(s, data, len, 0);

	if (n < 0 && n != UV_EAGAIN) {
		stream_fail(s, n);
		return 0;
	}
	size_t taken = n > 0 ? (size_t)n : 0;
	s->written += (uint32_t)taken;
	worker_at_turn_end(s->worker, &s->turn);
	return write_collect_rest(s, taken, data, len);
}

/* 0: there is no room now. */
static bool write_shared(struct stream *s, const void *data, size_t len)
{
	if (!stream_shared_stage(s, data, len))
		return false;
	if (rings_staged(s->rings) >= s->flush_mark)
		stream_flush(s);
	else
		worker_at_turn_end(s->worker, &s->turn);
	return true;
}

int stream_write(struct stream *s, const void *data, size_t len)
{
	if (!write_may_add(s))
		return CSSL_E_STATE;
	if (len == 0)
		return 0;
	const bool through = write_may_pass(s, len);
	if (through && s->rings && write_shared(s, data, len))
		return 0;
	if (through && !s->rings)
		return write_through(s, data, len);
	uint8_t *room = stream_reserve(s, len);
	if (!room)
		return CSSL_E_NO_MEMORY;
	memcpy(room, data, len);
	stream_commit(s, len);
	return 0;
}

static void write_let_owner_add(struct stream *s)
{
	if (!s->ops->on_flush)
		return;
	s->flushing = FLUSHING_IN_ON_FLUSH;
	s->ops->on_flush(s);
	s->flushing = FLUSHING_NOT;
}

void stream_flush_now(struct stream *s)
{
	if (!write_may_flush(s) || s->writes > 0 || s->flushing == FLUSHING_IN_ON_FLUSH)
		return;
	if (s->rings && stream_shared_is_full(s))
		return;
	write_let_owner_add(s);
	if (!write_may_flush(s)) /* the owner may have closed it */
		return;
	const bool waits = s->out.end > 0 || (s->rings && rings_staged(s->rings) > 0);
	if ((waits || s->state == STREAM_SHUTTING) && stream_fault_holds_write(s))
		return;
	if (waits && s->rings)
		stream_shared_flush(s);
	else if (s->out.end)
		write_flush_output(s);
	else
		stream_drop_output(s);
	write_shut_when_drained(s);
}

void stream_flush(struct stream *s)
{
	stream_flush_now(s);
	if (s->written) /* the loop reports it */
		worker_at_turn_end(s->worker, &s->turn);
}

/* The end of a turn flushes the streams in its list. */
void stream_hold(struct stream *s)
{
	if (s->state == STREAM_OPEN && !s->rings && s->writes == 0 && s->written == 0 && s->failure == 0 &&
		s->reading != READING_KEPT && s->reading != READING_RESUMED)
		turn_end_cancel(&s->turn);
}

/* Descriptors */

int stream_send_fd(struct stream *s, int fd)
{
	if (s->state != STREAM_OPEN || s->kind != STREAM_KIND_UNIX_FDS)
		return UV_EINVAL;
	write_let_owner_add(s);
	if (s->state != STREAM_OPEN || s->out.end == 0)
		return UV_EINVAL;

	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return -errno;
	struct stream_write *w = malloc(sizeof *w);
	if (!w) {
		close(copy);
		return UV_ENOMEM;
	}
	w->kind = WRITE_WITH_FD;
	uv_pipe_init(worker_loop(s->worker), &w->passenger, 0);
	w->passenger.data = w;
	worker_hold(s->worker);
	s->open_handles++;
	int r = uv_pipe_open(&w->passenger, copy);
	if (r < 0)
		close(copy);
	else
		r = write_hand_over(s, w);
	if (r < 0) {
		w->stream = s;
		w->buffer = (struct stream_buffer){ 0 };
		uv_close((uv_handle_t *)&w->passenger, on_passenger_closed);
	}
	return r;
}
