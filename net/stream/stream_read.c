/* stream_read.c: input. Every stream of a worker reads into the same buffer.
 *
 * libuv tells that a descriptor is readable when it asks for a buffer. The stream receives at once, because recv(2)
 * costs less than libuv's read(2), and offers no buffer. libuv then calls back with UV_ENOBUFS, and asks again, because
 * its epoll is level-triggered: in the next turn, or in this one if so many descriptors are readable that it polls
 * again (48 times, while it gets 1024 events). Only descriptors are received by libuv itself, which would read up to 32
 * times in a row. So a stream that was read in this turn gets neither bytes nor a buffer.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/stream/stream_fault.h"
#include "net/stream/stream_kept.h"
#include "net/stream/stream_shared.h"
#include "net/stream/stream_state.h"
#include "net/stream/stream_turn.h"

#define FDS_PER_READ   64u /* libuv takes no more from one recvmsg */
#define BELLS_PER_READ 64u

static bool read_has_bytes(const struct stream *s)
{
	uint8_t byte;

	return recv(stream_fd(s), &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool stream_has_unread(const struct stream *s)
{
	return !stream_is_open(s) || stream_kept(s) || read_has_bytes(s);
}

void stream_are_quiet(const struct stream *const *streams, unsigned count, uint64_t *quiet)
{
	struct pollfd asked[STREAM_ASKED_MAX];

	*quiet = 0;
	assert(count <= STREAM_ASKED_MAX);
	for (unsigned i = 0; i < count; i++) {
		const struct stream *s = streams[i];
		/* the kernel passes over a negative descriptor */
		asked[i].fd = stream_is_open(s) && !stream_kept(s) ? stream_fd(s) : -1;
		asked[i].events = POLLIN | POLLRDHUP;
	}
	if (poll(asked, count, 0) < 0)
		return;
	for (unsigned i = 0; i < count; i++)
		if (asked[i].fd >= 0 && asked[i].revents == 0)
			*quiet |= UINT64_C(1) << i;
}

/* Descriptors */

/* Get the descriptor out of libuv's handle: a pipe handle accepts every kind. */
static void on_carrier_closed(uv_handle_t *handle)
{
	struct worker *w = handle->data;

	free(handle);
	worker_release(w);
}

static int read_accept_fd(struct stream *s)
{
	uv_pipe_t *carrier = malloc(sizeof *carrier);
	uv_os_fd_t fd = -1;

	if (!carrier)
		return UV_ENOMEM;
	uv_pipe_init(worker_loop(s->worker), carrier, 0);
	carrier->data = s->worker;
	worker_hold(s->worker);
	int r = uv_accept(&s->uv.stream, (uv_stream_t *)carrier);
	if (r == 0)
		r = uv_fileno((uv_handle_t *)carrier, &fd);
	if (r == 0) {
		fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		r = fd < 0 ? -errno : fd;
	}
	uv_close((uv_handle_t *)carrier, on_carrier_closed);
	return r;
}

/* Take all descriptors before the owner gets one, because uv_accept starts polling again even if the owner has
 * stopped. */
static void read_deliver_fds(struct stream *s)
{
	int fds[FDS_PER_READ];
	unsigned count = 0;

	while (uv_pipe_pending_count(&s->uv.pipe) > 0 && count < FDS_PER_READ) {
		int fd = read_accept_fd(s);
		if (fd == UV_ENOMEM) { /* it would come together with later bytes */
			stream_tell_end(s, UV_ENOMEM);
			break;
		}
		if (fd >= 0)
			fds[count++] = fd;
	}
	for (unsigned i = 0; i < count; i++) {
		if (stream_is_open(s) && s->ops->on_fd)
			s->ops->on_fd(s, fds[i]);
		else
			close(fds[i]);
	}
}

/* Reading */

/* So many bytes, or a libuv error; UV_EAGAIN: none has come yet. */
static int read_receive(struct stream *s, uint8_t *room, size_t len)
{
	ssize_t n = recv(stream_fd(s), room, len, MSG_DONTWAIT);

	if (n > 0)
		return (int)n;
	if (n == 0)
		return UV_EOF;
	return errno == EINTR ? UV_EAGAIN : -errno;
}

/* Bytes, or with descriptors the buffer for libuv. */
static int read_in_turn(struct stream *s, uv_buf_t *buf)
{
	const uint32_t turn = worker_turn(s->worker);
	size_t len;

	if (s->read_turn == turn)
		return UV_EAGAIN;
	if (stream_kept(s) >= WORKER_READ_BUFFER_LEN || stream_fault_holds_read(s))
		return UV_ENOBUFS;
	uint8_t *room = stream_read_room(s, &len);
	if (s->kind == STREAM_KIND_UNIX_FDS) {
		*buf = uv_buf_init((char *)room, (unsigned)len);
		return UV_EAGAIN;
	}
	if (s->ops->foresee)
		s->ops->foresee(s);
	s->read_turn = turn;
	return read_receive(s, room, len);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct stream *s = handle->data;

	*buf = uv_buf_init(NULL, 0);
	s->received = s->rings ? read_receive(s, worker_read_buffer(s->worker), BELLS_PER_READ) : read_in_turn(s, buf);
}

/* A reset may have followed the FIN; recv(2) does not tell. */
static int read_end_or_reset(const struct stream *s)
{
	int so_error = 0;
	socklen_t len = sizeof so_error;

	getsockopt(stream_fd(s), SOL_SOCKET, SO_ERROR, &so_error, &len);
	return so_error ? -so_error : UV_EOF;
}

static void read_without_room(struct stream *s)
{
	if (stream_kept(s) >= WORKER_READ_BUFFER_LEN)
		stream_tell_end(s, UV_ENOBUFS);
	else
		stream_fault_pause_reading(s);
}

static void on_read(uv_stream_t *handle, ssize_t by_libuv, const uv_buf_t *buf);

/* libuv reads no further than to the next descriptor. If the other side has closed meanwhile, it takes that for the
 * end. */
static void read_past_descriptor(struct stream *s)
{
	int r = uv_read_start(&s->uv.stream, on_alloc, on_read);

	assert(r == 0); /* as in stream_begin_reading() */
}

static void on_read(uv_stream_t *handle, ssize_t by_libuv, const uv_buf_t *buf)
{
	struct stream *s = handle->data;
	ssize_t n = by_libuv == UV_ENOBUFS ? s->received : by_libuv;

	if (n == 0 || n == UV_EAGAIN)
		return;
	if (n == UV_ENOBUFS) {
		read_without_room(s);
		return;
	}
	if (n < 0 && s->rings && !stream_shared_is_read(s))
		return; /* reading was stopped, or it is over */
	if (n == UV_EOF && s->kind == STREAM_KIND_UNIX_FDS && read_has_bytes(s)) {
		read_past_descriptor(s);
		return;
	}
	if (n < 0) {
		stream_tell_end(s, n == UV_EOF ? read_end_or_reset(s) : (int)n);
		return;
	}
	if (s->rings) {
		worker_at_turn_end(s->worker, &s->turn); /* there may be room, too */
		stream_shared_look(s);
		return;
	}
	if (s->kind == STREAM_KIND_UNIX_FDS) {
		s->read_turn = worker_turn(s->worker);
		read_deliver_fds(s);
	}
	if (s->reading != READING_OVER)
		stream_deliver_read(s, (size_t)n);
}

/* Read without waiting for the loop. If nothing has come yet, or the end has, the loop will report it. An error is
 * reported only once. */
static void read_at_once(struct stream *s)
{
	size_t len;

	if (s->rings || stream_kept(s) >= WORKER_READ_BUFFER_LEN || stream_fault_holds_read(s))
		return;
	uint8_t *room = stream_read_room(s, &len);
	int n = read_receive(s, room, len);
	if (n < 0 && n != UV_EAGAIN && n != UV_EOF)
		stream_tell_end(s, n);
	if (n < 0)
		return;
	stream_deliver_read(s, (size_t)n);
}

void stream_begin_reading(struct stream *s)
{
	enum stream_reading from = s->reading;

	if (stream_kept(s))
		stream_deliver_kept(s);
	if (!stream_is_open(s) || s->reading != from)
		return;
	if (from == READING_RESUMED)
		read_at_once(s);
	if (!stream_is_open(s) || s->reading != from)
		return;
	s->reading = READING_ON;
	int r = uv_read_start(&s->uv.stream, on_alloc, on_read);
	assert(r == 0); /* open, and its end was not seen */
	if (s->rings)
		worker_at_turn_end(s->worker, &s->turn); /* for bytes that are there already */
}

void stream_read_start(struct stream *s)
{
	if (!stream_is_open(s) || (s->reading != READING_STOPPED && s->reading != READING_PAUSED))
		return;
	bool connecting = s->state == STREAM_CONNECTING || s->state == STREAM_CONNECTING_LAST;
	bool resumes = s->reading == READING_PAUSED && !connecting;
	s->reading = resumes ? READING_RESUMED : READING_KEPT;
	if (stream_kept(s) || connecting || resumes)
		worker_at_turn_end(s->worker, &s->turn);
	else
		stream_begin_reading(s);
}

void stream_read_pause(struct stream *s)
{
	stream_read_stop(s);
	if (stream_is_open(s) && s->reading == READING_STOPPED)
		s->reading = READING_PAUSED;
}

void stream_set_read_max(struct stream *s, uint32_t bytes)
{
	s->read_max = bytes < WORKER_READ_BUFFER_LEN ? bytes : WORKER_READ_BUFFER_LEN;
}
