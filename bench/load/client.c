/* client.c: the steps of a pseudo client. Each callback checks the client's state, takes one step, and counts. */
#include "bench/load/client.h"

#include <assert.h>
#include <string.h>

#include "net/memory/container_of.h"

#define PAUSE_AFTER_FAILURE_MS 50u
#define TO(state)              (1u << (state))

static const uint16_t may_move_to[] = {
	[CLIENT_AWAY] = TO(CLIENT_CONNECTING) | TO(CLIENT_RETIRED),
	[CLIENT_CONNECTING] = TO(CLIENT_SHAKING) | TO(CLIENT_CLOSING),
	[CLIENT_SHAKING] = TO(CLIENT_TICKET) | TO(CLIENT_READY) | TO(CLIENT_CLOSING),
	[CLIENT_TICKET] = TO(CLIENT_READY) | TO(CLIENT_CLOSING),
	[CLIENT_ASKING] = TO(CLIENT_READY) | TO(CLIENT_CLOSING),
	[CLIENT_READY] = TO(CLIENT_ASKING) | TO(CLIENT_RESTING) | TO(CLIENT_CLOSING),
	[CLIENT_RESTING] = TO(CLIENT_CLOSING),
	[CLIENT_CLOSING] = TO(CLIENT_AWAY),
	[CLIENT_RETIRED] = 0,
};

static void client_move(struct client *c, enum client_state to)
{
	struct load_result *r = c->host->result;

	assert(may_move_to[c->state] & TO(to));
	r->resting += (to == CLIENT_RESTING) - (c->state == CLIENT_RESTING);
	r->retired += to == CLIENT_RETIRED;
	c->state = to;
}

/* Counting */

static void client_tally(struct client *c, enum load_count what)
{
	c->host->result->counts[what]++;
}

static void note_error(struct client *c, const char *step, const char *why)
{
	tally_note(c->host->result->errors, LOAD_ERRORS_MAX, step, why);
}

/* The step that began at step_ns is over; the next one begins. */
static void end_step(struct client *c, enum load_phase phase)
{
	uint64_t now = uv_hrtime();

	histogram_record(&c->host->result->phases[phase], now - c->step_ns);
	c->host->result->times.end_ns = now;
	c->step_ns = now;
}

/* All intended steps are done. */
static void end_whole(struct client *c)
{
	uint64_t now = uv_hrtime();

	histogram_record(&c->host->result->phases[LOAD_PHASE_FULL], now - c->intended_ns);
	c->host->result->times.end_ns = now;
}

static void expect_progress(struct client *c)
{
	deadline_set(c->host->worker, &c->deadline, c->host->options->timeout_ms);
}

/* Ending a connection */

static void client_drop(struct client *c)
{
	if (c->tls.alert != CLIENT_TLS_NO_ALERT) {
		client_tally(c, LOAD_ALERTS);
		c->host->result->alerts[c->tls.alert]++;
	}
	client_move(c, CLIENT_CLOSING);
	deadline_cancel(&c->deadline);
	stream_close(&c->stream);
}

void client_close(struct client *c)
{
	client_move(c, CLIENT_CLOSING);
	deadline_cancel(&c->deadline);
	SSL_shutdown(c->tls.ssl);
	stream_flush(&c->stream);
	stream_close(&c->stream);
}

void client_abort(struct client *c)
{
	if (c->state != CLIENT_AWAY && c->state != CLIENT_CLOSING && c->state != CLIENT_RETIRED)
		client_drop(c);
}

void client_retire(struct client *c)
{
	deadline_cancel(&c->deadline);
	client_move(c, CLIENT_RETIRED);
}

void client_pause(struct client *c, uint64_t ms)
{
	deadline_set(c->host->worker, &c->deadline, ms);
}

static void client_fail(struct client *c, enum load_count what, const char *step, const char *why)
{
	client_tally(c, what);
	note_error(c, step, why);
	client_drop(c);
}

/* The server or the network ended the connection. @between: the count if no request was open. */
static void fail_by_end(struct client *c, enum load_count between, const char *why)
{
	switch (c->state) {
	case CLIENT_SHAKING: client_fail(c, LOAD_HANDSHAKE_FAILED, "handshake", why); break;
	case CLIENT_TICKET: client_fail(c, LOAD_CUT, "ticket", why); break;
	case CLIENT_ASKING:
		client_fail(c, c->reply.progress == REPLY_NOTHING ? LOAD_UNANSWERED : LOAD_CUT,
			c->reply.progress == REPLY_NOTHING ? "request" : "answer", why);
		break;
	default: client_tally(c, between); client_drop(c);
	}
}

static void on_client_closed(struct stream *s)
{
	struct client *c = container_of(s, struct client, stream);

	client_tls_end(&c->tls);
	client_move(c, CLIENT_AWAY);
	if (c->after == CLIENT_PAUSES)
		client_pause(c, PAUSE_AFTER_FAILURE_MS);
	else
		c->host->on_free(c->host, c);
}

static void on_client_deadline(struct deadline *d)
{
	struct client *c = container_of(d, struct client, deadline);

	if (c->state == CLIENT_AWAY || c->state == CLIENT_READY)
		c->host->on_pause_end(c->host, c);
	else
		client_fail(
			c, LOAD_TIMEOUTS, "no progress", c->state == CLIENT_ASKING ? "answer" : "connect or handshake");
}

/* Requests and answers */

static void client_send_request(struct client *c)
{
	const struct load_options *o = c->host->options;
	const struct load_path *path = &o->paths[(c->number + c->asked++) % o->path_count];

	client_move(c, CLIENT_ASKING);
	c->requests++;
	c->step_ns = uv_hrtime();
	reply_begin(&c->reply, &path->expected);
	client_tally(c, LOAD_REQUESTS);
	if (SSL_write(c->tls.ssl, path->request, (int)path->request_len) <= 0)
		client_fail(c, LOAD_UNANSWERED, "request", client_tls_failure());
	else
		expect_progress(c);
}

/* The work of the connection is done: READY for more, or its end. */
static void end_unit(struct client *c, bool is_last)
{
	end_whole(c);
	if (c->state != CLIENT_READY)
		client_move(c, CLIENT_READY);
	deadline_cancel(&c->deadline);
	if (!is_last)
		c->host->on_free(c->host, c);
	else if (c->host->options->at_end == LOAD_HOLDS)
		client_move(c, CLIENT_RESTING);
	else
		client_close(c);
}

static void note_agent(struct client *c)
{
	const struct reply *r = &c->reply;

	if (r->agent_len == 0)
		return;
	tally_row(c->host->result->agents, LOAD_AGENTS_MAX, r->agent, r->agent_len)->count++;
	if (c->agent_len > 0 && (c->agent_len != r->agent_len || memcmp(c->agent, r->agent, r->agent_len) != 0))
		client_tally(c, LOAD_MOVED);
	memcpy(c->agent, r->agent, r->agent_len);
	c->agent_len = r->agent_len;
}

static void end_answer(struct client *c)
{
	const struct reply *r = &c->reply;
	uint64_t wanted = c->host->options->requests;

	client_tally(c, LOAD_ANSWERS);
	c->host->result->counts[LOAD_BYTES] += r->body_len;
	if (r->status / 100 != 2)
		client_tally(c, LOAD_OTHER_STATUS);
	else if (reply_length_is_wrong(r))
		client_tally(c, LOAD_WRONG_LENGTH);
	else if (r->bytes == REPLY_BYTES_WRONG)
		client_tally(c, LOAD_WRONG_BYTES);
	note_agent(c);
	end_unit(c, r->persistence == REPLY_LAST || (wanted > 0 && c->requests >= wanted));
}

static void on_plaintext(struct client *c, const uint8_t *data, size_t len)
{
	if (c->state != CLIENT_ASKING) {
		client_fail(c, LOAD_MALFORMED, "answer", "data that nobody asked for");
		return;
	}
	if (c->reply.progress == REPLY_NOTHING)
		end_step(c, LOAD_PHASE_FIRST_BYTE);
	switch (reply_feed(&c->reply, data, len)) {
	case REPLY_WHOLE: end_answer(c); break;
	case REPLY_MALFORMED: client_fail(c, LOAD_MALFORMED, "answer", "no HTTP/1.1"); break;
	default: break;
	}
}

/* The end of the connection may be the end of the answer. */
static bool is_answer_end(struct client *c)
{
	return c->state == CLIENT_ASKING && reply_end(&c->reply) == REPLY_WHOLE;
}

/* TLS */

/* A session that comes with or after the handshake. In TLS 1.3 it comes in a later record (RFC 8446 4.6.1). */
static bool session_is_due(const struct client *c)
{
	return c->host->options->mix.resumed > 0 && c->tls.sessions == 0 && SSL_version(c->tls.ssl) >= TLS1_3_VERSION;
}

static void end_handshake(struct client *c)
{
	int resumed = SSL_session_reused(c->tls.ssl);

	client_tally(c, resumed ? LOAD_RESUMED : LOAD_FULL);
	client_tls_tally_suite(c->tls.ssl, c->host->result->suites);
	end_step(c, resumed ? LOAD_PHASE_HANDSHAKE_RESUMED : LOAD_PHASE_HANDSHAKE_FULL);
	expect_progress(c);
	if (c->host->options->asks == LOAD_ASKS) {
		client_move(c, CLIENT_READY);
		client_send_request(c);
	} else if (session_is_due(c)) {
		client_move(c, CLIENT_TICKET);
	} else {
		end_unit(c, true);
	}
}

static void client_shake(struct client *c)
{
	int r = SSL_do_handshake(c->tls.ssl);

	if (r == 1)
		end_handshake(c);
	else if (SSL_get_error(c->tls.ssl, r) != SSL_ERROR_WANT_READ)
		client_fail(c, LOAD_HANDSHAKE_FAILED, "handshake", client_tls_failure());
}

static void client_receive(struct client *c)
{
	int n = SSL_read(c->tls.ssl, c->host->scratch, CLIENT_SCRATCH_LEN);

	if (n > 0) {
		on_plaintext(c, c->host->scratch, (size_t)n);
		return;
	}
	switch (SSL_get_error(c->tls.ssl, n)) {
	case SSL_ERROR_WANT_READ:
		if (c->state == CLIENT_TICKET && c->tls.sessions > 0)
			end_unit(c, true);
		break;
	case SSL_ERROR_ZERO_RETURN:
		if (is_answer_end(c))
			end_answer(c);
		else
			fail_by_end(c, LOAD_CLOSED, "close_notify");
		break;
	default: fail_by_end(c, LOAD_RESET, client_tls_failure());
	}
}

/* The stream */

static void on_client_connected(struct stream *s, int uv_error)
{
	struct client *c = container_of(s, struct client, stream);

	if (uv_error < 0) {
		note_error(c, "connect", uv_strerror(uv_error));
		c->after = CLIENT_PAUSES;
		client_drop(c);
		return;
	}
	client_tally(c, LOAD_CONNECTED);
	end_step(c, LOAD_PHASE_CONNECT);
	client_move(c, CLIENT_SHAKING);
	expect_progress(c);
	stream_read_start(s);
	client_shake(c);
}

static size_t on_client_data(struct stream *s, uint8_t *data, size_t len)
{
	struct client *c = container_of(s, struct client, stream);

	c->tls.wire.in = data;
	c->tls.wire.in_len = len;
	if (c->state != CLIENT_READY && c->state != CLIENT_RESTING)
		expect_progress(c);
	while (c->tls.wire.in_len > 0 && c->state != CLIENT_CLOSING) {
		if (c->state == CLIENT_SHAKING)
			client_shake(c);
		else
			client_receive(c);
	}
	return len;
}

static void on_client_end(struct stream *s, enum stream_end end, int uv_error)
{
	struct client *c = container_of(s, struct client, stream);

	if (end == STREAM_EOF && is_answer_end(c))
		end_answer(c);
	else if (end == STREAM_EOF)
		fail_by_end(c, LOAD_CLOSED_BARE, "end without close_notify");
	else
		fail_by_end(c, LOAD_RESET, uv_strerror(uv_error));
}

static const struct stream_ops ops = {
	.on_data = on_client_data,
	.on_end = on_client_end,
	.on_connected = on_client_connected,
	.on_closed = on_client_closed,
};

/* Beginning a connection */

static int client_begin(struct client *c)
{
	const struct load_options *o = c->host->options;
	const struct sockaddr_storage *to = &o->targets[(c->number + c->connections) % o->target_count];
	struct sockaddr_storage source;
	const struct sockaddr *from =
		source_ranges_get(&o->sources, c->number, &source) ? (const struct sockaddr *)&source : NULL;
	enum client_tls_offer offer =
		mix_offers(&o->mix, c->connections) ? CLIENT_TLS_OFFER_SESSION : CLIENT_TLS_OFFER_NOTHING;

	if (client_tls_begin(&c->tls, &c->host->tls, &c->stream, offer))
		return UV_ENOMEM;
	if (offer == CLIENT_TLS_OFFER_SESSION && c->tls.session)
		client_tally(c, LOAD_OFFERED);
	int r = stream_connect(&c->stream, c->host->worker, &ops, (const struct sockaddr *)to, from);
	if (r < 0)
		client_tls_end(&c->tls);
	return r;
}

static void connect_and_ask(struct client *c)
{
	c->step_ns = uv_hrtime();
	c->requests = 0;
	c->agent_len = 0;
	c->after = CLIENT_GOES_ON;
	reply_open(&c->reply);
	client_tally(c, LOAD_CONNECTIONS);
	int r = client_begin(c);
	c->connections++;
	if (r < 0) {
		note_error(c, "connect", uv_strerror(r));
		client_pause(c, PAUSE_AFTER_FAILURE_MS);
		return;
	}
	client_move(c, CLIENT_CONNECTING);
	expect_progress(c);
}

void client_go(struct client *c, uint64_t intended_ns)
{
	c->intended_ns = intended_ns;
	deadline_cancel(&c->deadline);
	if (c->state == CLIENT_AWAY)
		connect_and_ask(c);
	else
		client_send_request(c);
}

void client_init(struct client *c, struct client_host *host, uint64_t number)
{
	memset(c, 0, sizeof *c);
	c->host = host;
	c->number = number;
	c->deadline.fn = on_client_deadline;
	c->tls.alert = CLIENT_TLS_NO_ALERT;
}

void client_wipe(struct client *c)
{
	client_tls_wipe(&c->tls);
}
