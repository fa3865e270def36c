/* stream.c: the life of a stream, on a libuv handle. stream_inside.h has the parts and a drawing of the states.
 *
 * After uv_tcp_init or uv_pipe_init only uv_close ends the handle, and it ends later. So all steps of opening that can
 * fail come before, on the bare descriptor: a failed open leaves nothing behind, and the owner may free at once.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/container_of.h"
#include "net/socket.h"
#include "net/stream_inside.h"
#include "proto/error.h"

#define TO(state) (1u << (state))

static const uint16_t may_move_to[] = {
	[STREAM_NEW] = TO(STREAM_CONNECTING) | TO(STREAM_OPEN),
	[STREAM_CONNECTING] = TO(STREAM_CONNECTING_LAST) | TO(STREAM_OPEN) | TO(STREAM_FAILED) | TO(STREAM_CLOSING),
	[STREAM_CONNECTING_LAST] = TO(STREAM_SHUTTING) | TO(STREAM_FAILED) | TO(STREAM_CLOSING),
	[STREAM_OPEN] = TO(STREAM_SHUTTING) | TO(STREAM_FAILED) | TO(STREAM_CLOSING),
	[STREAM_SHUTTING] = TO(STREAM_SHUT) | TO(STREAM_FAILED) | TO(STREAM_CLOSING),
	[STREAM_SHUT] = TO(STREAM_FAILED) | TO(STREAM_CLOSING),
	[STREAM_FAILED] = TO(STREAM_CLOSING),
	[STREAM_CLOSING] = TO(STREAM_CLOSED),
	[STREAM_CLOSED] = TO(STREAM_CONNECTING) | TO(STREAM_OPEN),
};

void stream_move(struct stream *s, enum stream_state to)
{
	assert(may_move_to[s->state] & TO(to));
	s->state = (uint8_t)to;
}

int stream_fileno(const struct stream *s)
{
	uv_os_fd_t fd;

	return uv_fileno(&s->uv.handle, &fd) == 0 ? fd : -1;
}

/* The end of a turn */

static void on_turn_end(struct turn_end *t)
{
	stream_at_turn_end(container_of(t, struct stream, turn));
}

static void tell_written(struct stream *s)
{
	uint32_t written = s->written;

	s->written = 0;
	if (written && s->ops->on_written)
		s->ops->on_written(s, written);
}

void stream_at_turn_end(struct stream *s)
{
	if (s->state == STREAM_CONNECTING || s->state == STREAM_CONNECTING_LAST) {
		stream_look_connected(s);
		return;
	}
	if (s->reading == READING_KEPT || s->reading == READING_RESUMED)
		stream_begin_reading(s);
	stream_flush_now(s);
	if (stream_is_open(s))
		tell_written(s);
	if (s->rings)
		stream_shared_look(s);
	if (s->state == STREAM_FAILED && s->failure && s->reading != READING_ON)
		stream_tell_end(s, s->failure);
}

void stream_fail(struct stream *s, int uv_error)
{
	if (!stream_is_open(s) || s->state == STREAM_FAILED)
		return;
	stream_move(s, STREAM_FAILED);
	s->failure = uv_error;
	stream_drop_output(s);
	/* For a lost connection, the kernel first gives the bytes that came, and then the error. In other cases it
	 * says nothing. */
	if (uv_error != UV_ECONNRESET && uv_error != UV_EPIPE)
		stream_read_stop(s);
	worker_at_turn_end(s->worker, &s->turn);
}

static enum stream_end end_of(int uv_error)
{
	if (uv_error == UV_EOF)
		return STREAM_EOF;
	return uv_error == UV_ECONNRESET || uv_error == UV_EPIPE ? STREAM_RESET : STREAM_ERROR;
}

void stream_tell_end(struct stream *s, int uv_error)
{
	if (s->reading == READING_ON)
		uv_read_stop(&s->uv.stream);
	s->reading = READING_OVER;
	if (s->failure)
		uv_error = s->failure; /* after a failed write the kernel shows the same reset as an end */
	s->failure = 0;
	if (uv_error != UV_EOF && s->state != STREAM_FAILED) {
		stream_move(s, STREAM_FAILED);
		stream_drop_output(s);
	}
	s->ops->on_end(s, end_of(uv_error), uv_error);
}

/* Opening */

void stream_init(struct stream *s, struct worker *w, const struct stream_ops *ops)
{
	struct stream before = *s; /* settings made before opening stay */

	assert(s->state == STREAM_NEW || s->state == STREAM_CLOSED);
	memset(s, 0, sizeof *s);
	s->state = before.state;
	s->kind = before.kind;
	stream_fault_take(s, &before);
	s->ops = ops;
	s->worker = w;
	s->turn.fn = on_turn_end;
	s->flush_mark = STREAM_FLUSH_MARK_DEFAULT;
	s->read_max = WORKER_READ_BUFFER_LEN;
}

void stream_init_handle(struct stream *s)
{
	uv_loop_t *loop = worker_loop(s->worker);
	int r = s->kind == STREAM_KIND_TCP ? uv_tcp_init(loop, &s->uv.tcp)
					   : uv_pipe_init(loop, &s->uv.pipe, s->kind == STREAM_KIND_UNIX_FDS);

	assert(r == 0); /* it allocates no descriptor and no memory */
	s->uv.handle.data = s;
	s->open_handles = 1;
	worker_hold(s->worker);
}

void stream_attach(struct stream *s, int fd)
{
	int r = s->kind == STREAM_KIND_TCP ? uv_tcp_open(&s->uv.tcp, fd) : uv_pipe_open(&s->uv.pipe, fd);

	assert(r == 0); /* a valid socket that no other handle of this loop has */
}

/* The kind of the socket @fd, made ready for use; or a negative error. */
static int prepare_fd(int fd, enum stream_kind kind)
{
	int domain = 0;
	socklen_t len = sizeof domain;

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return -errno;
	if (domain == AF_UNIX)
		return kind == STREAM_KIND_UNIX_FDS ? STREAM_KIND_UNIX_FDS : STREAM_KIND_UNIX;
	if ((domain != AF_INET && domain != AF_INET6) || kind == STREAM_KIND_UNIX_FDS)
		return UV_EINVAL;
	int r = socket_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	return r < 0 ? r : STREAM_KIND_TCP;
}

void stream_expect_fds(struct stream *s)
{
	assert(s->state == STREAM_NEW || s->state == STREAM_CLOSED);
	s->kind = STREAM_KIND_UNIX_FDS;
}

static void open_as(struct stream *s, enum stream_kind kind, int fd)
{
	s->kind = (uint8_t)kind;
	stream_init_handle(s);
	stream_attach(s, fd);
	stream_move(s, STREAM_OPEN);
}

int stream_open_fd(struct stream *s, struct worker *w, const struct stream_ops *ops, int fd)
{
	stream_init(s, w, ops);
	int kind = prepare_fd(fd, s->kind);
	if (kind < 0) {
		stream_fault_clear(s);
		close(fd);
		return kind;
	}
	open_as(s, (enum stream_kind)kind, fd);
	return 0;
}

void stream_open_accepted(struct stream *s, struct worker *w, const struct stream_ops *ops, int fd)
{
	stream_init(s, w, ops);
	open_as(s, STREAM_KIND_TCP, fd);
}

static int fill(struct stream *s, struct stream_buffer *b, const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	b->data = buffers_take(worker_buffers(s->worker), len, &b->cap);
	if (!b->data)
		return CSSL_E_NO_MEMORY;
	memcpy(b->data, data, len);
	b->end = (uint32_t)len;
	return 0;
}

int stream_open_fd_with(
	struct stream *s, struct worker *w, const struct stream_ops *ops, int fd, const struct stream_leftovers *left)
{
	struct stream_buffer out = { 0 }, kept = { 0 };

	s->worker = w;
	int r = fill(s, &out, left->output, left->output_len);
	if (r == 0)
		r = fill(s, &kept, left->input, left->input_len);
	if (r == 0) {
		r = stream_open_fd(s, w, ops, fd);
	} else {
		stream_fault_clear(s);
		close(fd);
	}
	if (r < 0) {
		buffers_give(worker_buffers(w), out.data, out.cap);
		buffers_give(worker_buffers(w), kept.data, kept.cap);
		return r;
	}
	s->out = out;
	s->kept = kept;
	if (out.end)
		worker_at_turn_end(w, &s->turn);
	return 0;
}

/* Closing */

void stream_handle_closed(struct stream *s)
{
	worker_release(s->worker);
	if (--s->open_handles > 0)
		return;
	stream_move(s, STREAM_CLOSED);
	s->ops->on_closed(s);
}

/* Not before: a frame in shared memory may have caused the close, and be in use. */
static void on_stream_closed(uv_handle_t *handle)
{
	struct stream *s = handle->data;

	rings_close(s->rings);
	s->rings = NULL;
	stream_handle_closed(s);
}

void stream_close(struct stream *s)
{
	if (!stream_is_open(s))
		return;
	stream_move(s, STREAM_CLOSING);
	s->reading = READING_OVER;
	turn_end_cancel(&s->turn);
	stream_drop_output(s);
	stream_drop_kept(s);
	stream_fault_clear(s);
	uv_close(&s->uv.handle, on_stream_closed);
}

void stream_abort(struct stream *s)
{
	stream_reset_on_close(s, true);
	stream_close(s);
}

/* Options */

void stream_reset_on_close(struct stream *s, bool on)
{
	struct linger linger = { .l_onoff = on, .l_linger = 0 };

	if (stream_is_open(s) && s->kind == STREAM_KIND_TCP)
		setsockopt(stream_fileno(s), SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

void stream_set_lost_limit(struct stream *s, unsigned ms)
{
	int fd = stream_is_open(s) && s->kind == STREAM_KIND_TCP ? stream_fileno(s) : -1;
	int interval_s = ms / 3000 > 0 ? (int)(ms / 3000) : 1;

	if (fd < 0)
		return;
	/* TCP_USER_TIMEOUT also ends the probing, whatever the value of TCP_KEEPCNT (tcp(7)) */
	socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, interval_s);
	socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
	socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)ms);
	socket_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

int stream_dup_fd(struct stream *s)
{
	if (s->state == STREAM_SHUTTING)
		stream_flush_now(s); /* a FIN that waits for the end of this turn */
	if (s->state == STREAM_SHUTTING)
		return UV_EBUSY;
	if (s->state != STREAM_OPEN && s->state != STREAM_SHUT)
		return UV_EINVAL;
	if (stream_pending(s))
		return UV_EBUSY;
	stream_read_stop(s);
	int fd = fcntl(stream_fileno(s), F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}

int stream_fd(const struct stream *s)
{
	return stream_fileno(s);
}

int stream_peer(const struct stream *s, struct sockaddr_storage *out)
{
	socklen_t len = sizeof *out;

	memset(out, 0, sizeof *out);
	return getpeername(stream_fileno(s), (struct sockaddr *)out, &len) < 0 ? -errno : 0;
}

int stream_local(const struct stream *s, struct sockaddr_storage *out)
{
	socklen_t len = sizeof *out;

	memset(out, 0, sizeof *out);
	return getsockname(stream_fileno(s), (struct sockaddr *)out, &len) < 0 ? -errno : 0;
}
