/* sink_session.c: the connection's part of a session: input, replies as the rules change them, and the end. While a
 * reply waits, the client's bytes are not read. The commands are in sink_commands.c. */
#include "bench/mail/sink_session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bench/mail/sink_commands.h"
#include "net/memory/container_of.h"
#include "proto/proxy_header.h"
#include "smtp/reply_write.h"

#define TO(state) (1u << (state))

static const uint8_t may_move_to[] = {
	[SINK_IN_PROXY] = TO(SINK_IN_COMMANDS) | TO(SINK_IS_CLOSING),
	[SINK_IN_COMMANDS] = TO(SINK_IN_DATA) | TO(SINK_IN_CHUNK) | TO(SINK_IN_QUESTION) | TO(SINK_IS_DECIDING) |
			     TO(SINK_IS_CLOSING),
	[SINK_IN_DATA] = TO(SINK_IN_COMMANDS) | TO(SINK_IS_CLOSING),
	[SINK_IN_CHUNK] = TO(SINK_IN_COMMANDS) | TO(SINK_IS_CLOSING),
	[SINK_IN_QUESTION] = TO(SINK_IN_COMMANDS) | TO(SINK_IS_CLOSING),
	[SINK_IS_DECIDING] = TO(SINK_IN_COMMANDS) | TO(SINK_DECIDES_ALONE) | TO(SINK_IS_CLOSING),
	[SINK_DECIDES_ALONE] = TO(SINK_IN_COMMANDS) | TO(SINK_IS_CLOSING),
	[SINK_IS_CLOSING] = 0,
};

void sink_session_move(struct sink_session *s, enum sink_state to)
{
	assert(may_move_to[s->state] & TO(to));
	s->state = (uint8_t)to;
}

void sink_session_count(struct sink_session *s, enum sink_count what)
{
	s->host->result->counts[what]++;
}

void sink_session_expect_something(struct sink_session *s)
{
	if (s->host->options->idle_ms)
		deadline_set(s->host->worker, &s->deadline, s->host->options->idle_ms);
}

/* Ending */

void sink_session_close(struct sink_session *s)
{
	if (s->state == SINK_IS_CLOSING)
		return;
	if (s->mail && (s->state == SINK_IN_DATA || s->mail->bdat.chunks > 0))
		sink_session_count(s, SINK_CUT);
	sink_session_move(s, SINK_IS_CLOSING);
	sink_tx_leave(s);
	deadline_cancel(&s->deadline);
	smtp_wire_close(&s->wire, SMTP_WIRE_IN_ORDER);
}

/* If a client leaves after the end of its mail, the mail is decided all the same. */
static void on_sink_session_end(struct smtp_wire *w, const char *why)
{
	struct sink_session *s = container_of(w, struct sink_session, wire);
	if (s->state == SINK_IS_DECIDING)
		sink_session_move(s, SINK_DECIDES_ALONE);
	if (s->state == SINK_DECIDES_ALONE)
		return;
	if (w->state == SMTP_WIRE_SHAKING)
		sink_session_count(s, SINK_HANDSHAKE_FAILED);
	sink_session_close(s);
}

static void on_sink_session_closed(struct smtp_wire *w)
{
	struct sink_session *s = container_of(w, struct sink_session, wire);
	stream_ssl_free(s->ssl);
	sink_mail_destroy(s->mail);
	free(s->reader.buf);
	free(s->reply);
	s->host->on_gone(s->host, s);
}

void sink_session_go_on(struct sink_session *s)
{
	if (s->state != SINK_IS_CLOSING && !s->reply)
		smtp_wire_go_on(&s->wire);
}

/* Replying */

static void sink_session_start_tls(struct sink_session *s)
{
	s->ssl = stream_ssl_new(s->host->tls.ctx, s->host->tls.wire, &s->wire.stream, &s->bio);
	s->greeted = 0; /* RFC 3207 4.2: all that was said in clear is forgotten */
	sink_mail_destroy(s->mail);
	s->mail = NULL;
	sink_tx_forget(s);
	if (!s->ssl) {
		sink_session_close(s);
		return;
	}
	SSL_set_accept_state(s->ssl);
	smtp_wire_start_tls(&s->wire, s->ssl, &s->bio);
}

/* The reply is sent: now do the next step. */
static void follow_up(struct sink_session *s)
{
	enum sink_then then = (enum sink_then)s->then;
	s->then = SINK_GOES_ON;
	sink_session_expect_something(s);
	switch (then) {
	case SINK_GOES_ON: break;
	case SINK_CLOSES: sink_session_close(s); break;
	case SINK_STARTS_TLS: sink_session_start_tls(s); break;
	case SINK_TAKES_DATA: sink_session_move(s, SINK_IN_DATA); break;
	}
}

static void write_out(struct sink_session *s, const char *text, size_t len)
{
	if (s->host->options->verbosity == SINK_SAYS_DIALOGUE)
		fprintf(stderr, "< %.*s", (int)len, text);
	if (smtp_wire_write(&s->wire, text, len) < 0)
		sink_session_close(s);
}

static void on_reply_due(struct sink_session *s)
{
	size_t left = s->reply_len - s->reply_at, piece = s->tarpit_ms ? 1 : left;
	write_out(s, s->reply + s->reply_at, piece);
	if (s->state == SINK_IS_CLOSING)
		return;
	s->reply_at += (uint32_t)piece;
	if (s->reply_at < s->reply_len) {
		deadline_set_in_full(s->host->worker, &s->deadline, s->tarpit_ms);
		return;
	}
	free(s->reply);
	s->reply = NULL;
	follow_up(s);
	sink_session_go_on(s);
}

static void on_decision_due(struct sink_session *s)
{
	enum sink_state before = (enum sink_state)s->state;
	sink_session_move(s, SINK_IN_COMMANDS);
	sink_session_decide(s);
	if (before == SINK_DECIDES_ALONE)
		sink_session_close(s);
	else
		sink_session_go_on(s);
}

static bool can_be_told(const struct sink_session *s)
{
	return s->wire.state != SMTP_WIRE_SHAKING && s->state >= SINK_IN_COMMANDS && s->state <= SINK_IN_CHUNK;
}

static void on_sink_session_deadline(struct deadline *d)
{
	struct sink_session *s = container_of(d, struct sink_session, deadline);
	if (s->reply) {
		on_reply_due(s);
		return;
	}
	if (s->state == SINK_IS_DECIDING || s->state == SINK_DECIDES_ALONE) {
		on_decision_due(s);
		return;
	}
	sink_session_count(s, SINK_IDLE);
	if (can_be_told(s))
		sink_session_say_own(s, SINK_STEP_OTHER, SMTP_OWN_TIMED_OUT, SINK_CLOSES);
	else
		sink_session_close(s);
}

static void say_later(struct sink_session *s, const char *text, size_t len, const struct sink_decision *d)
{
	s->reply = malloc(len);
	if (!s->reply) {
		sink_session_close(s);
		return;
	}
	sink_session_count(s, SINK_DELAYED);
	memcpy(s->reply, text, len);
	s->reply_len = (uint32_t)len;
	s->reply_at = 0;
	s->tarpit_ms = d->tarpit_ms;
	deadline_set_in_full(s->host->worker, &s->deadline, d->delay_ms);
}

/* Sends the usual reply of a step, or another one if the rules say so. A 421 closes the connection; another refusal
 * cancels @then. */
unsigned sink_session_say(
	struct sink_session *s, enum sink_step step, const char *text, size_t len, enum sink_then then)
{
	char other[SINK_REPLY_MAX + 4];
	struct sink_decision d = sink_rules_decide(&s->host->options->rules, step);
	if (d.drops) {
		sink_session_count(s, SINK_DROPPED);
		sink_session_close(s);
		return 0;
	}
	if (d.reply) {
		sink_session_count(s, SINK_BY_RULE);
		len = (size_t)snprintf(other, sizeof other, "%s\r\n", d.reply);
		text = other;
		if (text[0] > '3' && then != SINK_CLOSES)
			then = SINK_GOES_ON;
	}
	s->then = (uint8_t)(memcmp(text, "421", 3) == 0 ? SINK_CLOSES : then);
	unsigned class = (unsigned)(text[0] - '0');
	/* First of all, since another connection may ask for this transaction. This may close the session. */
	if (step == SINK_STEP_END)
		sink_tx_decide(s, text, len);
	if (s->state == SINK_IS_CLOSING)
		return class;
	tally_row(s->host->result->replies, SINK_REPLIES_MAX, text, 3)->count++;
	if (d.delay_ms || d.tarpit_ms) {
		say_later(s, text, len, &d);
		return class;
	}
	write_out(s, text, len);
	if (s->state != SINK_IS_CLOSING)
		follow_up(s);
	return class;
}

unsigned sink_session_say_own(struct sink_session *s, enum sink_step step, enum smtp_own own, enum sink_then then)
{
	uint8_t out[SMTP_REPLY_LINE_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	smtp_own_write(&w, own);
	return sink_session_say(s, step, (const char *)out, (size_t)wire_writer_len(&w), then);
}

void sink_session_refuse(struct sink_session *s, enum sink_step step, enum smtp_own own)
{
	sink_session_count(s, SINK_BAD_COMMANDS);
	sink_session_say_own(s, step, own, SINK_GOES_ON);
}

static void say_banner(struct sink_session *s)
{
	char text[300];
	int len = snprintf(text, sizeof text, "220 %.255s ESMTP\r\n", s->host->options->name);
	sink_session_say(s, SINK_STEP_CONNECT, text, (size_t)len, SINK_GOES_ON);
}

/* Input */

static size_t sink_session_take_line(struct sink_session *s, const char *in, size_t len)
{
	struct smtp_line line;
	size_t taken;
	if (!s->reader.buf && !memchr(in, '\n', len))
		s->reader.buf = malloc(SMTP_TEXT_MAX); /* only while a part of a line waits for the rest */
	if (!s->reader.buf && !memchr(in, '\n', len)) {
		sink_session_close(s);
		return len;
	}
	int r = smtp_line_read(&s->reader, in, len, &taken, &line);
	if (r == SMTP_LINE)
		sink_session_on_line(s, &line);
	if (s->state != SINK_IS_CLOSING && s->reader.buf && smtp_line_is_between(&s->reader)) {
		free(s->reader.buf);
		s->reader.buf = NULL;
	}
	return taken;
}

static size_t take_data(struct sink_session *s, const char *in, size_t len)
{
	size_t taken;
	if (sink_mail_data(s->mail, s->host->options, in, len, &taken)) {
		sink_session_move(s, SINK_IN_COMMANDS);
		sink_session_end_mail(s);
	}
	return taken;
}

static size_t take_chunk(struct sink_session *s, const char *in, size_t len)
{
	size_t taken = sink_mail_chunk(s->mail, s->host->options, in, len);
	if (!smtp_bdat_is_inside(&s->mail->bdat)) {
		sink_session_move(s, SINK_IN_COMMANDS);
		sink_session_end_chunk(s);
	}
	return taken;
}

static size_t sink_session_discard(struct sink_session *s, size_t len)
{
	size_t taken = len < s->discard ? len : (size_t)s->discard;
	s->discard -= taken;
	return taken;
}

static void sink_session_greet(struct sink_session *s)
{
	if (s->host->options->tls == SINK_IMPLICIT)
		sink_session_start_tls(s);
	else
		say_banner(s);
}

static size_t take_proxy_header(struct sink_session *s, const char *in, size_t len)
{
	struct proxy_header header;
	size_t taken = 0;
	int r = proxy_header_parse((const uint8_t *)in, len, &header, &taken);
	if (r == PROXY_INCOMPLETE) {
		s->wire.wants_more = 1;
		return 0;
	}
	if (r < 0) {
		sink_session_count(s, SINK_PROXY_BAD);
		sink_session_close(s);
		return len;
	}
	sink_session_count(s, SINK_PROXIED);
	sink_session_move(s, SINK_IN_COMMANDS);
	sink_tx_enter(s, &header);
	sink_session_greet(s);
	return taken;
}

static size_t sink_session_take(struct sink_session *s, const char *in, size_t len)
{
	if (s->discard > 0)
		return sink_session_discard(s, len);
	switch (s->state) {
	case SINK_IN_PROXY: return take_proxy_header(s, in, len);
	case SINK_IN_DATA: return take_data(s, in, len);
	case SINK_IN_CHUNK: return take_chunk(s, in, len);
	default: return sink_session_take_line(s, in, len);
	}
}

static bool sink_session_reads(const struct sink_session *s)
{
	return !s->reply && s->state < SINK_IN_QUESTION;
}

static size_t on_plain(struct smtp_wire *w, const char *data, size_t len)
{
	struct sink_session *s = container_of(w, struct sink_session, wire);
	size_t at = 0;
	enum smtp_wire_state before = (enum smtp_wire_state)w->state;
	if (sink_session_reads(s)) /* otherwise the deadline is that of a reply or a decision */
		sink_session_expect_something(s);
	while (at < len && sink_session_reads(s) && w->state == before && !w->wants_more)
		at += sink_session_take(s, data + at, len - at);
	return at;
}

static void on_shaken(struct smtp_wire *w)
{
	struct sink_session *s = container_of(w, struct sink_session, wire);
	client_tls_tally_suite(s->ssl, s->host->result->suites);
	sink_session_count(s, SSL_session_reused(s->ssl) ? SINK_RESUMED : SINK_FULL);
	if (s->host->options->tls == SINK_IMPLICIT)
		say_banner(s);
}

static const struct smtp_wire_ops ops = {
	.on_plain = on_plain,
	.on_shaken = on_shaken,
	.on_end = on_sink_session_end,
	.on_closed = on_sink_session_closed,
};

int sink_session_open(struct sink_session *s, struct sink_host *host, int fd, enum sink_welcome welcome)
{
	s->host = host;
	s->deadline.fn = on_sink_session_deadline;
	smtp_line_begin(&s->reader, SMTP_TEXT_MAX, NULL);
	s->state = host->options->proxy == SINK_WITH_PROXY && welcome == SINK_IS_WELCOME ? SINK_IN_PROXY
											 : SINK_IN_COMMANDS;
	int r = smtp_wire_open(&s->wire, host->worker, &ops, fd);
	if (r < 0)
		return r;
	sink_session_expect_something(s);
	if (welcome == SINK_IS_OVER)
		sink_session_say_own(s, SINK_STEP_OTHER, SMTP_OWN_TOO_MANY_CONNECTIONS, SINK_CLOSES);
	else if (s->state == SINK_IN_COMMANDS)
		sink_session_greet(s);
	return 0;
}
