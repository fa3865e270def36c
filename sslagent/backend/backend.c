/* backend.c: one backend connection on a stream. */
#include <stdlib.h>
#include <string.h>

#include "net/fault.h"
#include "net/timer.h"
#include "proto/error.h"
#include "sslagent/backend/backend.h"
#include "sslagent/backend/backend_relay.h"

struct backend {
	struct stream stream;
	const struct conf_backend *conf;
	const struct backend_user_ops *ops;
	void *user;
	struct deadline connect_deadline;
	struct backend_relay *relay; /* NULL: none stands between */
	size_t most;                 /* with a relay: what the user reads at a time; 0: it does not read */
	size_t header_len;           /* PROXY header bytes in the output that are not the user's */
};

static struct backend *backend_of(struct stream *s)
{
	return (struct backend *)((char *)s - offsetof(struct backend, stream));
}

/* --- mail --- */

/* What the relay has for the user, as far as that reads. */
static void give_answer(struct backend *b)
{
	uint8_t *data;
	size_t len, used = 1;

	while (used && b->stream.state < STREAM_CLOSING && b->most &&
		(len = backend_relay_answer(b->relay, &data)) > 0) {
		used = b->ops->on_data(b->user, data, len < b->most ? len : b->most);
		if (b->stream.state < STREAM_CLOSING)
			backend_relay_answer_used(b->relay, used);
	}
}

/* What went on is written once the kernel has it. */
static void on_relay_wake(struct backend *b)
{
	int over;

	if (b->stream.state >= STREAM_CLOSING)
		return;
	const size_t taken = stream_pending(&b->stream) ? 0 : backend_relay_taken(b->relay);
	if (taken)
		b->ops->on_written(b->user, taken);
	give_answer(b);
	if (b->stream.state >= STREAM_CLOSING)
		return;
	over = backend_relay_over(b->relay);
	if (over >= 0)
		b->ops->on_end(b->user, (enum stream_end)over, 0);
	else if (b->most && b->stream.state == STREAM_OPEN && backend_relay_answer(b->relay, &(uint8_t *){ NULL }) == 0)
		stream_read_start(&b->stream);
}

int backend_is_mail(struct backend *b, const struct backend_mail *mail)
{
	b->relay = backend_relay_create(b->stream.worker, &b->stream, mail, on_relay_wake, b);
	b->most = BACKEND_READ_MAX;
	return b->relay ? 0 : CSSL_E_NO_MEMORY;
}

static void tell_end(struct backend *b, enum stream_end how, int uv_error)
{
	if (b->relay)
		backend_relay_ended(b->relay);
	else
		b->ops->on_end(b->user, how, uv_error);
}

static size_t on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct backend *b = backend_of(s);

	if (b->relay) {
		stream_read_stop(s); /* until the user has it */
		backend_relay_read(b->relay, data, len);
		return len;
	}
	return b->ops->on_data(b->user, data, len);
}

static void on_end(struct stream *s, enum stream_end how, int uv_error)
{
	tell_end(backend_of(s), how, uv_error);
}

static void on_written(struct stream *s, size_t len)
{
	struct backend *b = backend_of(s);
	size_t header = b->header_len < len ? b->header_len : len;

	b->header_len -= header;
	if (b->relay)
		on_relay_wake(b);
	else if (len > header)
		b->ops->on_written(b->user, len - header);
}

static void on_connected(struct stream *s, int uv_error)
{
	struct backend *b = backend_of(s);

	deadline_cancel(&b->connect_deadline);
	if (uv_error < 0) {
		tell_end(b, STREAM_ERROR, uv_error);
		return;
	}
	if (b->conf->address.ss_family != AF_UNIX)
		stream_reset_on_close(&b->stream, 1);
	stream_read_start(s);
}

static void on_closed(struct stream *s)
{
	struct backend *b = backend_of(s);

	backend_relay_destroy(b->relay);
	free(b);
}

static const struct stream_ops backend_stream_ops = {
	.on_data = on_data,
	.on_end = on_end,
	.on_written = on_written,
	.on_connected = on_connected,
	.on_closed = on_closed,
};

static void on_connect_timeout(struct deadline *d)
{
	struct backend *b = (struct backend *)((char *)d - offsetof(struct backend, connect_deadline));

	tell_end(b, STREAM_ERROR, UV_ETIMEDOUT);
}

static struct backend *backend_create(const struct conf_backend *conf, const struct backend_user_ops *ops, void *user)
{
	struct backend *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	b->conf = conf;
	b->ops = ops;
	b->user = user;
	b->connect_deadline.fn = on_connect_timeout;
	return b;
}

static int write_proxy_header(struct backend *b, const struct proxy_header *proxy)
{
	uint8_t *room = stream_reserve(&b->stream, PROXY_V2_MAX);

	if (!room)
		return CSSL_E_NO_MEMORY;
	ptrdiff_t len = proxy_header_write(proxy, room, PROXY_V2_MAX);
	if (len < 0)
		return (int)len;
	stream_commit(&b->stream, (size_t)len);
	b->header_len = (size_t)len;
	return 0;
}

struct backend *backend_connect(const struct backend_home *home, const struct conf_backend *conf,
	const struct proxy_header *proxy, const struct backend_user_ops *ops, void *user)
{
	struct backend *b = backend_create(conf, ops, user);
	const struct sockaddr *to = (const struct sockaddr *)&conf->address, *source = NULL;

	if (!b)
		return NULL;
	if (home->source->ss_family == to->sa_family)
		source = (const struct sockaddr *)home->source;
	if (fault_at("backend.connect", conf->name, NULL) == FAULT_FAIL ||
		stream_connect(&b->stream, home->worker, &backend_stream_ops, to, source) < 0) {
		free(b);
		return NULL;
	}
	stream_set_read_max(&b->stream, BACKEND_READ_MAX);
	if (proxy && write_proxy_header(b, proxy) < 0) {
		stream_close(&b->stream);
		return NULL;
	}
	deadline_set(home->worker, &b->connect_deadline, home->conf->limits.backend_connect_timeout_ms);
	return b;
}

struct backend *backend_open_fd(const struct backend_home *home, const struct conf_backend *conf, int fd,
	const struct backend_user_ops *ops, void *user)
{
	struct backend *b = backend_create(conf, ops, user);

	if (!b) {
		close(fd);
		return NULL;
	}
	if (stream_open_fd(&b->stream, home->worker, &backend_stream_ops, fd) < 0) {
		free(b);
		return NULL;
	}
	stream_set_read_max(&b->stream, BACKEND_READ_MAX);
	return b;
}

void backend_bind(struct backend *b, const struct backend_user_ops *ops, void *user)
{
	b->ops = ops;
	b->user = user;
}

int backend_write(struct backend *b, const uint8_t *data, size_t len)
{
	return b->relay ? backend_relay_write(b->relay, data, len) : stream_write(&b->stream, data, len);
}

size_t backend_pending(const struct backend *b)
{
	return stream_pending(&b->stream);
}

void backend_shutdown(struct backend *b)
{
	if (b->relay)
		backend_relay_shutdown(b->relay);
	else
		stream_shutdown(&b->stream);
}

void backend_read_off(struct backend *b)
{
	b->most = 0;
	stream_read_stop(&b->stream);
}

void backend_read_pause(struct backend *b)
{
	b->most = 0;
	stream_read_pause(&b->stream);
}

void backend_read_on(struct backend *b, size_t most)
{
	b->most = most;
	stream_set_read_max(&b->stream, (uint32_t)most);
	if (b->relay)
		backend_relay_look(b->relay);
	else
		stream_read_start(&b->stream);
}

static void backend_finish(struct backend *b)
{
	deadline_cancel(&b->connect_deadline);
	stream_close(&b->stream);
}

void backend_close(struct backend *b)
{
	if (b->conf->address.ss_family != AF_UNIX)
		stream_reset_on_close(&b->stream, 0);
	backend_finish(b);
}

void backend_reset(struct backend *b)
{
	deadline_cancel(&b->connect_deadline);
	stream_abort(&b->stream);
}

void backend_close_quietly(struct backend *b)
{
	backend_finish(b); /* a duplicate of the descriptor lives on: nothing is sent */
}

int backend_take_half(struct backend *b, struct backend_half *out)
{
	size_t unread = stream_kept(&b->stream);

	if (b->relay) /* half of what it knows is here */
		return CSSL_E_STATE;
	*out = (struct backend_half){ .fd = -1 };
	if (unread) {
		out->unread = malloc(unread);
		if (!out->unread)
			return CSSL_E_NO_MEMORY;
		memcpy(out->unread, stream_kept_data(&b->stream), unread);
		out->unread_len = unread;
	}
	out->fd = stream_dup_fd(&b->stream);
	if (out->fd >= 0)
		return 0;
	free(out->unread);
	return CSSL_E_SYSTEM;
}

int backend_give_unread(struct backend *b, const uint8_t *data, size_t len)
{
	return len ? stream_keep(&b->stream, data, len) : 0;
}

int backend_is_quiet(const struct backend *b)
{
	return stream_is_quiet(&b->stream);
}

const struct conf_backend *backend_conf(const struct backend *b)
{
	return b->conf;
}
