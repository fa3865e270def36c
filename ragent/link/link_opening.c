/* link_opening.c: begins a link: connects to the agent on a stream of its own, makes the opening (proto/opening.h) as
 * initiator, and checks that it is the wanted agent and worker. When the kernel has our last message, the descriptor
 * goes to the link, together with the bytes that the agent sent after its last message.
 *
 * While an agent is silent, a second connection to it is tried in the same way. If that is answered, the agent lives,
 * and the first connection is broken: the network was cut, and TCP waits longer and longer until it sends again. Then
 * the first one is given up, and the link opens again at once. Its streams go on (proto/frame.h: REATTACH), and no
 * agent has to take over. A UNIX socket cannot break, so its silence says nothing else.
 *
 * The agent's main thread answers the second connection, so it says nothing of the worker behind the link. A worker
 * sends a frame as soon as it has a link. If none came since the link is up, the worker hangs: nothing is tried, and
 * the agent is lost in time.
 */
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "net/memory/container_of.h"
#include "proto/error.h"
#include "ragent/link/link_internal.h"

#define SECOND_LIMIT_MS 250u /* a new connection is tried sooner than TCP repeats the first packet of this one */

static struct link *link_of_opening(struct stream *s)
{
	return container_of(s, struct link, opening.stream);
}

static void link_opening_failed(struct link *l, int error)
{
	deadline_cancel(&l->opening.deadline);
	stream_read_stop(&l->opening.stream);
	if (l->second == LINK_BESIDE)
		link_opening_close(l);
	else
		link_fail(l, error);
}

static bool peer_is_right(const struct link *l)
{
	const struct link_hello *peer = opening_peer(l->opening.opening);

	return strcmp(peer->name, l->p.agent->name) == 0 && peer->worker == l->p.hello.target_worker;
}

/* Send our last message, with the shared memory when both sides support it. */
static int send_last(struct link *l, const uint8_t *out, size_t len)
{
	struct link_opening *o = &l->opening;
	int r = stream_write(&o->stream, out, len);

	if (r < 0 || l->p.hello.bytes != LINK_BYTES_IN_MEMORY ||
		opening_peer(o->opening)->bytes != LINK_BYTES_IN_MEMORY)
		return r;
	o->memory = rings_make();
	return o->memory < 0 ? o->memory : stream_send_fd(&o->stream, o->memory);
}

/* Give @in to the opening. Bytes used. */
static size_t link_opening_advance(struct link *l, const uint8_t *in, size_t len)
{
	struct link_opening *o = &l->opening;
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t taken = 0, out_len = 0;
	int r = opening_step(o->opening, in, len, &taken, out, &out_len);

	if (r == OPENING_DONE && !peer_is_right(l))
		r = CSSL_E_MISMATCH;
	int sent = 0;
	if (r >= 0 && out_len)
		sent = r == OPENING_DONE ? send_last(l, out, out_len) : stream_write(&o->stream, out, out_len);
	if (sent < 0)
		r = sent;
	if (r == OPENING_DONE)
		stream_read_stop(&o->stream);
	if (r < 0)
		link_opening_failed(l, r);
	return taken;
}

static void link_opening_give_away(struct link *l)
{
	struct link_opening *o = &l->opening;
	struct link_keys keys;
	const int fd = stream_dup_fd(&o->stream);

	if (fd < 0) {
		link_opening_failed(l, fd);
		return;
	}
	deadline_cancel(&o->deadline);
	opening_result(o->opening, &keys);
	link_on_open(l, fd, &keys);
	link_opening_close(l);
	sodium_memzero(&keys, sizeof keys);
}

static size_t link_opening_on_data(struct stream *s, uint8_t *data, size_t len)
{
	return link_opening_advance(link_of_opening(s), data, len);
}

static void link_opening_on_fd(struct stream *s, int fd)
{
	struct link_opening *o = &link_of_opening(s)->opening;

	if (o->pidfd < 0)
		o->pidfd = fd;
	else
		close(fd);
}

/* The agent's hello is known only when the opening is done, and our answer to it was the last message. */
static void link_opening_on_written(struct stream *s, size_t len)
{
	struct link *l = link_of_opening(s);

	if (!opening_peer(l->opening.opening) || stream_pending(s) > 0 || !deadline_is_set(&l->opening.deadline))
		return;
	if (l->second == LINK_ALONE) {
		link_opening_give_away(l);
		return;
	}
	link_opening_close(l);
	if (l->state == LINK_SUSPECT)
		link_fail(l, LINK_BROKEN);
}

static void link_opening_on_end(struct stream *s, enum stream_end end, int uv_error)
{
	link_opening_failed(link_of_opening(s), end == STREAM_ERROR ? uv_error : UV_EOF);
}

static void link_opening_on_connected(struct stream *s, int uv_error)
{
	struct link *l = link_of_opening(s);

	if (uv_error == 0)
		l->opening.opening = opening_start(l->p.ring, 0, &l->p.hello, LINK_ROLE_AGENT);
	if (!l->opening.opening) {
		link_opening_failed(l, uv_error ? uv_error : CSSL_E_NO_MEMORY);
		return;
	}
	stream_read_start(s);
	link_opening_advance(l, NULL, 0);
}

static void link_opening_on_closed(struct stream *s)
{
	struct link *l = link_of_opening(s);
	struct link_opening *o = &l->opening;

	opening_destroy(o->opening);
	o->opening = NULL;
	if (o->memory >= 0)
		close(o->memory);
	if (o->pidfd >= 0)
		close(o->pidfd);
	l->second = LINK_ALONE;
	link_handle_closed(l);
}

static const struct stream_ops stream_ops = {
	.on_data = link_opening_on_data,
	.on_end = link_opening_on_end,
	.on_written = link_opening_on_written,
	.on_connected = link_opening_on_connected,
	.on_closed = link_opening_on_closed,
	.on_fd = link_opening_on_fd,
};

static void link_opening_on_deadline(struct deadline *d)
{
	link_opening_failed(container_of(d, struct link, opening.deadline), UV_ETIMEDOUT);
}

int link_opening_begin(struct link *l, uint64_t limit_ms)
{
	const struct conf_agent *agent = l->p.agent;
	struct link_opening *o = &l->opening;

	*o = (struct link_opening){ .deadline.fn = link_opening_on_deadline, .memory = -1, .pidfd = -1 };
	if (agent->link.ss_family == AF_UNIX)
		stream_expect_fds(&o->stream);
	int r = stream_connect(&o->stream, l->p.worker, &stream_ops, (const struct sockaddr *)&agent->link, NULL);
	if (r < 0)
		return r;
	stream_set_fault(&o->stream, "link", agent->name);
	deadline_set(l->p.worker, &o->deadline, limit_ms);
	l->handles++;
	return 0;
}

void link_opening_close(struct link *l)
{
	if (!l->opening.deadline.fn)
		return;
	deadline_cancel(&l->opening.deadline);
	stream_close(&l->opening.stream);
}

void link_try_second(struct link *l)
{
	if (l->state != LINK_SUSPECT || l->second == LINK_BESIDE || l->ear == LINK_HEARD_NOTHING ||
		l->p.agent->link.ss_family == AF_UNIX || !link_outlived(l))
		return;
	if (link_opening_begin(l, SECOND_LIMIT_MS) == 0)
		l->second = LINK_BESIDE;
}
