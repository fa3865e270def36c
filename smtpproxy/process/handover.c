/* handover.c: one new process at a time. When it has taken over, the connection stays: it asks about transactions. */
#include "smtpproxy/process/handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "net/loop/wheel.h"
#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "smtpproxy/ledger/tx_before.h"

#define BACKLOG     4
#define SOCKET_MODE 0600u

#define GIVE_MS 10000u /* for the new process to read what was written */

/* ALONE <-> ASKED -> LEFT -> OVER; all -> OVER */
enum handover_state { HANDOVER_ALONE, HANDOVER_ASKED, HANDOVER_LEFT, HANDOVER_OVER };

struct handover {
	struct stream stream; /* ASKED, LEFT, and until it has closed */
	struct deadline deadline;
	struct remote_channel channel;
	struct worker *worker;
	const struct handover_ops *ops;
	void *ctx;
	struct listener *listener;
	enum handover_state state;
	unsigned open; /* its owner, the listener, and the stream */
};

static void handover_release(struct handover *h)
{
	if (--h->open == 0)
		free(h);
}

static void on_handover_listener_closed(void *ctx)
{
	handover_release(ctx);
}

static void on_handover_stream_closed(struct stream *s)
{
	struct handover *h = container_of(s, struct handover, stream);
	deadline_cancel(&h->deadline);
	if (h->state == HANDOVER_ASKED) {
		h->state = HANDOVER_ALONE;
		h->stream = (struct stream){ 0 };
		listener_resume(h->listener);
	} else if (h->state == HANDOVER_LEFT) {
		h->state = HANDOVER_OVER;
		h->ops->on_left(h->ctx);
	}
	handover_release(h);
}

/* Questions. Returns the bytes used; negative: it sends something else. */
static int take_questions(struct handover *h, const uint8_t *data, size_t len)
{
	struct tx_message m;
	size_t used = 0;
	int r;
	while ((r = tx_message_read(data + used, len - used, &m)) > 0) {
		used += (size_t)r;
		if (m.kind == TX_MESSAGE_QUESTION)
			h->ops->on_question(h->ctx, &m);
	}
	return r < 0 ? r : (int)used;
}

static size_t on_handover_data(struct stream *s, uint8_t *data, size_t len)
{
	struct handover *h = container_of(s, struct handover, stream);
	size_t taken = 0;
	int r = -1;
	if (h->state == HANDOVER_OVER)
		return len;
	if (h->state == HANDOVER_ASKED && data[0] == INHERITANCE_TAKEN) {
		h->state = HANDOVER_LEFT;
		listener_close(h->listener);
		h->ops->on_taken(h->ctx);
		taken = 1;
	}
	if (h->state == HANDOVER_LEFT)
		r = take_questions(h, data + taken, len - taken);
	if (r < 0)
		stream_close(s);
	return r < 0 ? len : taken + (size_t)r;
}

static void on_handover_end(struct stream *s, enum stream_end end, int uv_error)
{
	if (container_of(s, struct handover, stream)->state == HANDOVER_ASKED)
		log_event(LOG_WARNING, NULL, "new process did not take over", NULL);
	stream_close(s);
}

static void on_handover_deadline(struct deadline *d)
{
	stream_close(&container_of(d, struct handover, deadline)->stream);
}

static void send_message(void *ctx, const uint8_t *data, size_t len)
{
	struct handover *h = ctx;
	stream_write(&h->stream, data, len); /* a failure comes as on_end */
}

const struct remote_channel *handover_channel(const struct handover *h)
{
	return h->state == HANDOVER_LEFT ? &h->channel : NULL;
}

static const struct stream_ops stream_ops = {
	.on_data = on_handover_data, .on_end = on_handover_end, .on_closed = on_handover_stream_closed
};

void handover_give(struct handover *h, enum inheritance_kind kind, unsigned detail, int fd)
{
	const struct inheritance_message m = {
		.format = INHERITANCE_FORMAT, .kind = (uint8_t)kind, .detail = (uint8_t)detail
	};
	if (stream_write(&h->stream, &m, sizeof m) < 0 || (fd >= 0 && stream_send_fd(&h->stream, fd) < 0))
		stream_close(&h->stream); /* the new process misses the last message */
}

static void on_handover_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
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

static const struct listener_ops listener_ops = { .on_accept = on_handover_accept,
	.on_closed = on_handover_listener_closed };

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
	h->deadline.fn = on_handover_deadline;
	h->channel = (struct remote_channel){ .send = send_message, .ctx = h };
	h->open = 2;
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
	const enum handover_state before = h->state;
	h->state = HANDOVER_OVER;
	if (before == HANDOVER_ASKED)
		stream_close(&h->stream);
	if (before == HANDOVER_LEFT) {
		stream_shutdown(&h->stream);
		deadline_set(h->worker, &h->deadline, GIVE_MS);
	} else if (before != HANDOVER_OVER) {
		listener_close(h->listener);
	}
	handover_release(h);
}

/* The process before: bytes between the channel and the ledger of that process. */

static void before_send_message(void *ctx, const uint8_t *data, size_t len)
{
	struct predecessor *p = ctx;
	stream_write(&p->stream, data, len); /* a failure comes as before_end */
}

static size_t before_data(struct stream *s, uint8_t *data, size_t len)
{
	struct predecessor *p = container_of(s, struct predecessor, stream);
	const int used = tx_before_read(p->before, data, len);
	if (used >= 0)
		return (size_t)used;
	log_event(LOG_ERROR, NULL, "process before sends no messages", NULL);
	stream_close(s);
	return len;
}

static void before_end(struct stream *s, enum stream_end end, int uv_error)
{
	stream_close(s);
}

static void before_closed(struct stream *s)
{
	struct predecessor *p = container_of(s, struct predecessor, stream);
	tx_before_close(p->before);
}

static const struct stream_ops before_stream_ops = {
	.on_data = before_data, .on_end = before_end, .on_closed = before_closed
};

void predecessor_open(struct predecessor *p, struct worker *w, int fd, struct tx_before *before)
{
	int r;
	p->before = before;
	r = stream_open_fd(&p->stream, w, &before_stream_ops, fd);
	if (r < 0) {
		log_event(LOG_WARNING, NULL, "process before cannot be asked", "cause=%s", error_text(r));
		return;
	}
	tx_before_open(before, before_send_message, p);
	stream_read_start(&p->stream);
}

void predecessor_close(struct predecessor *p)
{
	if (p->before)
		stream_close(&p->stream);
}
