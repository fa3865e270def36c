/* stream_connect.c: connecting. Within this host, a connection is mostly there when connect(2) returns, although it
 * says that it is under way. So the end of the turn asks, by sending nothing; only if that would wait, libuv watches
 * the socket.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/address.h"
#include "net/capture.h"
#include "net/socket.h"
#include "net/stream_inside.h"

static bool is_connecting(const struct stream *s)
{
	return s->state == STREAM_CONNECTING || s->state == STREAM_CONNECTING_LAST;
}

/* The result */

static void tell_connected(struct stream *s, int uv_error)
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
	if (is_connecting(s))
		tell_connected(s, s->failure ? s->failure : status);
}

/* libuv writes zero bytes as soon as the socket is connected. UV_EAGAIN: on_empty_write() will come. */
static int watch(struct stream *s)
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

void stream_look_connected(struct stream *s)
{
	int r = s->failure;

	if (r == 0 && (s->kind != STREAM_KIND_TCP || s->writes > 0))
		return; /* libuv reports it */
	if (r == 0)
		r = stream_send_now(s, NULL, 0, 0);
	if (r == UV_EAGAIN)
		r = watch(s);
	if (r != UV_EAGAIN)
		tell_connected(s, r);
}

/* The begin */

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
	stream_init_handle(s);
	stream_attach(s, fd);
	stream_move(s, STREAM_CONNECTING);
	worker_at_turn_end(s->worker, &s->turn);
	return 0;
}

static void on_pipe_connect(uv_connect_t *req, int status)
{
	struct stream *s = req->data;

	free(req);
	if (is_connecting(s))
		tell_connected(s, s->failure ? s->failure : status);
}

static int connect_unix(struct stream *s, const struct sockaddr_un *to)
{
	uv_connect_t *req = malloc(sizeof *req);

	if (!req)
		return UV_ENOMEM;
	req->data = s;
	if (s->kind != STREAM_KIND_UNIX_FDS)
		s->kind = STREAM_KIND_UNIX;
	stream_init_handle(s);
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
	stream_init(s, w, ops);
	return connect_from(s, to, source, SOURCE_OWN);
}

int stream_connect_as(struct stream *s, struct worker *w, const struct stream_ops *ops, const struct sockaddr *to,
	const struct sockaddr *source)
{
	stream_init(s, w, ops);
	return connect_from(s, to, source, SOURCE_FOREIGN);
}
