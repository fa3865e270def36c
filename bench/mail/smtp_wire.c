/* smtp_wire.c: input goes to the session, to the handshake, or to SSL_read, depending on the state. */
#include "bench/mail/smtp_wire.h"

#include <stdlib.h>
#include <string.h>

#include "bench/load/client_tls.h"
#include "net/memory/container_of.h"

static bool is_open(const struct smtp_wire *w)
{
	return w->state != SMTP_WIRE_CLOSING;
}

static void smtp_wire_fail(struct smtp_wire *w, const char *why)
{
	if (is_open(w))
		w->ops->on_end(w, why);
}

/* In clear, the bytes of a paused session stay in the stream. */
static void pause_wire(struct smtp_wire *w)
{
	w->paused = 1;
	stream_read_stop(&w->stream);
}

static size_t take_clear(struct smtp_wire *w, const uint8_t *data, size_t len)
{
	size_t used = w->ops->on_plain(w, (const char *)data, len);
	if (is_open(w) && w->state == SMTP_WIRE_CLEAR && used < len && !w->wants_more)
		pause_wire(w);
	w->wants_more = 0;
	return used;
}

/* Give the session plaintext from TLS, and keep what it does not use. */
static void give_plain(struct smtp_wire *w, const char *data, size_t len)
{
	size_t used = w->ops->on_plain(w, data, len);
	if (!is_open(w) || used == len)
		return;
	char *late = malloc(len - used);
	if (!late) {
		smtp_wire_fail(w, "out of memory");
		return;
	}
	memcpy(late, data + used, len - used);
	w->late = late;
	w->late_len = (uint32_t)(len - used);
	pause_wire(w);
}

static void smtp_wire_shake(struct smtp_wire *w)
{
	int r = SSL_do_handshake(w->ssl);
	if (r == 1) {
		w->state = SMTP_WIRE_TLS;
		w->ops->on_shaken(w);
	} else if (SSL_get_error(w->ssl, r) != SSL_ERROR_WANT_READ) {
		stream_flush(&w->stream); /* the alert */
		smtp_wire_fail(w, client_tls_failure());
	}
}

static void smtp_wire_receive(struct smtp_wire *w)
{
	static char scratch[SMTP_WIRE_SCRATCH_LEN];
	int n = SSL_read(w->ssl, scratch, sizeof scratch);
	if (n > 0) {
		give_plain(w, scratch, (size_t)n);
		return;
	}
	switch (SSL_get_error(w->ssl, n)) {
	case SSL_ERROR_WANT_READ: break;
	case SSL_ERROR_ZERO_RETURN: smtp_wire_fail(w, "close_notify"); break;
	default: smtp_wire_fail(w, client_tls_failure());
	}
}

static void take_tls(struct smtp_wire *w)
{
	while (w->bio->in_len > 0 && is_open(w) && !w->paused) {
		if (w->state == SMTP_WIRE_SHAKING)
			smtp_wire_shake(w);
		else
			smtp_wire_receive(w);
	}
	while (is_open(w) && !w->paused && w->state == SMTP_WIRE_TLS && SSL_pending(w->ssl) > 0)
		smtp_wire_receive(w);
}

static size_t on_wire_data(struct stream *s, uint8_t *data, size_t len)
{
	struct smtp_wire *w = container_of(s, struct smtp_wire, stream);
	size_t used = w->state == SMTP_WIRE_CLEAR ? take_clear(w, data, len) : 0;
	if (!is_open(w) || w->state == SMTP_WIRE_CLEAR)
		return used;
	w->bio->in = data + used;
	w->bio->in_len = len - used;
	take_tls(w);
	size_t left = w->bio->in_len;
	w->bio->in_len = 0; /* the rest stays in the stream */
	return is_open(w) ? len - left : len;
}

static void on_wire_end(struct stream *s, enum stream_end end, int uv_error)
{
	smtp_wire_fail(container_of(s, struct smtp_wire, stream), end == STREAM_EOF ? "end" : uv_strerror(uv_error));
}

static void on_wire_written(struct stream *s, size_t len)
{
	struct smtp_wire *w = container_of(s, struct smtp_wire, stream);
	if (is_open(w) && w->ops->on_written)
		w->ops->on_written(w);
}

static void on_wire_connected(struct stream *s, int uv_error)
{
	struct smtp_wire *w = container_of(s, struct smtp_wire, stream);
	if (uv_error == 0)
		stream_read_start(s);
	w->ops->on_connected(w, uv_error);
}

static void on_wire_closed(struct stream *s)
{
	struct smtp_wire *w = container_of(s, struct smtp_wire, stream);
	free(w->late);
	w->late = NULL;
	w->late_len = 0;
	w->ops->on_closed(w);
}

static const struct stream_ops stream_ops = {
	.on_data = on_wire_data,
	.on_end = on_wire_end,
	.on_written = on_wire_written,
	.on_connected = on_wire_connected,
	.on_closed = on_wire_closed,
};

static void smtp_wire_begin(struct smtp_wire *w, const struct smtp_wire_ops *ops)
{
	w->ops = ops;
	w->state = SMTP_WIRE_CLEAR;
	w->paused = w->wants_more = 0;
	w->ssl = NULL;
	w->bio = NULL;
}

int smtp_wire_connect(struct smtp_wire *w, struct worker *worker, const struct smtp_wire_ops *ops,
	const struct sockaddr *to, const struct sockaddr *from)
{
	smtp_wire_begin(w, ops);
	return stream_connect(&w->stream, worker, &stream_ops, to, from);
}

int smtp_wire_open(struct smtp_wire *w, struct worker *worker, const struct smtp_wire_ops *ops, int fd)
{
	smtp_wire_begin(w, ops);
	int r = stream_open_fd(&w->stream, worker, &stream_ops, fd);
	if (r == 0)
		stream_read_start(&w->stream);
	return r;
}

void smtp_wire_start_tls(struct smtp_wire *w, SSL *ssl, struct stream_bio *bio)
{
	w->ssl = ssl;
	w->bio = bio;
	w->bio->in_len = 0;
	w->state = SMTP_WIRE_SHAKING;
	if (!SSL_is_server(ssl))
		smtp_wire_shake(w);
}

int smtp_wire_write(struct smtp_wire *w, const void *data, size_t len)
{
	if (w->state == SMTP_WIRE_CLEAR)
		return stream_write(&w->stream, data, len);
	return len == 0 || SSL_write(w->ssl, data, (int)len) > 0 ? 0 : -1;
}

void smtp_wire_go_on(struct smtp_wire *w)
{
	char *late = w->late;
	uint32_t len = w->late_len;
	if (!w->paused || !is_open(w))
		return;
	w->paused = 0;
	w->late = NULL;
	w->late_len = 0;
	if (late)
		give_plain(w, late, len);
	free(late);
	if (!is_open(w) || w->paused)
		return;
	stream_read_start(&w->stream);
	if (w->state == SMTP_WIRE_TLS)
		take_tls(w);
}

void smtp_wire_close(struct smtp_wire *w, enum smtp_wire_close how)
{
	if (!is_open(w))
		return;
	bool tls = w->state == SMTP_WIRE_TLS;
	w->state = SMTP_WIRE_CLOSING;
	if (how == SMTP_WIRE_IN_ORDER && tls)
		SSL_shutdown(w->ssl);
	stream_flush(&w->stream);
	if (how == SMTP_WIRE_BY_RESET)
		stream_abort(&w->stream);
	else
		stream_close(&w->stream);
}
