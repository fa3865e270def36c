/* link_opening.c: a stream of its own for connecting and opening. When the kernel has our last message, the descriptor
 * goes to the link, together with the bytes that the agent sent after its last message.
 */
#include "ragent/link/link_opening.h"

#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "net/container_of.h"
#include "proto/error.h"

static struct link_opening *of_stream(struct stream *s)
{
	return container_of(s, struct link_opening, stream);
}

static void failed(struct link_opening *o, int error)
{
	deadline_cancel(&o->deadline);
	stream_read_stop(&o->stream);
	o->ops->on_failed(o, error);
}

static int peer_is_right(const struct link_opening *o)
{
	const struct link_hello *peer = opening_peer(o->opening);

	return strcmp(peer->name, o->agent->name) == 0 && peer->worker == o->mine.target_worker;
}

/* Send our last message, with the shared memory when both sides support it. */
static int send_last(struct link_opening *o, const uint8_t *out, size_t len)
{
	int r = stream_write(&o->stream, out, len);

	if (r < 0 || o->mine.bytes != LINK_BYTES_IN_MEMORY || opening_peer(o->opening)->bytes != LINK_BYTES_IN_MEMORY)
		return r;
	o->memory = rings_make();
	return o->memory < 0 ? o->memory : stream_send_fd(&o->stream, o->memory);
}

/* Give @in to the opening. Bytes used. */
static size_t advance(struct link_opening *o, const uint8_t *in, size_t len)
{
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t taken = 0, out_len = 0;
	int r = opening_step(o->opening, in, len, &taken, out, &out_len);

	if (r == OPENING_DONE && !peer_is_right(o))
		r = CSSL_E_MISMATCH;
	int sent = 0;
	if (r >= 0 && out_len)
		sent = r == OPENING_DONE ? send_last(o, out, out_len) : stream_write(&o->stream, out, out_len);
	if (sent < 0)
		r = sent;
	if (r == OPENING_DONE)
		stream_read_stop(&o->stream);
	if (r < 0)
		failed(o, r);
	return taken;
}

static void give_away(struct link_opening *o)
{
	struct link_keys keys;
	struct link_opened opened = { .keys = &keys, .peer = opening_peer(o->opening) };

	opened.early = stream_kept_data(&o->stream);
	opened.early_len = o->memory < 0 ? stream_kept(&o->stream)
					 : 0; /* with memory these are only bells; the bytes are in the memory */
	opened.fd = stream_dup_fd(&o->stream);
	if (opened.fd < 0) {
		failed(o, opened.fd);
		return;
	}
	deadline_cancel(&o->deadline);
	opening_result(o->opening, &keys);
	opened.memory = o->memory;
	opened.pidfd = o->pidfd;
	o->memory = o->pidfd = -1;
	o->ops->on_opened(o, &opened);
	sodium_memzero(&keys, sizeof keys);
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	return advance(of_stream(s), data, len);
}

static void on_fd(struct stream *s, int fd)
{
	struct link_opening *o = of_stream(s);

	if (o->pidfd < 0)
		o->pidfd = fd;
	else
		close(fd);
}

/* The agent's hello is known only when the opening is done, and our answer to it was the last message. */
static void on_written(struct stream *s, size_t len)
{
	struct link_opening *o = of_stream(s);

	if (opening_peer(o->opening) && stream_pending(s) == 0 && deadline_is_set(&o->deadline))
		give_away(o);
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	failed(of_stream(s), end == STREAM_ERROR ? uv_error : UV_EOF);
}

static void on_connected(struct stream *s, int uv_error)
{
	struct link_opening *o = of_stream(s);

	if (uv_error == 0)
		o->opening = opening_start(o->ring, 0, &o->mine, LINK_ROLE_AGENT);
	if (!o->opening) {
		failed(o, uv_error ? uv_error : CSSL_E_NO_MEMORY);
		return;
	}
	stream_read_start(s);
	advance(o, NULL, 0);
}

static void on_closed(struct stream *s)
{
	struct link_opening *o = of_stream(s);

	opening_destroy(o->opening);
	o->opening = NULL;
	if (o->memory >= 0)
		close(o->memory);
	if (o->pidfd >= 0)
		close(o->pidfd);
	o->ops->on_closed(o);
}

static const struct stream_ops stream_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_written = on_written,
	.on_connected = on_connected,
	.on_closed = on_closed,
	.on_fd = on_fd,
};

static void on_deadline(struct deadline *d)
{
	failed(container_of(d, struct link_opening, deadline), UV_ETIMEDOUT);
}

int link_opening_begin(struct link_opening *o, struct worker *w, const struct link_opening_ops *ops,
	const struct conf_agent *agent, const struct key_ring *ring, const struct link_hello *mine, uint64_t limit_ms)
{
	memset(o, 0, sizeof *o);
	o->worker = w;
	o->ops = ops;
	o->agent = agent;
	o->ring = ring;
	o->mine = *mine;
	o->deadline.fn = on_deadline;
	o->memory = o->pidfd = -1;
	if (agent->link.ss_family == AF_UNIX)
		stream_expect_fds(&o->stream);
	int r = stream_connect(&o->stream, w, &stream_ops, (const struct sockaddr *)&agent->link, NULL);
	if (r < 0)
		return r;
	stream_set_fault(&o->stream, "link", agent->name);
	deadline_set(w, &o->deadline, limit_ms);
	return 0;
}

void link_opening_close(struct link_opening *o)
{
	if (!o->ops)
		return;
	deadline_cancel(&o->deadline);
	stream_close(&o->stream);
}
