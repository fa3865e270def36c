/* stream_state.c: the states of a stream, how it fails and ends, and what every part does with its descriptor and its
 * output. It knows no other part. */
#include "net/stream/stream_state.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "net/socket/socket.h"

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

/* Failing and ending */

void stream_read_stop(struct stream *s)
{
	if (!stream_is_open(s) || s->reading == READING_OVER)
		return;
	if (s->reading == READING_ON)
		uv_read_stop(&s->uv.stream);
	s->reading = READING_STOPPED;
	if (s->state == STREAM_FAILED) /* reading no longer reaches the end, so report it now */
		worker_at_turn_end(s->worker, &s->turn);
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

void stream_handle_closed(struct stream *s)
{
	worker_release(s->worker);
	if (--s->open_handles > 0)
		return;
	stream_move(s, STREAM_CLOSED);
	s->ops->on_closed(s);
}

/* The descriptor */

int stream_fd(const struct stream *s)
{
	uv_os_fd_t fd;

	return uv_fileno(&s->uv.handle, &fd) == 0 ? fd : -1;
}

void stream_reset_on_close(struct stream *s, bool on)
{
	struct linger linger = { .l_onoff = on, .l_linger = 0 };

	if (stream_is_open(s) && s->kind == STREAM_KIND_TCP)
		setsockopt(stream_fd(s), SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

void stream_set_lost_limit(struct stream *s, unsigned ms)
{
	int fd = stream_is_open(s) && s->kind == STREAM_KIND_TCP ? stream_fd(s) : -1;
	int interval_s = ms / 3000 > 0 ? (int)(ms / 3000) : 1;

	if (fd < 0)
		return;
	/* TCP_USER_TIMEOUT also ends the probing, whatever the value of TCP_KEEPCNT (tcp(7)) */
	socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, interval_s);
	socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
	socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)ms);
	socket_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

int stream_peer(const struct stream *s, struct sockaddr_storage *out)
{
	socklen_t len = sizeof *out;

	memset(out, 0, sizeof *out);
	return getpeername(stream_fd(s), (struct sockaddr *)out, &len) < 0 ? -errno : 0;
}

int stream_local(const struct stream *s, struct sockaddr_storage *out)
{
	socklen_t len = sizeof *out;

	memset(out, 0, sizeof *out);
	return getsockname(stream_fd(s), (struct sockaddr *)out, &len) < 0 ? -errno : 0;
}

/* Output */

void stream_drop_output(struct stream *s)
{
	buffers_give(worker_buffers(s->worker), s->out.data, s->out.cap);
	s->out = (struct stream_buffer){ 0 };
}

void stream_flush_soon(struct stream *s)
{
	if (stream_is_open(s))
		worker_at_turn_end(s->worker, &s->turn);
}

/* What the kernel did not take for want of memory, or because a signal came, is written later, too. */
int stream_sent(ssize_t n)
{
	if (n >= 0)
		return (int)n;
	return errno == EINTR || errno == ENOBUFS ? UV_EAGAIN : -errno;
}

int stream_send_now(struct stream *s, const void *data, size_t len, int flags)
{
	return stream_sent(send(stream_fd(s), data, len, flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

/* If the socket has no room for one more bell, the other side is being woken anyway. */
void stream_send_bell(struct stream *s)
{
	if (send(stream_fd(s), "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		stream_fail(s, -errno);
}
