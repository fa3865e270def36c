/* handover.c: one new process at a time. */
#include "smtpproxy/process/handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/container_of.h"
#include "net/error_text.h"
#include "net/listener.h"
#include "net/log.h"
#include "net/stream.h"

#define BACKLOG     4
#define SOCKET_MODE 0600u

enum handover_state { HANDOVER_ALONE, HANDOVER_ASKED, HANDOVER_OVER };

struct handover {
	struct stream stream; /* first: ASKED, and until it has closed */
	struct worker *worker;
	const struct handover_ops *ops;
	void *ctx;
	struct listener *listener;
	enum handover_state state;
	unsigned open; /* the listener, and the stream */
};

static void release(struct handover *h)
{
	if (--h->open == 0)
		free(h);
}

static void on_listener_closed(void *ctx)
{
	release(ctx);
}

static void on_stream_closed(struct stream *s)
{
	struct handover *h = (struct handover *)s;
	if (h->state == HANDOVER_ASKED) {
		h->state = HANDOVER_ALONE;
		h->stream = (struct stream){ 0 };
		listener_resume(h->listener);
	}
	release(h);
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct handover *h = (struct handover *)s;
	stream_close(s);
	if (data[0] == INHERITANCE_TAKEN)
		h->ops->on_taken(h->ctx);
	return len;
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	log_event(LOG_WARNING, NULL, "new process did not take over", NULL);
	stream_close(s);
}

static const struct stream_ops stream_ops = { .on_data = on_data, .on_end = on_end, .on_closed = on_stream_closed };

void handover_give(struct handover *h, enum inheritance_kind kind, unsigned detail, int fd)
{
	const struct inheritance_message m = {
		.format = INHERITANCE_FORMAT, .kind = (uint8_t)kind, .detail = (uint8_t)detail
	};
	if (stream_write(&h->stream, &m, sizeof m) < 0 || (fd >= 0 && stream_send_fd(&h->stream, fd) < 0))
		stream_close(&h->stream); /* the new process misses the last message */
}

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct handover *h = ctx;
	stream_expect_fds(&h->stream);
	if (stream_open_fd(&h->stream, h->worker, &stream_ops, fd) < 0)
		return;
	listener_pause(h->listener);
	h->state = HANDOVER_ASKED;
	h->open++;
	log_event(LOG_INFO, NULL, "new process asks for the listening sockets", NULL);
	h->ops->on_asked(h->ctx);
	handover_give(h, INHERITANCE_END, 0, -1);
	stream_read_start(&h->stream);
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = on_listener_closed };

struct handover *handover_create(
	struct worker *w, const char *path, int fd, const struct handover_ops *ops, void *ctx, char *error, size_t cap)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct handover *h = calloc(1, sizeof *h);
	int r = UV_ENOMEM;
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path); /* the schema has checked its length */
	if (h && fd >= 0)
		h->listener = listener_create_fd(w, fd, &listener_ops, h, &r);
	else if (h)
		h->listener = listener_create(
			w, (const struct sockaddr *)&address, BACKLOG, SOCKET_MODE, &listener_ops, h, &r);
	if (!h || !h->listener) {
		snprintf(error, cap, "handover socket '%s': %s", path, error_text(r));
		free(h);
		return NULL;
	}
	h->worker = w;
	h->ops = ops;
	h->ctx = ctx;
	h->open = 1;
	return h;
}

int handover_fd(const struct handover *h)
{
	return listener_fd(h->listener);
}

void handover_destroy(struct handover *h)
{
	if (!h)
		return;
	if (h->state == HANDOVER_ASKED)
		stream_close(&h->stream);
	h->state = HANDOVER_OVER;
	listener_close(h->listener);
}
