/* onward.c: the connection's states, its time limits, and TLS between the stream and the dialogue. */
#include "smtpproxy/outward/onward.h"

#include <assert.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "proto/proxy_header.h"

#define QUIT_MS     5000u
#define PLAIN_CHUNK 4096u
#define TO(state)   (1u << ONWARD_##state)

static const uint8_t may_move_to[] = {
	[ONWARD_CONNECTING] = TO(GREETING) | TO(CLOSING),
	[ONWARD_GREETING] = TO(SHAKING) | TO(IDLE) | TO(QUITTING) | TO(CLOSING),
	[ONWARD_SHAKING] = TO(GREETING) | TO(CLOSING),
	[ONWARD_IDLE] = TO(RENEWING) | TO(LEASED) | TO(QUITTING) | TO(CLOSING),
	[ONWARD_RENEWING] = TO(IDLE) | TO(QUITTING) | TO(CLOSING),
	[ONWARD_LEASED] = TO(IDLE) | TO(CLOSING),
	[ONWARD_QUITTING] = TO(CLOSING),
	[ONWARD_CLOSING] = 0,
};

static void onward_move(struct onward *o, enum onward_state to)
{
	assert(may_move_to[o->state] & 1u << to);
	o->state = (uint8_t)to;
}

/* Ending */

static void log_end(const struct onward *o, const char *event, const char *cause)
{
	const char *said = greeting_said(&o->greeting);
	char text[ADDRESS_TEXT_MAX];
	log_event(LOG_INFO, NULL, event, said[0] ? "to=%s cause=%s said=%s" : "to=%s cause=%s",
		address_format((const struct sockaddr *)&o->route->to, text), cause, said);
}

/* If the receiver cannot mistake a part for a whole, it gets a FIN. */
static void close_as(struct onward *o, void (*how)(struct stream *s))
{
	onward_move(o, ONWARD_CLOSING);
	deadline_cancel(&o->deadline);
	how(&o->stream);
}

/* The first 4xx counts as a refusal: the receiver limits connections, or is overloaded. */
static void onward_refuse(struct onward *o, enum onward_refusal refusal, const char *cause)
{
	log_end(o, "receiver refused", cause);
	close_as(o, stream_close);
	o->ops->on_refused(o, refusal);
}

static void onward_give_up(struct onward *o, enum smtp_own why)
{
	log_end(o, "receiver not usable", smtp_own_reply(why)->text);
	o->home->counters->connections_failed++;
	close_as(o, stream_close);
	o->ops->on_over(o, why);
}

/* The receiver ended it, or something took too long (@why). */
static void onward_lose(struct onward *o, enum smtp_own why, const char *cause)
{
	const enum onward_state before = (enum onward_state)o->state;
	const struct onward_user *user = o->user;
	switch (before) {
	case ONWARD_CONNECTING:
	case ONWARD_GREETING:
		o->home->counters->connections_failed++;
		onward_refuse(o, ONWARD_NOT_REACHED, cause);
		break;
	case ONWARD_SHAKING:
		o->home->counters->handshakes_failed++;
		log_end(o, "handshake with a receiver failed", cause);
		onward_give_up(o, o->demand.set ? SMTP_OWN_NOT_PROVEN : SMTP_OWN_BACKEND_NO_TLS);
		break;
	case ONWARD_IDLE:
	case ONWARD_RENEWING:
		close_as(o, stream_close);
		o->ops->on_left(o);
		break;
	case ONWARD_LEASED:
		log_end(o, "receiver lost", cause);
		close_as(o, stream_abort);
		o->user = NULL;
		user->on_lost(o->user_ctx, why);
		break;
	case ONWARD_QUITTING: close_as(o, stream_close); break;
	case ONWARD_CLOSING: break;
	}
}

static void on_onward_deadline(struct deadline *d)
{
	struct onward *o = container_of(d, struct onward, deadline);
	if (o->state != ONWARD_IDLE) {
		onward_lose(o, SMTP_OWN_BACKEND_LOST, "it took too long");
		return;
	}
	onward_quit(o);
	o->ops->on_left(o);
}

void onward_expect(struct onward *o, uint32_t ms)
{
	if (ms)
		deadline_set(o->home->worker, &o->deadline, ms);
	else
		deadline_cancel(&o->deadline);
}

/* Output */

static int onward_say(struct onward *o, const void *data, size_t len)
{
	if (!o->tls)
		return stream_write(&o->stream, data, len);
	return onward_tls_write(o->tls, data, len) < 0 ? -1 : onward_tls_flush(o->tls, &o->stream);
}

int onward_write(struct onward *o, const void *data, size_t len)
{
	assert(o->state == ONWARD_LEASED);
	return onward_say(o, data, len);
}

size_t onward_pending(const struct onward *o)
{
	return stream_pending(&o->stream);
}

size_t onward_unconfirmed(const struct onward *o)
{
	int queued = 0;

	if (ioctl(stream_fd(&o->stream), SIOCOUTQ, &queued) < 0)
		queued = 0;
	return onward_pending(o) + (size_t)queued;
}

/* The greeting */

static void onward_settle(struct onward *o)
{
	onward_move(o, ONWARD_IDLE);
	onward_expect(o, 0);
	o->taken = 1;
	o->ops->on_ready(o);
}

static void note_shake(struct onward *o, enum onward_tls_state state)
{
	static const uint8_t as[] = {
		[ONWARD_TLS_SHAKES] = ONWARD_SHAKE_LOST,
		[ONWARD_TLS_OPEN] = ONWARD_SHAKE_WORKED,
		[ONWARD_TLS_ENDED] = ONWARD_SHAKE_LOST,
		[ONWARD_TLS_FAILED] = ONWARD_SHAKE_FAILED,
		[ONWARD_TLS_STARVED] = ONWARD_SHAKE_NONE,
	};
	if (o->state == ONWARD_SHAKING)
		o->shake = as[state];
}

static void onward_start_tls(struct onward *o)
{
	const struct onward_demand *demand = &o->demand;
	const char *name = demand->tls == SMTPPROXY_TLS_VERIFY ? demand->name : NULL;
	onward_move(o, ONWARD_SHAKING);
	if (demand->tls == SMTPPROXY_TLS_VERIFY && !name) { /* no certificate could match */
		onward_give_up(o, SMTP_OWN_BACKEND_NO_TLS);
		return;
	}
	o->tls = onward_tls_create(o->home->tls, name, demand->set);
	if (!o->tls || onward_tls_flush(o->tls, &o->stream) < 0)
		onward_give_up(o, SMTP_OWN_BACKEND_NO_TLS);
	else
		note_shake(o, onward_tls_state(o->tls));
}

static void refuse_name(struct onward *o)
{
	log_end(o, "receiver refused a name", smtp_own_reply(o->greeting.why)->text);
	o->home->counters->names_refused++;
	onward_quit(o);
	o->ops->on_name_refused(o, o->greeting.why);
}

static void on_greeting_event(struct onward *o, enum greeting_event event, size_t left)
{
	switch (event) {
	case GREETING_ON_MORE: break;
	case GREETING_ON_READY: onward_settle(o); break;
	case GREETING_ON_TLS:
		if (left > 0) /* in clear, and meant to be read behind the handshake */
			onward_give_up(o, SMTP_OWN_BACKEND_BROKEN);
		else
			onward_start_tls(o);
		break;
	case GREETING_ON_REFUSED:
		o->home->counters->connections_refused++;
		onward_refuse(o, ONWARD_REFUSED_BY_REPLY, "it said 4xx");
		break;
	case GREETING_ON_NAME: refuse_name(o); break;
	case GREETING_ON_OVER: onward_give_up(o, o->greeting.why); break;
	}
}

static size_t onward_greet(struct onward *o, const char *in, size_t len)
{
	uint8_t out[GREETING_OUT_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	size_t taken;
	enum greeting_event event = greeting_read(&o->greeting, in, len, &taken, &w);
	const ptrdiff_t out_len = wire_writer_len(&w);
	if (out_len > 0) {
		onward_expect(o, o->home->conf->outward.command_ms);
		onward_say(o, out, (size_t)out_len);
	}
	on_greeting_event(o, event, len - taken);
	return taken;
}

static bool is_greeting(const struct onward *o)
{
	return o->state == ONWARD_GREETING || o->state == ONWARD_RENEWING;
}

/* Whoever the reply is for. It is counted even if nobody waits for it. */
static void onward_hear(struct onward *o, const char *in, size_t len)
{
	struct smtp_reply_line line;
	size_t used = 0, taken;
	for (int r = SMTP_REPLY_NONE; used < len && r >= 0; used += taken) {
		r = smtp_reply_read(&o->heard, in + used, len - used, &taken, &line);
		if (r == SMTP_REPLY_DONE)
			replies_count(o->home->replies, o->receiver, line.code, worker_now_ms(o->home->worker));
	}
}

/* Bytes of an idle receiver are a 421 before it closes. */
static void take_plain(struct onward *o, const char *in, size_t len)
{
	size_t used = 0;
	onward_hear(o, in, len);
	while (used < len && is_greeting(o))
		used += onward_greet(o, in + used, len - used);
	if (used == len || o->state == ONWARD_CLOSING || o->state == ONWARD_QUITTING)
		return;
	if (o->state == ONWARD_LEASED)
		o->user->on_reply(o->user_ctx, in + used, len - used);
	else
		onward_lose(o, SMTP_OWN_BACKEND_LOST, "it spoke without being asked");
}

/* Input */

static void onward_shaken(struct onward *o)
{
	uint8_t out[GREETING_OUT_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	o->home->counters->handshakes++;
	onward_move(o, ONWARD_GREETING);
	greeting_secured(&o->greeting, &w);
	onward_expect(o, o->home->conf->outward.command_ms);
	onward_say(o, out, (size_t)wire_writer_len(&w));
}

static void onward_take_sealed(struct onward *o, const uint8_t *in, size_t len)
{
	uint8_t plain[PLAIN_CHUNK];
	size_t plain_len;
	const enum onward_tls_state state = onward_tls_take(o->tls, in, len);
	note_shake(o, state);
	onward_tls_flush(o->tls, &o->stream);
	if (state == ONWARD_TLS_OPEN && o->state == ONWARD_SHAKING)
		onward_shaken(o);
	while (o->state != ONWARD_CLOSING && (plain_len = onward_tls_read(o->tls, plain, sizeof plain)) > 0)
		take_plain(o, (const char *)plain, plain_len);
	if (o->state == ONWARD_CLOSING || onward_tls_state(o->tls) < ONWARD_TLS_ENDED)
		return;
	onward_lose(o, SMTP_OWN_BACKEND_LOST,
		onward_tls_state(o->tls) == ONWARD_TLS_ENDED ? "it ended" : onward_tls_failure(o->tls));
}

static size_t on_onward_data(struct stream *s, uint8_t *data, size_t len)
{
	struct onward *o = container_of(s, struct onward, stream);
	if (o->tls)
		onward_take_sealed(o, data, len);
	else
		take_plain(o, (const char *)data, len);
	return len;
}

static void on_onward_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct onward *o = container_of(s, struct onward, stream);
	if (uv_error == UV_ENOMEM || uv_error == UV_ENOBUFS)
		note_shake(o, ONWARD_TLS_STARVED);
	onward_lose(o, SMTP_OWN_BACKEND_LOST, end == STREAM_EOF ? "it ended" : error_text(uv_error));
}

static void on_onward_written(struct stream *s, size_t len)
{
	struct onward *o = container_of(s, struct onward, stream);
	if (o->state == ONWARD_LEASED)
		o->user->on_room(o->user_ctx);
}

/* The addresses are those of this connection: the unique id is what counts. */
static void say_header(struct onward *o)
{
	struct proxy_header h = {
		.version = 2, .command = PROXY_PROXIED, .unique_id = o->route->unique_id, .unique_id_len = ONWARD_ID_LEN
	};
	const struct sockaddr *to = (const struct sockaddr *)&o->route->to;
	struct sockaddr_storage from = { 0 };
	socklen_t from_len = sizeof from;
	uint8_t out[128];

	getsockname(stream_fd(&o->stream), (struct sockaddr *)&from, &from_len);
	h.family = address_bytes((const struct sockaddr *)&from, h.source) == 4 ? PROXY_TCP4 : PROXY_TCP6;
	h.source_port = address_port((const struct sockaddr *)&from);
	address_bytes(to, h.destination);
	h.destination_port = address_port(to);
	stream_write(&o->stream, out, (size_t)proxy_header_write(&h, out, sizeof out)); /* a failure comes as on_end */
}

static void on_onward_connected(struct stream *s, int uv_error)
{
	struct onward *o = container_of(s, struct onward, stream);
	if (uv_error) {
		onward_lose(o, SMTP_OWN_BACKEND_UNREACHABLE, error_text(uv_error));
		return;
	}
	onward_move(o, ONWARD_GREETING);
	onward_expect(o, o->home->conf->outward.banner_ms);
	if (o->route->head == ONWARD_HEADED)
		say_header(o);
	stream_read_start(s);
}

static void on_onward_closed(struct stream *s)
{
	struct onward *o = container_of(s, struct onward, stream);
	onward_tls_destroy(o->tls);
	greeting_end(&o->greeting);
	tlsa_set_drop(o->demand.set);
	o->ops->on_closed(o);
	free(o);
}

static const struct stream_ops stream_ops = {
	.on_data = on_onward_data,
	.on_end = on_onward_end,
	.on_written = on_onward_written,
	.on_connected = on_onward_connected,
	.on_closed = on_onward_closed,
};

bool onward_is_too_clear(const struct onward *o)
{
	return o->home->conf->outward.keep_tls == CONF_ON && !o->tls && o->route->tls != SMTPPROXY_TLS_NONE;
}

int onward_open(struct onward *o, const struct outward_home *home, const struct onward_ops *ops,
	const struct onward_route *route, const struct sockaddr *source, struct smtp_span name)
{
	char text[ADDRESS_TEXT_MAX];
	o->home = home;
	o->ops = ops;
	o->route = route;
	o->deadline.fn = on_onward_deadline;
	smtp_reply_begin(&o->heard, o->heard_line, sizeof o->heard_line);
	if (greeting_begin(&o->greeting, o->demand.tls, name) < 0)
		return UV_ENOMEM;
	const struct sockaddr *to = (const struct sockaddr *)&route->to;
	replies_name(route->name ? route->name : address_format(to, text), o->receiver);
	int r = route->as.ss_family == AF_UNSPEC ? stream_connect(&o->stream, home->worker, &stream_ops, to, source)
						 : stream_connect_as(&o->stream, home->worker, &stream_ops, to,
							   (const struct sockaddr *)&route->as);
	if (r < 0) {
		greeting_end(&o->greeting);
		return r;
	}
	home->counters->connections++;
	onward_expect(o, home->conf->outward.connect_ms);
	return 0;
}

/* Leases */

void onward_renew(struct onward *o, struct smtp_span name)
{
	uint8_t out[GREETING_OUT_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	if (greeting_renew(&o->greeting, name, &w) < 0) {
		onward_expect(o, 1); /* no memory: it leaves, as one that nobody used for long */
		return;
	}
	onward_move(o, ONWARD_RENEWING);
	onward_expect(o, o->home->conf->outward.command_ms);
	onward_say(o, out, (size_t)wire_writer_len(&w));
}

void onward_forget_name(struct onward *o)
{
	o->greeting.name[0] = '\0';
}

void onward_lease(struct onward *o, const struct onward_user *user, void *ctx)
{
	onward_move(o, ONWARD_LEASED);
	onward_expect(o, 0);
	o->user = user;
	o->user_ctx = ctx;
	o->messages++;
}

void onward_release(struct onward *o)
{
	onward_move(o, ONWARD_IDLE);
	onward_expect(o, 0);
	onward_resume(o);
	o->user = NULL;
}

void onward_abort(struct onward *o)
{
	assert(o->state == ONWARD_LEASED);
	o->user = NULL;
	close_as(o, stream_abort);
}

void onward_quit(struct onward *o)
{
	onward_move(o, ONWARD_QUITTING);
	onward_expect(o, QUIT_MS);
	onward_say(o, "QUIT\r\n", strlen("QUIT\r\n"));
}

void onward_close(struct onward *o)
{
	assert(o->state != ONWARD_LEASED);
	if (o->state != ONWARD_CLOSING)
		close_as(o, stream_close);
}

void onward_pause(struct onward *o)
{
	stream_read_stop(&o->stream);
}

void onward_resume(struct onward *o)
{
	stream_read_start(&o->stream);
}
