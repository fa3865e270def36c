/* backend.c: one backend connection on a stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop/wheel.h"
#include "net/memory/container_of.h"
#include "net/points/fault.h"
#include "net/report/log_pace.h"
#include "net/socket/address.h"
#include "proto/error.h"
#include "sslagent/backend/backend.h"
#include "sslagent/counters.h"

/* A client may send its request a little later than what made this agent connect (h2: the preface), and needs it to get
 * an answer. */
#define FAILS_AFTER_MS 50u

struct backend {
	struct stream stream;
	struct backend_home *home;
	const struct conf_backend *conf;
	const struct backend_user_ops *ops;
	void *user;
	struct deadline connect_deadline;
	int failure;       /* it could not connect, and the user will be told */
	size_t header_len; /* length of the PROXY header in the output; the user did not write these bytes */
};

void backend_home_open(struct backend_home *home, struct worker *worker, const struct conf *conf,
	const struct sockaddr_storage *source, struct backend_state *states)
{
	*home = (struct backend_home){ .worker = worker, .conf = conf, .source = source, .states = states };
	slabs_init(&home->blocks, sizeof(struct backend));
}

void backend_home_release(struct backend_home *home)
{
	slabs_clear(&home->blocks);
}

static struct backend *backend_of(struct stream *s)
{
	return container_of(s, struct backend, stream);
}

static void backend_give_back(struct backend *b)
{
	slabs_give(&b->home->blocks, b);
}

static size_t backend_on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct backend *b = backend_of(s);

	return b->ops->on_data(b->user, data, len);
}

static void backend_on_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct backend *b = backend_of(s);

	b->ops->on_end(b->user, end, uv_error);
}

static void backend_on_written(struct stream *s, size_t len)
{
	struct backend *b = backend_of(s);
	size_t header = b->header_len < len ? b->header_len : len;

	b->header_len -= header;
	if (len > header)
		b->ops->on_written(b->user, len - header);
}

bool backend_is_own_lack(int uv_error)
{
	return uv_error == UV_EMFILE || uv_error == UV_ENFILE || uv_error == UV_ENOMEM || uv_error == UV_ENOBUFS ||
	       uv_error == UV_EADDRNOTAVAIL;
}

static void tell_not_asked(const struct conf_backend *conf, int uv_error)
{
	log_paced(LOG_WARNING, NULL, "backend not asked", "backend=%s error=%s", conf->name, uv_strerror(uv_error));
}

/* @uv_error 0: it answers. A line tells each change. */
static void backend_note_state(const struct backend *b, int uv_error)
{
	struct backend_state *s = &b->home->states[b->conf - b->home->conf->backends];
	char text[ADDRESS_TEXT_MAX];

	if (backend_is_own_lack(uv_error)) {
		tell_not_asked(b->conf, uv_error);
		return;
	}
	if (uv_error)
		atomic_store(&s->failed_ms, worker_now_ms(b->home->worker));
	if (atomic_exchange(&s->failure, uv_error) == uv_error)
		return;
	address_format((const struct sockaddr *)&b->conf->address, text);
	if (uv_error)
		log_paced(LOG_WARNING, NULL, "backend unreachable", "backend=%s address=%s error=%s", b->conf->name,
			text, uv_strerror(uv_error));
	else
		log_paced(LOG_INFO, NULL, "backend answers again", "backend=%s address=%s", b->conf->name, text);
}

bool backends_failing(const struct backend_state *states, const struct conf *conf, uint64_t now_ms,
	char out[static BACKENDS_TEXT_MAX])
{
	size_t len = 0, others = 0;
	char text[ADDRESS_TEXT_MAX];

	out[0] = '\0';
	for (size_t i = 0; i < conf->backend_count; i++) {
		const struct conf_backend *b = &conf->backends[i];
		const int failure = atomic_load(&states[i].failure),
			  is_recent = now_ms < atomic_load(&states[i].failed_ms) + BACKENDS_FAIL_FOR_MS;
		if (conf_is_control_backend(conf, b))
			continue;
		others += !failure;
		if (failure && is_recent && len < BACKENDS_TEXT_MAX)
			len += (size_t)snprintf(out + len, BACKENDS_TEXT_MAX - len, "%s%s at %s: %s", len ? ", " : "",
				b->name, address_format((const struct sockaddr *)&b->address, text),
				uv_strerror(failure));
	}
	return len > 0 && others == 0;
}

static void backend_on_connected(struct stream *s, int uv_error)
{
	struct backend *b = backend_of(s);

	backend_note_state(b, uv_error);
	if (uv_error < 0) {
		b->failure = uv_error;
		deadline_set(b->home->worker, &b->connect_deadline, FAILS_AFTER_MS);
		return;
	}
	deadline_cancel(&b->connect_deadline);
	if (b->conf->address.ss_family != AF_UNIX)
		stream_reset_on_close(&b->stream, true);
	stream_read_start(s);
}

static void backend_on_closed(struct stream *s)
{
	backend_give_back(backend_of(s));
}

static void backend_foresee(const struct stream *s)
{
	const struct backend *b = container_of(s, const struct backend, stream);

	if (b->ops->foresee)
		b->ops->foresee(b->user);
}

static const struct stream_ops backend_stream_ops = {
	.on_data = backend_on_data,
	.foresee = backend_foresee,
	.on_end = backend_on_end,
	.on_written = backend_on_written,
	.on_connected = backend_on_connected,
	.on_closed = backend_on_closed,
};

static void on_connect_timeout(struct deadline *d)
{
	struct backend *b = container_of(d, struct backend, connect_deadline);

	if (!b->failure)
		backend_note_state(b, UV_ETIMEDOUT);
	b->ops->on_end(b->user, STREAM_ERROR, b->failure ? b->failure : UV_ETIMEDOUT);
}

static struct backend *backend_create(
	struct backend_home *home, const struct conf_backend *conf, const struct backend_user_ops *ops, void *user)
{
	struct backend *b = slabs_take(&home->blocks);

	if (!b)
		return NULL;
	*b = (struct backend){
		.home = home, .conf = conf, .ops = ops, .user = user, .connect_deadline.fn = on_connect_timeout
	};
	return b;
}

static int write_proxy_header(struct backend *b, const struct proxy_header *proxy)
{
	struct proxy_header fitting = *proxy;
	uint8_t *room = stream_reserve(&b->stream, b->conf->proxy_v2_len);

	if (!room)
		return CSSL_E_NO_MEMORY;
	count_by(COUNT_PROXY_VALUES_LEFT_OUT, proxy_header_fit(&fitting, b->conf->proxy_v2_len));
	ptrdiff_t len = proxy_header_write(&fitting, room, b->conf->proxy_v2_len);
	if (len < 0)
		return (int)len;
	stream_commit(&b->stream, (size_t)len);
	b->header_len = (size_t)len;
	return 0;
}

struct backend *backend_connect(struct backend_home *home, const struct conf_backend *conf,
	const struct proxy_header *proxy, const struct backend_user_ops *ops, void *user)
{
	struct backend *b = backend_create(home, conf, ops, user);
	const struct sockaddr *to = (const struct sockaddr *)&conf->address, *source = NULL;

	if (!b)
		return NULL;
	if (home->source->ss_family == to->sa_family)
		source = (const struct sockaddr *)home->source;
	int r = fault_at("backend.connect", conf->name, NULL) == FAULT_FAIL
			? UV_EMFILE
			: stream_connect(&b->stream, home->worker, &backend_stream_ops, to, source);
	if (r < 0) {
		tell_not_asked(conf, r);
		backend_give_back(b);
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

struct backend *backend_open_fd(struct backend_home *home, const struct conf_backend *conf, int fd,
	const struct backend_user_ops *ops, void *user)
{
	struct backend *b = backend_create(home, conf, ops, user);

	if (!b) {
		close(fd);
		return NULL;
	}
	if (stream_open_fd(&b->stream, home->worker, &backend_stream_ops, fd) < 0) {
		backend_give_back(b);
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
	return b->failure || b->stream.failure ? 0 : stream_write(&b->stream, data, len);
}

size_t backend_pending(const struct backend *b)
{
	return stream_pending(&b->stream);
}

void backend_shutdown(struct backend *b)
{
	stream_shutdown(&b->stream);
}

void backend_read_off(struct backend *b)
{
	stream_read_stop(&b->stream);
}

void backend_read_pause(struct backend *b)
{
	stream_read_pause(&b->stream);
}

void backend_read_on(struct backend *b, size_t most)
{
	stream_set_read_max(&b->stream, (uint32_t)most);
	stream_read_start(&b->stream);
}

/* A duplicate keeps the socket open, so nothing is sent. */
void backend_close_quietly(struct backend *b)
{
	deadline_cancel(&b->connect_deadline);
	stream_close(&b->stream);
}

void backend_close(struct backend *b)
{
	if (b->conf->address.ss_family != AF_UNIX)
		stream_reset_on_close(&b->stream, false);
	backend_close_quietly(b);
}

void backend_reset(struct backend *b)
{
	deadline_cancel(&b->connect_deadline);
	stream_abort(&b->stream);
}

int backend_take_half(struct backend *b, struct backend_half *out)
{
	size_t unread = stream_kept(&b->stream);

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

void backends_are_quiet(struct backend *const *backends, unsigned n, uint64_t *quiet)
{
	const struct stream *streams[BACKENDS_ASKED_MAX];

	for (unsigned i = 0; i < n; i++)
		streams[i] = &backends[i]->stream;
	stream_are_quiet(streams, n, quiet);
}

const struct conf_backend *backend_conf(const struct backend *b)
{
	return b->conf;
}
