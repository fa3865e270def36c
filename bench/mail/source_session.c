/* source_session.c: the connection's part of a session: connect, banner, EHLO, STARTTLS, QUIT, and how it ends. The
 * mail's part is source_transaction.c. */
#include "bench/mail/source_session.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/mail/source_transaction.h"
#include "net/memory/container_of.h"
#include "smtp/ehlo.h"

#define PAUSE_AFTER_FAILURE_MS 50u
#define TO(state)              (1u << (state))

static const uint16_t may_move_to[] = {
	[SOURCE_IS_AWAY] = TO(SOURCE_IS_CONNECTING) | TO(SOURCE_IS_RETIRED),
	[SOURCE_IS_CONNECTING] = TO(SOURCE_IS_SHAKING) | TO(SOURCE_IN_BANNER) | TO(SOURCE_IS_CLOSING),
	[SOURCE_IS_SHAKING] = TO(SOURCE_IN_BANNER) | TO(SOURCE_IN_EHLO) | TO(SOURCE_IS_CLOSING),
	[SOURCE_IN_BANNER] = TO(SOURCE_IN_EHLO) | TO(SOURCE_IS_READY) | TO(SOURCE_IS_CLOSING),
	[SOURCE_IN_EHLO] = TO(SOURCE_IN_STARTTLS) | TO(SOURCE_IS_READY) | TO(SOURCE_IS_CLOSING),
	[SOURCE_IN_STARTTLS] = TO(SOURCE_IS_SHAKING) | TO(SOURCE_IS_CLOSING),
	[SOURCE_IS_READY] = TO(SOURCE_IN_MAIL) | TO(SOURCE_IS_QUITTING) | TO(SOURCE_IS_CLOSING),
	[SOURCE_IN_MAIL] = TO(SOURCE_IN_RESET) | TO(SOURCE_IS_READY) | TO(SOURCE_IS_CLOSING),
	[SOURCE_IN_RESET] = TO(SOURCE_IS_READY) | TO(SOURCE_IS_CLOSING),
	[SOURCE_IS_QUITTING] = TO(SOURCE_IS_CLOSING),
	[SOURCE_IS_CLOSING] = TO(SOURCE_IS_AWAY),
	[SOURCE_IS_RETIRED] = 0,
};

void source_session_move(struct source_session *s, enum source_state to)
{
	assert(may_move_to[s->state] & TO(to));
	s->state = (uint8_t)to;
}

void source_session_count(struct source_session *s, enum source_count what)
{
	s->host->result->counts[what]++;
}

void source_session_end_step(struct source_session *s, enum source_phase phase)
{
	uint64_t now = uv_hrtime();
	histogram_record(&s->host->result->phases[phase], now - s->step_ns);
	s->host->result->times.end_ns = now;
	s->step_ns = now;
}

static void expect_progress(struct source_session *s)
{
	deadline_set(s->host->worker, &s->deadline, s->host->options->timeout_ms);
}

/* Ending */

static void source_session_drop(struct source_session *s, enum smtp_wire_close how)
{
	bool was_connecting = s->state == SOURCE_IS_CONNECTING;
	if (s->state == SOURCE_IS_CLOSING)
		return;
	source_session_move(s, SOURCE_IS_CLOSING);
	deadline_cancel(&s->deadline);
	smtp_wire_close(&s->wire, how);
	s->host->result->times.end_ns = uv_hrtime(); /* also of a run in which no step succeeds */
	if (was_connecting)
		s->host->on_connect_over(s->host);
}

/* The mail under way is over and was not taken. */
void source_session_fail_mail(struct source_session *s)
{
	if (!s->has_mail)
		return;
	s->has_mail = 0;
	s->tries = 0;
	source_session_count(s, SOURCE_FAILED);
	if (s->host->options->on_failure == SOURCE_GIVES_UP)
		s->host->on_give_up(s->host);
}

void source_session_fail(struct source_session *s, enum source_count what, const char *where, const char *why)
{
	if (s->state == SOURCE_IS_CLOSING)
		return;
	source_session_count(s, what);
	tally_note(s->host->result->errors, SOURCE_ERRORS_MAX, where, why);
	if (source_transaction_is_undecided(s))
		source_session_count(s, SOURCE_UNDECIDED);
	s->after = SOURCE_PAUSES;
	source_session_drop(s, SMTP_WIRE_BY_RESET);
	source_session_fail_mail(s);
}

/* The orderly end: a TCP reset in clear, as a load of many short connections would run out of ports otherwise. */
static void end_in_order(struct source_session *s)
{
	source_session_drop(s, s->wire.state == SMTP_WIRE_TLS ? SMTP_WIRE_IN_ORDER : SMTP_WIRE_BY_RESET);
}

static const char *source_session_place(const struct source_session *s)
{
	static const char *const names[] = {
		[SOURCE_IS_AWAY] = "away",
		[SOURCE_IS_CONNECTING] = "connect",
		[SOURCE_IS_SHAKING] = "handshake",
		[SOURCE_IN_BANNER] = "banner",
		[SOURCE_IN_EHLO] = "EHLO",
		[SOURCE_IN_STARTTLS] = "STARTTLS",
		[SOURCE_IS_READY] = "between mails",
		[SOURCE_IN_RESET] = "RSET",
		[SOURCE_IS_QUITTING] = "QUIT",
	};
	return s->state == SOURCE_IN_MAIL ? source_transaction_place(s) : names[s->state];
}

static void on_source_end(struct smtp_wire *w, const char *why)
{
	struct source_session *s = container_of(w, struct source_session, wire);
	if (s->state == SOURCE_IS_QUITTING) /* 221 was not worth waiting for */
		source_session_drop(s, SMTP_WIRE_BY_RESET);
	else
		source_session_fail(s, s->state == SOURCE_IS_SHAKING ? SOURCE_HANDSHAKE_FAILED : SOURCE_LOST,
			source_session_place(s), why);
}

static void on_source_closed(struct smtp_wire *w)
{
	struct source_session *s = container_of(w, struct source_session, wire);
	client_tls_end(&s->tls);
	free(s->reader.buf);
	s->reader.buf = NULL;
	source_session_move(s, SOURCE_IS_AWAY);
	if (s->after == SOURCE_PAUSES)
		source_session_pause(s, PAUSE_AFTER_FAILURE_MS);
	else
		s->host->on_free(s->host, s);
}

static void on_source_deadline(struct deadline *d)
{
	struct source_session *s = container_of(d, struct source_session, deadline);
	if (s->state == SOURCE_IS_AWAY || s->state == SOURCE_IS_READY)
		s->host->on_pause_end(s->host, s);
	else
		source_session_fail(s, SOURCE_TIMEOUTS, source_session_place(s), "no progress");
}

/* Saying */

void source_session_say(struct source_session *s, const char *line, size_t len)
{
	if (s->host->options->verbosity == SOURCE_SAYS_DIALOGUE)
		fprintf(stderr, "%llu > %.*s", (unsigned long long)s->number, (int)len, line);
	expect_progress(s);
	if (smtp_wire_write(&s->wire, line, len) < 0)
		source_session_fail(s, SOURCE_LOST, source_session_place(s), "cannot write");
}

static void say_word(struct source_session *s, enum source_state state, const char *line)
{
	source_session_move(s, state);
	source_session_say(s, line, strlen(line));
}

static void source_session_say_hello(struct source_session *s)
{
	char line[300];
	const struct source_options *o = s->host->options;
	static const char *const words[] = { [SOURCE_EHLO] = "EHLO", [SOURCE_HELO] = "HELO", [SOURCE_LHLO] = "LHLO" };

	snprintf(line, sizeof line, "%s %.255s\r\n", words[o->greeting], o->name);
	s->offers_mask = 0;
	say_word(s, SOURCE_IN_EHLO, line);
}

void source_session_quit(struct source_session *s)
{
	say_word(s, SOURCE_IS_QUITTING, "QUIT\r\n");
}

void source_session_reset(struct source_session *s)
{
	say_word(s, SOURCE_IN_RESET, "RSET\r\n");
}

/* READY for the mail that it has, for the next one, or to leave. */
void source_session_rest(struct source_session *s)
{
	uint64_t wanted = s->host->options->per_connection;
	source_session_move(s, SOURCE_IS_READY);
	deadline_cancel(&s->deadline);
	if (s->has_mail)
		source_transaction_begin(s);
	else if (wanted > 0 && s->mails >= wanted)
		source_session_quit(s);
	else
		s->host->on_free(s->host, s);
}

/* Hearing */

static void source_session_start_tls(struct source_session *s)
{
	const struct source_options *o = s->host->options;
	enum client_tls_offer offer =
		mix_offers(&o->mix, s->connections - 1) ? CLIENT_TLS_OFFER_SESSION : CLIENT_TLS_OFFER_NOTHING;
	source_session_move(s, SOURCE_IS_SHAKING);
	if (client_tls_begin(&s->tls, &s->host->tls, &s->wire.stream, offer)) {
		source_session_fail(s, SOURCE_HANDSHAKE_FAILED, "handshake", "out of memory");
		return;
	}
	if (offer == CLIENT_TLS_OFFER_SESSION && s->tls.session)
		source_session_count(s, SOURCE_OFFERED);
	smtp_wire_start_tls(&s->wire, s->tls.ssl, &s->tls.wire);
}

static void on_shaken(struct smtp_wire *w)
{
	struct source_session *s = container_of(w, struct source_session, wire);
	int resumed = SSL_session_reused(s->tls.ssl);
	client_tls_tally_suite(s->tls.ssl, s->host->result->suites);
	source_session_count(s, resumed ? SOURCE_RESUMED : SOURCE_FULL);
	source_session_end_step(s, resumed ? SOURCE_PHASE_HANDSHAKE_RESUMED : SOURCE_PHASE_HANDSHAKE_FULL);
	if (s->host->options->tls == SOURCE_STARTTLS)
		source_session_say_hello(s);
	else
		source_session_move(s, SOURCE_IN_BANNER);
}

/* An EHLO reply's lines behind the first, one bit each for what matters here. */
static void note_offer(struct source_session *s, struct smtp_span text)
{
	static const uint8_t bits[SMTP_CAP_OTHER] = {
		[SMTP_CAP_PIPELINING] = SOURCE_OFFER_PIPELINING,
		[SMTP_CAP_CHUNKING] = SOURCE_OFFER_CHUNKING,
		[SMTP_CAP_STARTTLS] = SOURCE_OFFER_STARTTLS,
		[SMTP_CAP_SIZE] = SOURCE_OFFER_SIZE,
		[SMTP_CAP_8BITMIME] = SOURCE_OFFER_8BITMIME,
	};
	struct smtp_span keyword = smtp_span_word(&text);
	for (unsigned cap = 0; cap < SMTP_CAP_OTHER; cap++) {
		if (bits[cap] && smtp_span_is(keyword, smtp_cap_keyword((enum smtp_cap)cap)))
			s->offers_mask |= bits[cap];
	}
}

static void on_source_ehlo(struct source_session *s)
{
	source_session_end_step(s, SOURCE_PHASE_EHLO);
	if (s->host->options->tls != SOURCE_STARTTLS || s->wire.state == SMTP_WIRE_TLS)
		source_session_rest(s);
	else if (s->offers_mask & SOURCE_OFFER_STARTTLS)
		say_word(s, SOURCE_IN_STARTTLS, "STARTTLS\r\n");
	else
		source_session_fail(s, SOURCE_NOT_OFFERED, "EHLO", "no STARTTLS");
}

static void on_refusal(struct source_session *s, const char *text)
{
	source_session_count(s, s->code / 100 == 4 ? SOURCE_REFUSED_4 : SOURCE_REFUSED_5);
	source_session_fail(s, SOURCE_LOST, source_session_place(s), text);
}

/* A whole reply came. */
static void on_source_reply(struct source_session *s, const char *text)
{
	unsigned good = s->code / 100 == 2;
	if (s->state == SOURCE_IN_MAIL && s->code != 421) {
		source_transaction_on_reply(s, s->code, text);
		return;
	}
	if (s->state == SOURCE_IS_QUITTING) {
		end_in_order(s);
		return;
	}
	if (!good || s->state == SOURCE_IS_READY || s->state == SOURCE_IS_SHAKING) {
		on_refusal(s, text);
		return;
	}
	switch (s->state) {
	case SOURCE_IN_BANNER:
		source_session_end_step(s, SOURCE_PHASE_BANNER);
		if (s->host->options->greeting == SOURCE_NO_GREETING)
			source_session_rest(s);
		else
			source_session_say_hello(s);
		break;
	case SOURCE_IN_EHLO: on_source_ehlo(s); break;
	case SOURCE_IN_STARTTLS:
		source_session_end_step(s, SOURCE_PHASE_STARTTLS);
		source_session_start_tls(s);
		break;
	default: source_session_rest(s); /* behind RSET */
	}
}

static void on_source_line(struct source_session *s, const struct smtp_line *line)
{
	struct smtp_reply_line parts;
	char text[TALLY_TEXT_MAX];
	if (s->host->options->verbosity == SOURCE_SAYS_DIALOGUE)
		fprintf(stderr, "%llu < %.*s\n", (unsigned long long)s->number, (int)line->text.len, line->text.at);
	if (line->flaws & ~(unsigned)(SMTP_LINE_8BIT | SMTP_LINE_CONTROL) ||
		smtp_reply_line_parse(line->text, &parts) < 0 || (s->lines > 0 && parts.code != s->code)) {
		source_session_fail(s, SOURCE_MALFORMED, source_session_place(s), "no reply");
		return;
	}
	s->code = parts.code;
	if (s->state == SOURCE_IN_EHLO && s->lines > 0)
		note_offer(s, parts.text);
	s->lines++;
	if (!parts.is_last)
		return;
	snprintf(text, sizeof text, "%u %s", s->code, s->host->options->target_names[s->target]);
	tally_row(s->host->result->replies, SOURCE_REPLIES_MAX, text, strlen(text))->count++;
	if (s->code / 100 >= 4) /* only then anybody looks at it */
		snprintf(text, sizeof text, "%.*s", (int)line->text.len, line->text.at);
	else
		text[0] = 0;
	on_source_reply(s, text);
	s->lines = 0;
}

/* A buffer exists only while part of a line waits for the rest. */
static int prepare_reader(struct source_session *s, const char *data, size_t len)
{
	if (!s->reader.buf && data[len - 1] != '\n')
		s->reader.buf = malloc(SMTP_TEXT_MAX);
	return s->reader.buf || data[len - 1] == '\n' ? 0 : -1;
}

static size_t on_plain(struct smtp_wire *w, const char *data, size_t len)
{
	struct source_session *s = container_of(w, struct source_session, wire);
	struct smtp_line line;
	size_t at = 0, taken;
	if (s->state != SOURCE_IS_READY && s->state != SOURCE_IS_CLOSING) /* READY: the deadline is that of a pause */
		expect_progress(s);
	if (prepare_reader(s, data, len) < 0) {
		source_session_fail(s, SOURCE_LOST, source_session_place(s), "out of memory");
		return len;
	}
	while (at < len && s->state != SOURCE_IS_CLOSING && w->state != SMTP_WIRE_SHAKING) {
		if (smtp_line_read(&s->reader, data + at, len - at, &taken, &line) == SMTP_LINE)
			on_source_line(s, &line);
		at += taken;
	}
	if (at < len && w->state == SMTP_WIRE_SHAKING) /* RFC 3207 4.2: nothing in clear counts behind the 220 */
		source_session_fail(s, SOURCE_INJECTED, "STARTTLS", "bytes in clear behind the reply");
	if (s->reader.buf && smtp_line_is_between(&s->reader)) {
		free(s->reader.buf);
		s->reader.buf = NULL;
	}
	return len;
}

static void on_source_written(struct smtp_wire *w)
{
	struct source_session *s = container_of(w, struct source_session, wire);
	if (s->state == SOURCE_IN_MAIL) {
		expect_progress(s);
		source_transaction_write_on(s);
	}
}

/* Connecting */

static void set_window(struct source_session *s)
{
	int bytes = (int)s->host->options->window;
	if (bytes > 0)
		setsockopt(stream_fd(&s->wire.stream), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

static void on_connect_failed(struct source_session *s, const char *why)
{
	source_session_count(s, SOURCE_CONNECT_FAILED);
	s->after = SOURCE_PAUSES;
	tally_note(s->host->result->errors, SOURCE_ERRORS_MAX, "connect", why);
	if (++s->tries >= s->host->options->connect_tries)
		source_session_fail_mail(s);
}

static void on_source_connected(struct smtp_wire *w, int uv_error)
{
	struct source_session *s = container_of(w, struct source_session, wire);
	if (uv_error < 0) {
		on_connect_failed(s, uv_strerror(uv_error));
		source_session_drop(s, SMTP_WIRE_BY_RESET);
		return;
	}
	source_session_count(s, SOURCE_CONNECTED);
	source_session_end_step(s, SOURCE_PHASE_CONNECT);
	s->tries = 0;
	expect_progress(s);
	set_window(s);
	if (s->host->options->proxy_version)
		source_session_write_proxy_header(s);
	if (s->host->options->tls == SOURCE_IMPLICIT)
		source_session_start_tls(s);
	else
		source_session_move(s, SOURCE_IN_BANNER);
	s->host->on_connect_over(s->host);
}

static const struct smtp_wire_ops ops = {
	.on_plain = on_plain,
	.on_shaken = on_shaken,
	.on_written = on_source_written,
	.on_end = on_source_end,
	.on_connected = on_source_connected,
	.on_closed = on_source_closed,
};

void source_session_connect(struct source_session *s)
{
	const struct source_options *o = s->host->options;
	struct sockaddr_storage source;
	const struct sockaddr *from =
		source_ranges_get(&o->sources, s->number, &source) ? (const struct sockaddr *)&source : NULL;

	s->step_ns = uv_hrtime();
	s->mails = 0;
	s->after = SOURCE_FREE;
	s->target = (unsigned)((s->number + s->connections++) % o->target_count);
	s->lines = 0;
	smtp_line_begin(&s->reader, SMTP_TEXT_MAX, NULL);
	source_session_count(s, SOURCE_CONNECTIONS);
	int r = smtp_wire_connect(
		&s->wire, s->host->worker, &ops, (const struct sockaddr *)&o->targets[s->target], from);
	if (r < 0) {
		on_connect_failed(s, uv_strerror(r));
		source_session_pause(s, PAUSE_AFTER_FAILURE_MS);
		s->host->on_connect_over(s->host);
		return;
	}
	source_session_move(s, SOURCE_IS_CONNECTING);
	expect_progress(s);
}

void source_session_take(struct source_session *s, uint64_t mail_number, uint64_t intended_ns)
{
	deadline_cancel(&s->deadline);
	s->has_mail = 1;
	s->mail_number = mail_number;
	s->intended_ns = intended_ns;
	if (s->state == SOURCE_IS_READY)
		source_transaction_begin(s);
}

void source_session_pause(struct source_session *s, uint64_t ms)
{
	deadline_set(s->host->worker, &s->deadline, ms);
}

void source_session_abort(struct source_session *s)
{
	if (s->state == SOURCE_IS_AWAY || s->state == SOURCE_IS_CLOSING || s->state == SOURCE_IS_RETIRED)
		return;
	s->has_mail = 0;
	s->after = SOURCE_FREE;
	source_session_drop(s, SMTP_WIRE_BY_RESET);
}

void source_session_retire(struct source_session *s)
{
	deadline_cancel(&s->deadline);
	source_session_move(s, SOURCE_IS_RETIRED);
}

void source_session_init(struct source_session *s, struct source_host *host, uint64_t number)
{
	memset(s, 0, sizeof *s);
	s->host = host;
	s->number = number;
	s->deadline.fn = on_source_deadline;
	s->tls.alert = CLIENT_TLS_NO_ALERT;
}

void source_session_wipe(struct source_session *s)
{
	client_tls_wipe(&s->tls);
}
