/* direct.c: TCP connections of clients straight to the agent. The connection gets whole records, as RAgent would
 * send them, and its output goes to the client unchanged.
 */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/limits/admission.h"
#include "net/memory/container_of.h"
#include "net/socket/endpoints.h"
#include "proto/first_bytes.h"
#include "proto/proxy_header.h"
#include "sslagent/carrier/direct.h"
#include "sslagent/connection/connection.h"
#include "sslagent/counters.h"
#include "sslagent/tls/tls_contexts.h"

#define DIRECT_READ_MAX (64u * 1024u)
#define ASKED_GRACE_MS  2000u /* a connection that was asked to end has some time for it */

static struct direct *direct_of(struct stream *s)
{
	return container_of(s, struct direct, stream);
}

static void direct_close(struct direct *d)
{
	d->state = DIRECT_CLOSED;
	deadline_cancel(&d->deadline);
	if (stream_pending(&d->stream) > 0) /* a FIN would say that the client has all */
		stream_reset_on_close(&d->stream, true);
	stream_close(&d->stream);
}

void direct_abort(struct direct *d)
{
	d->state = DIRECT_CLOSED;
	deadline_cancel(&d->deadline);
	stream_abort(&d->stream);
}

/* A slow client first takes the waiting bytes. */
static void linger_on(struct direct *d)
{
	deadline_set(d->stream.worker, &d->deadline, stream_pending(&d->stream) ? DISCARD_MS : DISCARD_PAUSE_MS);
}

void direct_linger(struct direct *d, enum discard_of who)
{
	d->state = DIRECT_LINGERING;
	d->discard_of = (uint8_t)who;
	d->lingers_since_ms = worker_now_ms(d->stream.worker);
	stream_shutdown(&d->stream);
	stream_read_start(&d->stream);
	linger_on(d);
}

static void direct_discard(struct direct *d, size_t len)
{
	const uint64_t ms = worker_now_ms(d->stream.worker) - d->lingers_since_ms;

	d->discarded += len;
	if (discard_goes_on((enum discard_of)d->discard_of, d->discarded, ms))
		linger_on(d);
	else
		direct_close(d);
}

/* --- as a carrier --- */

static uint8_t *direct_carrier_reserve(struct carrier *c, size_t cap)
{
	return stream_reserve(&((struct direct *)c)->stream, cap);
}

static void direct_carrier_send(struct carrier *c, size_t len, uint8_t flags)
{
	stream_commit(&((struct direct *)c)->stream, len);
}

static void direct_carrier_consumed(struct carrier *c, const struct frame_consumed *consumed, uint8_t flags)
{
	/* only a successor would use these, and there is none */
}

static void direct_carrier_taken(struct carrier *c)
{
	struct direct *d = (struct direct *)c;

	if (d->state == DIRECT_SERVING)
		stream_read_start(&d->stream);
}

static void direct_carrier_fin(struct carrier *c, uint8_t flags)
{
	stream_shutdown(&((struct direct *)c)->stream);
}

static void direct_carrier_end(struct carrier *c, enum end_reason reason, enum carrier_end how)
{
	struct direct *d = (struct direct *)c;

	direct_log_end(d, reason, how == CARRIER_ABORT ? "reset" : "fin");
	d->connection = NULL;
	/* law 8: who may not send FIN is reset */
	if (how == CARRIER_ABORT)
		direct_abort(d);
	else
		direct_linger(d, DISCARD_OF_CLIENT);
}

static const struct carrier_ops direct_carrier = {
	.reserve = direct_carrier_reserve,
	.send = direct_carrier_send,
	.consumed = direct_carrier_consumed,
	.fin = direct_carrier_fin,
	.end = direct_carrier_end,
	.taken = direct_carrier_taken,
};

/* --- from the client --- */

void direct_refuse_saying(struct direct *d, enum end_reason reason, const void *words, size_t len)
{
	bool told = len && stream_write(&d->stream, words, len) == 0;

	count(COUNT_DIRECT_REFUSED);
	direct_log_end(d, reason, told ? "fin" : "reset");
	if (told)
		direct_linger(d, DISCARD_OF_STRANGER);
	else
		direct_abort(d);
}

/* A client that speaks another protocol is told so, if there are words for that. Text behind STARTTLS was injected,
 * and gets no answer in clear (RFC 3207 4.2). */
static void refuse_unless_tls(struct direct *d, enum first_bytes what)
{
	if (first_bytes_is_text(what) && direct_begins_in_clear(d->listener)) {
		count(COUNT_STARTTLS_INJECTIONS);
		direct_refuse(d, END_INJECTION);
		return;
	}

	size_t len;
	const void *answer = first_bytes_answer(what, &len);

	count(what == FIRST_BYTES_HTTP ? COUNT_DIRECT_PLAIN_HTTP : COUNT_DIRECT_NOT_TLS);
	direct_refuse_saying(d, first_bytes_reason(what), answer, len);
}

static void direct_address(struct sockaddr_storage *out, const uint8_t *bytes, enum proxy_family family, uint16_t port)
{
	struct client_address a = { .len = family == PROXY_TCP4 ? 4 : 16 };

	memcpy(a.bytes, bytes, a.len);
	endpoint_sockaddr(&a, port, out);
}

void direct_await_handshake(struct direct *d)
{
	d->state = DIRECT_FIRST_RECORD;
	deadline_set(d->stream.worker, &d->deadline, d->listener->home->connections->conf->limits.handshake_timeout_ms);
}

/* Until it is closed, it holds a place of the total. Its source has no share left, so it is closed at once. */
static void direct_refuse_source(struct direct *d)
{
	uint8_t words[DIRECT_WORDS_MAX];

	count(COUNT_DIRECT_REFUSED);
	direct_log_end(d, END_LIMIT_SOURCE, "reset");
	if (discard_behind_words(stream_fd(&d->stream), words, direct_preamble_full(d->listener, words)))
		direct_close(d);
	else
		direct_abort(d);
}

/* The client's address is known: does the limit of sources admit it? */
static void client_known(struct direct *d)
{
	d->source.len = (uint8_t)address_bytes((const struct sockaddr *)&d->client, d->source.bytes);
	if (carrier_home_blocks(d->listener->home, &d->source)) {
		direct_refuse(d, END_OPERATOR);
		return;
	}
	if (admission_enter_source(d->listener->home->admission, &d->source) < 0) {
		direct_refuse_source(d);
		return;
	}
	d->source_state = SOURCE_COUNTED;
	if (direct_begins_in_clear(d->listener))
		direct_preamble_begin(d);
	else
		d->state = DIRECT_FIRST_RECORD;
}

static size_t direct_take_proxy_header(struct direct *d, const uint8_t *data, size_t len)
{
	struct proxy_header h;
	size_t taken = 0;
	int r = proxy_header_parse(data, len, &h, &taken);

	if (r == PROXY_INCOMPLETE)
		return 0;
	if (r < 0) {
		direct_refuse(d, END_PROXY_HEADER_BAD);
		return len;
	}
	if (h.command == PROXY_PROXIED && (h.family == PROXY_TCP4 || h.family == PROXY_TCP6)) {
		direct_address(&d->client, h.source, h.family, h.source_port);
		direct_address(&d->server, h.destination, h.family, h.destination_port);
	}
	client_known(d);
	return d->state == DIRECT_FIRST_RECORD || d->state == DIRECT_PREAMBLE ? taken : len;
}

static void begin_connection(struct direct *d)
{
	struct carrier_home *home = d->listener->home;
	const struct tls_listener *listener =
		tls_listener_find(home->connections->contexts, d->listener->conf->listener);
	struct endpoints known = { 0 };
	Cssl__Endpoints endpoints;
	struct connection_id id;
	enum end_reason why;

	endpoints_from_sockets(&known, (const struct sockaddr *)&d->client, (const struct sockaddr *)&d->server);
	endpoints_message(&known, &endpoints);
	randombytes_buf(id.bytes, sizeof id.bytes);
	d->connection = connection_open(
		home->connections, &d->carrier, listener, &id, CSSL__LINK_OPEN__DISPOSITION__KEEP, &endpoints, &why);
	if (!d->connection) {
		direct_refuse(d, why);
		return;
	}
	d->state = DIRECT_SERVING;
}

static uint32_t idle_ms(const struct direct *d)
{
	return d->listener->home->connections->conf->limits.idle_timeout_ms;
}

void direct_watch_silence(struct direct *d)
{
	d->silence = DIRECT_NOT_SILENT;
	if (idle_ms(d))
		deadline_set(d->stream.worker, &d->deadline, idle_ms(d));
	else
		deadline_cancel(&d->deadline);
}

/* The connection was active. Until the handshake has ended, the time limit of the handshake stays. */
static void direct_is_active(struct direct *d)
{
	if (!connection_is_handshaking(d->connection))
		direct_watch_silence(d);
}

/* Records that the connection cannot open yet wait there. Nothing more is read until it takes them. */
static void give_records(struct direct *d, const struct tls_record_batch *batch)
{
	connection_records(d->connection, batch->records, batch->count);
	if (d->state != DIRECT_SERVING)
		return;
	direct_is_active(d);
	if (connection_waiting(d->connection) > 0)
		stream_read_stop(&d->stream);
}

static bool takes_records(const struct direct *d)
{
	return d->state == DIRECT_SERVING && connection_waiting(d->connection) == 0;
}

/* Takes one batch at a time, until no whole record is left or the connection takes no more. A whole record must not
 * stay here, because it would wait for the client's next byte, which may never come. */
static size_t direct_take_records(struct direct *d, uint8_t *data, size_t len)
{
	struct tls_record_header bad;
	struct tls_record_batch batch;
	size_t used = 0;
	int r;

	do {
		r = tls_record_take(data + used, len - used, d->listener->home->connections->window_len, &batch, &bad);
		if (batch.count)
			give_records(d, &batch);
		used += batch.len;
	} while (r == 0 && batch.count && takes_records(d));
	if (r < 0 && d->state == DIRECT_SERVING) {
		const struct frame_violation v = { bad.type, bad.version, bad.length };
		connection_violation(d->connection, &v);
	}
	return used;
}

static size_t direct_on_data(struct stream *s, uint8_t *data, size_t len)
{
	struct direct *d = direct_of(s);
	size_t used = 0;

	if (d->state == DIRECT_PROXY_HEADER)
		used = direct_take_proxy_header(d, data, len);
	if (d->state == DIRECT_PREAMBLE)
		used += direct_preamble_read(d, data + used, len - used);
	if (d->state == DIRECT_FIRST_RECORD && used < len) {
		enum first_bytes what = first_bytes_judge(data + used, len - used);
		if (what == FIRST_BYTES_HANDSHAKE)
			begin_connection(d);
		else if (what != FIRST_BYTES_INCOMPLETE)
			refuse_unless_tls(d, what);
	}
	if (d->state == DIRECT_SERVING)
		return used + direct_take_records(d, data + used, len - used);
	if (d->state == DIRECT_LINGERING) {
		direct_discard(d, len);
		return len;
	}
	return used;
}

void direct_drop(struct direct *d, enum end_reason reason)
{
	struct connection *c = d->connection;

	if (c || d->state == DIRECT_PREAMBLE)
		direct_log_end(d, reason, reason == END_CLIENT_RESET || reason == END_OPERATOR ? "reset" : "fin");
	d->connection = NULL;
	direct_preamble_forget(d);
	if (c)
		connection_forget(c, reason);
	direct_close(d);
}

static void direct_on_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct direct *d = direct_of(s);

	if (d->state == DIRECT_PREAMBLE && end == STREAM_EOF) {
		direct_preamble_fin(d);
		return;
	}
	if (d->state == DIRECT_SERVING && end == STREAM_EOF) {
		connection_fin(d->connection);
		return;
	}
	direct_drop(d, END_CLIENT_RESET);
}

static void direct_on_written(struct stream *s, size_t len)
{
	struct direct *d = direct_of(s);

	d->drained += len;
	if (d->state == DIRECT_LINGERING)
		linger_on(d);
	if (d->state == DIRECT_PREAMBLE)
		direct_preamble_written(d);
	if (d->state == DIRECT_SERVING) {
		direct_is_active(d);
		const struct frame_accepted accepted = {
			.drained = d->drained > d->clear_len ? d->drained - d->clear_len : 0
		};
		connection_accepted(d->connection, &accepted);
	}
}

static void direct_on_closed(struct stream *s)
{
	struct direct *d = direct_of(s);

	direct_preamble_forget(d);
	LIST_REMOVE(d, entry);
	if (d->source_state == SOURCE_COUNTED)
		admission_leave_source(d->listener->home->admission, &d->source);
	admission_leave(d->listener->home->admission);
	free(d);
}

static const struct stream_ops direct_stream_ops = {
	.on_data = direct_on_data,
	.on_end = direct_on_end,
	.on_written = direct_on_written,
	.on_closed = direct_on_closed,
};

/* It may await a verdict, and then goes on for the longer limit. Last words that the client does not take have none. */
static void silent_too_long(struct direct *d)
{
	const enum end_reason reason = d->silence == DIRECT_ASKED ? END_BACKEND_TIMEOUT : END_IDLE_TIMEOUT;
	uint32_t end_ms = direct_conf(d->listener)->smtp.end_timeout_ms;

	if (d->state == DIRECT_PREAMBLE)
		direct_preamble_finish(d, reason);
	else
		connection_give_up(d->connection, reason);
	if (reason == END_BACKEND_TIMEOUT || (d->state != DIRECT_PREAMBLE && d->state != DIRECT_SERVING))
		return;
	if (d->connection && d->connection->state == CONNECTION_ENDING)
		end_ms = 0;
	d->silence = DIRECT_ASKED;
	deadline_set(d->stream.worker, &d->deadline,
		end_ms > idle_ms(d) + ASKED_GRACE_MS ? end_ms - idle_ms(d) : ASKED_GRACE_MS);
}

static void direct_on_deadline(struct deadline *deadline)
{
	struct direct *d = container_of(deadline, struct direct, deadline);

	if (d->state == DIRECT_SERVING && connection_is_handshaking(d->connection))
		connection_give_up(d->connection, END_HANDSHAKE_TIMEOUT);
	else if (d->state == DIRECT_PREAMBLE || d->state == DIRECT_SERVING)
		silent_too_long(d);
	else {
		if (d->state != DIRECT_LINGERING) /* no hello came, or no PROXY header */
			direct_log_end(d, END_HANDSHAKE_TIMEOUT, "fin");
		direct_close(d);
	}
}

static struct direct *direct_create(struct direct_listener *l, int fd, const struct sockaddr_storage *peer)
{
	struct direct *d = calloc(1, sizeof *d);

	if (!d) {
		close(fd);
		return NULL;
	}
	stream_open_accepted(&d->stream, l->home->connections->worker, &direct_stream_ops, fd);
	d->carrier.ops = &direct_carrier;
	d->listener = l;
	d->client = *peer;
	d->accepted_ms = worker_now_ms(d->stream.worker);
	stream_local(&d->stream, &d->server);
	LIST_INSERT_HEAD(&l->clients, d, entry);
	d->deadline.fn = direct_on_deadline;
	stream_set_read_max(&d->stream, DIRECT_READ_MAX);
	return d;
}

int direct_begin(struct direct_listener *l, int fd, const struct sockaddr_storage *peer)
{
	struct direct *d = direct_create(l, fd, peer);

	if (!d)
		return -1;
	deadline_set(d->stream.worker, &d->deadline, l->home->connections->conf->limits.handshake_timeout_ms);
	d->state = DIRECT_PROXY_HEADER;
	if (l->conf->proxy_protocol == CONF_OFF)
		client_known(d);
	else if (!address_nets_have(l->conf->trusted, l->conf->trusted_count, (const struct sockaddr *)peer))
		direct_refuse(d, END_PROXY_HEADER_BAD);
	if (d->state != DIRECT_CLOSED)
		stream_read_start(&d->stream);
	return 0;
}

void direct_finish_one(struct direct *d, enum direct_whom whom)
{
	if (whom == DIRECT_BLOCKED) {
		if (carrier_home_blocks(d->listener->home, &d->source)) {
			stream_reset_on_close(&d->stream, true);
			direct_drop(d, END_OPERATOR);
		}
	} else if (d->state == DIRECT_SERVING && (whom == DIRECT_ALL || connection_is_idle(d->connection)))
		connection_give_up(d->connection, END_SHUTTING_DOWN);
	else if (d->state == DIRECT_PREAMBLE)
		direct_preamble_finish(d, END_SHUTTING_DOWN);
	else if (d->state == DIRECT_PROXY_HEADER || d->state == DIRECT_FIRST_RECORD)
		direct_close(d);
}
