/* status_socket.c: the object is made at most once a second, however many ask for it. */
#include "smtpproxy/control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/stream/stream.h"

#define BACKLOG     16
#define SOCKET_MODE 0666u /* the mode of its folder tells who may connect */
#define READERS_MAX 16u
#define READER_MS   5000u /* to take the object */
#define FRESH_MS    1000u

struct reader {
	struct stream stream;
	struct deadline deadline;
	struct status_socket *socket;
	LIST_ENTRY(reader) next;
};

struct status_socket {
	struct worker *worker;
	const struct control_view *view;
	struct listener *listener;
	LIST_HEAD(, reader) readers;
	char *text; /* NULL: none was made */
	uint64_t made_ms;
	unsigned open; /* its owner, the listener, and the readers */
};

static void status_socket_release(struct status_socket *s)
{
	if (--s->open > 0)
		return;
	free(s->text);
	free(s);
}

/* Readers */

static size_t on_status_data(struct stream *stream, uint8_t *data, size_t len)
{
	return len; /* no question has an effect */
}

static void on_status_end(struct stream *stream, enum stream_end end, int uv_error)
{
	stream_close(stream);
}

static void on_status_closed(struct stream *stream)
{
	struct reader *r = container_of(stream, struct reader, stream);
	struct status_socket *s = r->socket;

	deadline_cancel(&r->deadline);
	LIST_REMOVE(r, next);
	free(r);
	status_socket_release(s);
}

static void on_status_deadline(struct deadline *d)
{
	stream_close(&container_of(d, struct reader, deadline)->stream);
}

static const struct stream_ops stream_ops = {
	.on_data = on_status_data, .on_end = on_status_end, .on_closed = on_status_closed
};

static const char *status_socket_text_of(struct status_socket *s)
{
	const uint64_t now_ms = worker_now_ms(s->worker);

	if (s->text && now_ms - s->made_ms < FRESH_MS)
		return s->text;
	free(s->text);
	s->text = summary_make(s->view);
	s->made_ms = now_ms;
	return s->text ? s->text : "{}";
}

static void on_status_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct status_socket *s = ctx;
	struct reader *r = s->open < READERS_MAX + 2 ? calloc(1, sizeof *r) : NULL;
	const char *text = status_socket_text_of(s);

	if (!r) {
		close(fd);
		return;
	}
	if (stream_open_fd(&r->stream, s->worker, &stream_ops, fd) < 0) {
		free(r);
		return;
	}
	r->socket = s;
	r->deadline.fn = on_status_deadline;
	s->open++;
	LIST_INSERT_HEAD(&s->readers, r, next);
	deadline_set(s->worker, &r->deadline, READER_MS);
	stream_write(&r->stream, text, strlen(text)); /* a failure comes as on_end */
	stream_shutdown(&r->stream);
	stream_read_start(&r->stream);
}

/* Opening and closing */

static void on_status_listener_closed(void *ctx)
{
	status_socket_release(ctx);
}

static const struct listener_ops listener_ops = { .on_accept = on_status_accept,
	.on_closed = on_status_listener_closed };

struct status_socket *status_socket_create(
	struct worker *w, const char *path, int fd, const struct control_view *view, char *error, size_t error_cap)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct status_socket *s = calloc(1, sizeof *s);
	int r = UV_ENOMEM;

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path); /* the schema has checked its length */
	if (s && fd >= 0)
		s->listener = listener_create_fd(w, fd, &listener_ops, s, &r);
	else if (s)
		s->listener = listener_create(
			w, (const struct sockaddr *)&address, BACKLOG, SOCKET_MODE, &listener_ops, s, &r);
	if (!s || !s->listener) {
		snprintf(error, error_cap, "status socket '%s': %s", path, error_text(r));
		free(s);
		return NULL;
	}
	s->worker = w;
	s->view = view;
	s->open = 2;
	LIST_INIT(&s->readers);
	return s;
}

int status_socket_fd(const struct status_socket *s)
{
	return listener_fd(s->listener);
}

void status_socket_destroy(struct status_socket *s)
{
	struct reader *r;

	if (!s)
		return;
	LIST_FOREACH(r, &s->readers, next)
	stream_close(&r->stream); /* freed later, by on_closed */
	listener_close(s->listener);
	status_socket_release(s);
}
