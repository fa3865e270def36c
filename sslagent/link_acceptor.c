/* link_acceptor.c: one small object per opening under way: a stream that feeds opening_step() until it is done, then
 * gives its descriptor, keys and early bytes away.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/listener.h"
#include "net/log.h"
#include "net/stream.h"
#include "net/timer.h"
#include "proto/error.h"
#include "sslagent/agent.h"
#include "sslagent/link.h"
#include "sslagent/link_acceptor.h"

struct link_acceptor {
	struct agent *agent;
	struct listener *listener;
	struct arriving *first;
	unsigned count;
	unsigned open_objects; /* listener and openings whose handles are not closed yet */
	void (*on_closed)(void *ctx);
	void *ctx;
};

struct arriving {
	struct stream stream;
	struct deadline deadline;
	struct link_acceptor *acceptor;
	struct opening *opening;
	enum link_bytes bytes; /* what we said that we can */
	int memory;            /* came along; -1: none */
	struct arriving *next, **prev;
};

static struct arriving *arriving_of(struct stream *s)
{
	return (struct arriving *)((char *)s - offsetof(struct arriving, stream));
}

static void acceptor_object_closed(struct link_acceptor *a)
{
	if (--a->open_objects == 0 && a->on_closed)
		a->on_closed(a->ctx);
}

static void arriving_end(struct arriving *v)
{
	deadline_cancel(&v->deadline);
	stream_close(&v->stream);
}

static void refuse(struct arriving *v, const char *cause)
{
	const struct link_hello *peer = opening_peer(v->opening);

	log_event(LOG_WARNING, NULL, "link refused", "ragent=%s cause=%s", peer ? peer->name : "unknown", cause);
	agent_count_link_refused(v->acceptor->agent);
	arriving_end(v);
}

static int goes_through_memory(const struct arriving *v)
{
	return v->bytes == LINK_BYTES_IN_MEMORY && opening_peer(v->opening)->bytes == LINK_BYTES_IN_MEMORY;
}

/* The opening is done: everything goes to the worker. */
static void give_away(struct arriving *v, const uint8_t *early, size_t early_len)
{
	struct link_arrival *arrival = calloc(1, sizeof *arrival);

	if (goes_through_memory(v)) {
		early_len = 0; /* bells, for bytes that are in the memory */
	} else if (v->memory >= 0) {
		close(v->memory);
		v->memory = -1;
	}
	if (!arrival || (early_len && !(arrival->early = malloc(early_len)))) {
		free(arrival);
		refuse(v, cssl_strerror(CSSL_E_NO_MEMORY));
		return;
	}
	if (early_len)
		memcpy(arrival->early, early, early_len);
	arrival->early_len = early_len;
	arrival->peer = *opening_peer(v->opening);
	arrival->fd = stream_dup_fd(&v->stream);
	if (arrival->fd < 0 || opening_result(v->opening, &arrival->keys) < 0) {
		if (arrival->fd >= 0)
			close(arrival->fd);
		link_arrival_destroy(arrival);
		refuse(v, "descriptor cannot be passed to the worker");
		return;
	}
	arrival->memory = v->memory;
	v->memory = -1;
	agent_give_link(v->acceptor->agent, arrival);
	arriving_end(v);
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct arriving *v = arriving_of(s);
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t out_len = 0, taken = 0;
	int r = opening_step(v->opening, data, len, &taken, out, &out_len);

	if (r < 0) {
		refuse(v, cssl_strerror(r));
		return len;
	}
	if (out_len && stream_write(&v->stream, out, out_len) < 0) {
		refuse(v, cssl_strerror(CSSL_E_NO_MEMORY));
		return len;
	}
	if (r == OPENING_DONE && goes_through_memory(v) && v->memory < 0)
		refuse(v, "the memory for its bytes did not come along");
	else if (r == OPENING_DONE)
		give_away(v, data + taken, len - taken);
	return r == OPENING_DONE ? len : taken;
}

static void on_fd(struct stream *s, int fd)
{
	struct arriving *v = arriving_of(s);

	if (v->memory < 0)
		v->memory = fd;
	else
		close(fd);
}

static void on_end(struct stream *s, enum stream_end end, int uv_error)
{
	arriving_end(arriving_of(s));
}

static void on_closed(struct stream *s)
{
	struct arriving *v = arriving_of(s);
	struct link_acceptor *a = v->acceptor;

	*v->prev = v->next;
	if (v->next)
		v->next->prev = v->prev;
	a->count--;
	opening_destroy(v->opening);
	if (v->memory >= 0)
		close(v->memory);
	free(v);
	acceptor_object_closed(a);
}

static const struct stream_ops arriving_ops = {
	.on_data = on_data,
	.on_fd = on_fd,
	.on_end = on_end,
	.on_closed = on_closed,
};

static void on_timeout(struct deadline *d)
{
	struct arriving *v = (struct arriving *)((char *)d - offsetof(struct arriving, deadline));

	refuse(v, "opening timed out");
}

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct link_acceptor *a = ctx;
	struct link_hello hello;
	struct arriving *v = a->count < OPENINGS_MAX ? calloc(1, sizeof *v) : NULL;

	if (!v) {
		close(fd);
		return;
	}
	agent_fill_hello(a->agent, &hello);
	v->acceptor = a;
	v->memory = -1;
	v->bytes = hello.bytes;
	if (v->bytes == LINK_BYTES_IN_MEMORY)
		stream_expect_fds(&v->stream);
	v->opening = opening_answer(agent_link_key(a->agent), &hello, LINK_ROLE_RAGENT);
	if (!v->opening || stream_open_fd(&v->stream, agent_main(a->agent), &arriving_ops, fd) < 0) {
		if (!v->opening)
			close(fd);
		opening_destroy(v->opening);
		free(v);
		return;
	}
	v->next = a->first;
	v->prev = &a->first;
	if (a->first)
		a->first->prev = &v->next;
	a->first = v;
	a->count++;
	a->open_objects++;
	v->deadline.fn = on_timeout;
	deadline_set(agent_main(a->agent), &v->deadline, OPENING_TIMEOUT_MS);
	stream_read_start(&v->stream);
}

static void on_listener_closed(void *ctx)
{
	acceptor_object_closed(ctx);
}

static const struct listener_ops acceptor_ops = { .on_accept = on_accept, .on_closed = on_listener_closed };

struct link_acceptor *link_acceptor_create(struct agent *agent)
{
	const struct conf_agent *self = agent_self(agent);
	struct link_acceptor *a = calloc(1, sizeof *a);
	char text[ADDRESS_TEXT_MAX];
	int uv_error = 0;

	if (!a)
		return NULL;
	a->agent = agent;
	a->open_objects = 1;
	/* anybody may knock: RAgent runs under another uid, and the opening tells who has the key */
	a->listener = listener_create(
		agent_main(agent), (const struct sockaddr *)&self->link, 128, 0666, &acceptor_ops, a, &uv_error);
	if (a->listener)
		return a;
	log_event(LOG_ERROR, NULL, "cannot listen for links", "address=%s cause=%s",
		address_format((const struct sockaddr *)&self->link, text), uv_strerror(uv_error));
	free(a);
	return NULL;
}

void link_acceptor_close(struct link_acceptor *a, void (*on_closed_cb)(void *ctx), void *ctx)
{
	a->on_closed = on_closed_cb;
	a->ctx = ctx;
	for (struct arriving *v = a->first; v; v = v->next)
		arriving_end(v);
	listener_close(a->listener);
}

void link_acceptor_destroy(struct link_acceptor *a)
{
	free(a);
}
