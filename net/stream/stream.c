/* stream.c: the life of a stream, on a libuv handle. stream_state.h has the parts and a drawing of the states.
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
#include <sys/un.h>
#include <unistd.h>

#include "net/memory/container_of.h"
#include "net/socket/address.h"
#include "net/socket/capture.h"
#include "net/socket/socket.h"
#include "net/stream/stream_fault.h"
#include "net/stream/stream_kept.h"
#include "net/stream/stream_shared.h"
#include "net/stream/stream_state.h"
#include "net/stream/stream_turn.h"
#include "proto/error.h"

/* Connecting. Within this host, a connection is mostly there when connect(2) returns, although it says that it is under
 * way. So the end of the turn asks, by sending nothing; only if that would wait, libuv watches the socket. */

static bool connect_is_under_way(const struct stream *s)
{
	return s->state == STREAM_CONNECTING || s->state == STREAM_CONNECTING_LAST;
}

static void connect_tell(struct stream *s, int uv_error)
{
	s->failure = 0;
	if (uv_error < 0) {
		stream_move(s, STREAM_FAILED);
		stream_drop_output(s);
		s->reading = READING_OVER;
	} else {
		stream_move(s, s->state == STREAM_CONNECTING ? STREAM_OPEN : STREAM_SHUTTING);
		worker_at_turn_end(s->worker, &s->turn); /* for requests that came meanwhile */
	}
	s->ops->on_connected(s, uv_error);
}

static void on_empty_write(uv_write_t *req, int status)
{
	struct stream *s = req->data;

	free(req);
	s->writes--;
	if (connect_is_under_way(s))
		connect_tell(s, s->failure ? s->failure : status);
}

/* libuv writes zero bytes as soon as the socket is connected. UV_EAGAIN: on_empty_write() will come. */
static int connect_watch(struct stream *s)
{
	uv_buf_t none = uv_buf_init(NULL, 0);
	uv_write_t *req = malloc(sizeof *req);

	if (!req)
		return UV_ENOMEM;
	req->data = s;
	int r = uv_write(req, &s->uv.stream, &none, 1, on_empty_write);
	if (r < 0) {
		free(req);
		return r;
	}
	s->writes++;
	return UV_EAGAIN;
}

static void connect_look(struct stream *s)
{
	int r = s->failure;

	if (r == 0 && (s->kind != STREAM_KIND_TCP || s->writes > 0))
		return; /* libuv reports it */
	if (r == 0)
		r = stream_send_now(s, NULL, 0, 0);
	if (r == UV_EAGAIN)
		r = connect_watch(s);
	if (r != UV_EAGAIN)
		connect_tell(s, r);
}

/* The end of a turn */

static void tell_written(struct stream *s)
{
	uint32_t written = s->written;

	s->written = 0;
	if (written && s->ops->on_written)
		s->ops->on_written(s, written);
}

static void on_turn_end(struct turn_end *t)
{
	struct stream *s = container_of(t, struct stream, turn);

	if (connect_is_under_way(s)) {
		connect_look(s);
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

/* Opening */

static void open_init(struct stream *s, struct worker *w, const struct stream_ops *ops)
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

static void open_init_handle(struct stream *s)
{
	uv_loop_t *loop = worker_loop(s->worker);
	int r = s->kind == STREAM_KIND_TCP ? uv_tcp_init(loop, &s->uv.tcp)
					   : uv_pipe_init(loop, &s->uv.pipe, s->kind == STREAM_KIND_UNIX_FDS);

	assert(r == 0); /* it allocates no descriptor and no memory */
	s->uv.handle.data = s;
	s->open_handles = 1;
	worker_hold(s->worker);
}

static void open_attach(struct stream *s, int fd)
{
	int r = s->kind == STREAM_KIND_TCP ? uv_tcp_open(&s->uv.tcp, fd) : uv_pipe_open(&s->uv.pipe, fd);

	assert(r == 0); /* a valid socket that no other handle of this loop has */
}

/* The kind of the socket @fd, made ready for use; or a negative error. */
static int open_prepare_fd(int fd, enum stream_kind kind)
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
	open_init_handle(s);
	open_attach(s, fd);
	stream_move(s, STREAM_OPEN);
}

int stream_open_fd(struct stream *s, struct worker *w, const struct stream_ops *ops, int fd)
{
	open_init(s, w, ops);
	int kind = open_prepare_fd(fd, s->kind);
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
	open_init(s, w, ops);
	open_as(s, STREAM_KIND_TCP, fd);
}

static int open_fill(struct stream *s, struct stream_buffer *b, const uint8_t *data, size_t len)
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
	int r = open_fill(s, &out, left->output, left->output_len);
	if (r == 0)
		r = open_fill(s, &kept, left->input, left->input_len);
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

enum source { SOURCE_OWN, SOURCE_FOREIGN };

/* A socket for @to, bound to @source. */
static int connect_socket(const struct sockaddr *to, const struct sockaddr *source, enum source whose)
{
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;

	int r = socket_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (r == 0 && source && whose == SOURCE_FOREIGN)
		r = capture_prepare(fd, CAPTURE_TPROXY);
	if (r == 0 && source &&
		address_port(source) == 0) /* choose the port late, so that it need only be new to @to */
		r = socket_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	if (r == 0 && source && bind(fd, source, address_len(source)) < 0)
		r = -errno;
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

static int connect_tcp(struct stream *s, const struct sockaddr *to, const struct sockaddr *source, enum source whose)
{
	int fd = connect_socket(to, source, whose);

	if (fd < 0)
		return fd;
	/* No route, no free port: the loop reports it like every other failed connect. */
	if (connect(fd, to, address_len(to)) < 0 && errno != EINPROGRESS && errno != EINTR)
		s->failure = -errno;
	s->kind = STREAM_KIND_TCP;
	open_init_handle(s);
	open_attach(s, fd);
	stream_move(s, STREAM_CONNECTING);
	worker_at_turn_end(s->worker, &s->turn);
	return 0;
}

static void on_pipe_connect(uv_connect_t *req, int status)
{
	struct stream *s = req->data;

	free(req);
	if (connect_is_under_way(s))
		connect_tell(s, s->failure ? s->failure : status);
}

static int connect_unix(struct stream *s, const struct sockaddr_un *to)
{
	uv_connect_t *req = malloc(sizeof *req);

	if (!req)
		return UV_ENOMEM;
	req->data = s;
	if (s->kind != STREAM_KIND_UNIX_FDS)
		s->kind = STREAM_KIND_UNIX;
	open_init_handle(s);
	stream_move(s, STREAM_CONNECTING);
	uv_pipe_connect(req, &s->uv.pipe, to->sun_path, on_pipe_connect);
	return 0;
}

static int connect_from(struct stream *s, const struct sockaddr *to, const struct sockaddr *source, enum source whose)
{
	int is_ip = to->sa_family == AF_INET || to->sa_family == AF_INET6, r = UV_EINVAL;

	if (is_ip && s->kind != STREAM_KIND_UNIX_FDS)
		r = connect_tcp(s, to, source, whose);
	else if (to->sa_family == AF_UNIX)
		r = connect_unix(s, (const struct sockaddr_un *)to);
	if (r < 0)
		stream_fault_clear(s);
	return r;
}

int stream_connect(struct stream *s, struct worker *w, const struct stream_ops *ops, const struct sockaddr *to,
	const struct sockaddr *source)
{
	open_init(s, w, ops);
	return connect_from(s, to, source, SOURCE_OWN);
}

int stream_connect_as(struct stream *s, struct worker *w, const struct stream_ops *ops, const struct sockaddr *to,
	const struct sockaddr *source)
{
	open_init(s, w, ops);
	return connect_from(s, to, source, SOURCE_FOREIGN);
}

/* Closing */

void stream_shutdown(struct stream *s)
{
	if (s->state == STREAM_CONNECTING) {
		stream_move(s, STREAM_CONNECTING_LAST);
	} else if (s->state == STREAM_OPEN) {
		stream_move(s, STREAM_SHUTTING);
		worker_at_turn_end(s->worker, &s->turn);
	}
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

/* Leaving */

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
	int fd = fcntl(stream_fd(s), F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? -errno : fd;
}
