/* client.c */
#include "tests/lib/tlsload/client.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "tests/lib/tlsload/dial.h"
#include "tests/lib/tlsload/group.h"

#define TO(state)       (1u << CLIENT_##state)
#define READ_LEN        16384u /* a record: OpenSSL then holds nothing back that epoll would not tell of */
#define READS_AT_ONCE   8u
#define COME_AGAIN_MS   100u
#define PAUSE_WITHIN_US 100000u /* requests sent so soon after a mark count */

static const uint16_t may_become[CLIENT_STATES] = {
	[CLIENT_APART] = TO(CONNECTING) | TO(OVER),
	[CLIENT_CONNECTING] = TO(SHAKING) | TO(APART) | TO(OVER),
	[CLIENT_SHAKING] = TO(READY) | TO(APART) | TO(OVER),
	[CLIENT_READY] = TO(ASKED) | TO(APART) | TO(OVER),
	[CLIENT_ASKED] = TO(MIDWAY) | TO(APART) | TO(OVER),
	[CLIENT_MIDWAY] = TO(READY) | TO(APART) | TO(OVER),
};

static void move(struct client *c, enum client_state to)
{
	assert(may_become[c->state] & 1u << to);
	c->group->in_state[c->state]--;
	c->group->in_state[to]++;
	c->state = to;
	if (c->standing == CLIENT_NEWCOMER && (to == CLIENT_READY || to == CLIENT_OVER)) {
		c->standing = CLIENT_KNOWN;
		c->group->newcomers--;
	}
}

static uint64_t now_ms(const struct client *c)
{
	return c->group->load->now_us / 1000;
}

/* --- what it waits for --- */

/* A client has one timer for everything that it does by itself. */
static void set_timer(struct client *c)
{
	uint64_t at = c->progress_ms + c->group->timeout_ms;

	if (c->state == CLIENT_OVER)
		return;
	if (c->state == CLIENT_APART || c->state == CLIENT_READY)
		at = c->next_ms;
	else if (c->stalled_ms > 0)
		at = c->stalled_ms;
	else if (c->next_ms < at)
		at = c->next_ms;
	if (at == UINT64_MAX)
		wheel_cancel(&c->timer);
	else
		wheel_set(&c->group->load->wheel, &c->timer, at);
}

static void set_interest(struct client *c, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	if (c->interest == events)
		return;
	c->interest = events;
	epoll_ctl(c->group->load->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

static void progressed(struct client *c)
{
	c->progress_ms = now_ms(c);
}

/* --- ends --- */

static enum connection_place place_of(const struct client *c)
{
	static const enum connection_place places[CLIENT_STATES] = {
		[CLIENT_CONNECTING] = PLACE_SHAKING,
		[CLIENT_SHAKING] = PLACE_SHAKING,
		[CLIENT_READY] = PLACE_IDLE,
		[CLIENT_ASKED] = PLACE_UNANSWERED,
		[CLIENT_MIDWAY] = PLACE_MIDWAY,
	};
	return places[c->state];
}

static void log_id(const struct client *c, const char *what)
{
	struct group *g = c->group;

	if (g->ids)
		fprintf(g->ids, "%s %s\n", c->exchange.id, what);
}

static void close_socket(struct client *c)
{
	SSL_free(c->ssl);
	c->ssl = NULL;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void note_end(struct client *c, enum connection_end end, const char *why)
{
	struct load *load = c->group->load;

	tally_note(&c->group->tally,
		"%.3f s: client %u, port %u, %s, last answered by '%s': %s %s, request %u, %llu sent, %llu of %llu "
		"came%s%s",
		(double)(load->now_us - load->started_us) / 1e6, c->number, c->port,
		c->ssl ? SSL_get_version(c->ssl) : "no TLS", c->agent, end_name(end), place_name(place_of(c)), c->asked,
		(unsigned long long)c->exchange.sent, (unsigned long long)c->exchange.answer.got,
		(unsigned long long)c->exchange.answer.length, why ? ": " : "", why ? why : "");
}

static int comes_again(const struct client *c, enum connection_end end)
{
	return c->group->state != GROUP_STOPPED &&
	       (c->group->again == AGAIN_ALWAYS || (c->group->again == AGAIN_LOST && end != END_OURS));
}

static void ended(struct client *c, enum connection_end end, const char *why)
{
	struct group *g = c->group;

	g->tally.ends[end][place_of(c)]++;
	if (end != END_OURS && end != END_REFUSED)
		note_end(c, end, why);
	if (c->state == CLIENT_ASKED || c->state == CLIENT_MIDWAY)
		log_id(c, end_name(end));
	if (end != END_OURS && c->apart_us == 0)
		c->apart_us = g->load->now_us;
	close_socket(c);
	c->pause_us = c->stalled_ms = 0;
	move(c, comes_again(c, end) ? CLIENT_APART : CLIENT_OVER);
	c->next_ms = now_ms(c) + (end == END_OURS ? g->every_ms : COME_AGAIN_MS);
	wheel_cancel(&c->timer);
	set_timer(c);
}

/* OpenSSL's reason why a connection does not go on. */
static void ended_by_tls(struct client *c, int error, int system_error)
{
	const unsigned long code = ERR_peek_last_error();
	const int reason = ERR_GET_REASON(code);
	char text[120];

	ERR_error_string_n(code, text, sizeof(text));
	ERR_clear_error();
	if (error == SSL_ERROR_ZERO_RETURN) {
		ended(c,
			c->exchange.answer.then == ANSWER_THEN_CLOSE && c->state == CLIENT_READY ? END_REFUSED
												 : END_CLOSE_NOTIFY,
			NULL);
	} else if (error == SSL_ERROR_SYSCALL) {
		ended(c, END_RESET, strerror(system_error));
	} else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
		ended(c, c->write_error == ECONNRESET ? END_RESET : END_FIN, NULL);
	} else if (reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + (int)ALERTS_MAX) {
		c->group->tally.alerts[reason - SSL_AD_REASON_OFFSET]++;
		ended(c, END_ALERT, SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
	} else {
		ended(c, END_GARBLED, text);
	}
}

/* 1: the connection goes on; else it has ended. */
static int goes_on(struct client *c, int result)
{
	const int system_error = errno, error = SSL_get_error(c->ssl, result);

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return 1;
	ended_by_tls(c, error, system_error);
	return 0;
}

void client_leave(struct client *c)
{
	if (c->state == CLIENT_OVER)
		return;
	if (c->state == CLIENT_APART) {
		move(c, CLIENT_OVER);
		wheel_cancel(&c->timer);
		return;
	}
	if (c->state >= CLIENT_READY)
		SSL_shutdown(c->ssl);
	ERR_clear_error();
	ended(c, END_OURS, NULL);
}

/* --- pauses --- */

/* An answer is owed now. Each connection has one pause for a mark: from it, or from a request shortly after. */
static void expect_byte(struct client *c)
{
	const struct load *load = c->group->load;

	if (load->mark.at_us == 0 || c->mark_us == load->mark.at_us ||
		load->now_us - load->mark.at_us > PAUSE_WITHIN_US)
		return;
	c->mark_us = load->mark.at_us;
	c->pause_us = load->now_us;
	c->pause_kind = load->mark.agent[0] && strcmp(load->mark.agent, c->agent) == 0 ? PAUSE_HIT : PAUSE_OTHER;
}

void client_on_mark(struct client *c)
{
	if (c->state == CLIENT_ASKED || c->state == CLIENT_MIDWAY)
		expect_byte(c);
}

static void byte_came(struct client *c)
{
	struct group *g = c->group;

	if (c->pause_us == 0)
		return;
	histogram_add(&g->tally.pause, g->load->now_us - c->pause_us);
	if (c->pause_kind == PAUSE_HIT)
		histogram_add(&g->tally.pause_hit, g->load->now_us - c->pause_us);
	c->pause_us = 0;
}

/* --- asking --- */

/* The events to wait for, besides reading. */
static uint32_t write_failed(struct client *c, int error, int system_error)
{
	if (error == SSL_ERROR_SYSCALL)
		c->write_error = system_error;
	return error == SSL_ERROR_WANT_WRITE ? EPOLLOUT : 0;
}

static void write_on(struct client *c)
{
	static uint8_t buffer[EXCHANGE_PIECE];
	struct exchange *x = &c->exchange;
	uint32_t interest = c->stalled_ms ? 0 : EPOLLIN;
	uint64_t wait_ms = 0;
	size_t len;

	while (!exchange_is_sent(x) && (len = exchange_piece(x, c->group->load->now_us, buffer, &wait_ms)) > 0) {
		ERR_clear_error();
		const int n = SSL_write(c->ssl, buffer, (int)len), system_error = errno;
		c->group->tally.bytes_out += exchange_went(x, len, n > 0 ? (size_t)n : 0);
		if (n <= 0) {
			/* Writing failed, but the peer's last bytes can still be read. */
			interest |= write_failed(c, SSL_get_error(c->ssl, n), system_error);
			break;
		}
		progressed(c);
	}
	c->next_ms = wait_ms > 0 ? now_ms(c) + wait_ms : UINT64_MAX;
	set_interest(c, interest);
	set_timer(c);
}

static void update_keys(struct client *c)
{
	const unsigned every = c->group->key_update_every;

	if (every > 0 && c->asked % every == 0 && SSL_version(c->ssl) == TLS1_3_VERSION)
		SSL_key_update(c->ssl, c->asked / every % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
}

void client_ask(struct client *c)
{
	move(c, CLIENT_ASKED);
	c->asked++;
	c->requests++;
	c->group->tally.requests++;
	exchange_start(&c->exchange, c->group, c->number, c->requests, c->group->load->now_us);
	update_keys(c);
	progressed(c);
	expect_byte(c);
	write_on(c);
}

/* --- answers --- */

static void answered(struct client *c)
{
	struct group *g = c->group;
	char what[16];

	g->tally.statuses[c->exchange.answer.status < STATUSES_MAX ? c->exchange.answer.status : 0]++;
	snprintf(what, sizeof(what), "status %u", c->exchange.answer.status);
	log_id(c, what);
	if (c->exchange.answer.status == 200) {
		g->tally.answers++;
		histogram_add(&g->tally.latency, g->load->now_us - c->exchange.asked_us);
		if (c->asked == 1)
			histogram_add(&g->tally.first, c->shaking_us + g->load->now_us - c->exchange.asked_us);
	}
	if (!exchange_is_sent(&c->exchange))
		c->exchange.answer.then = ANSWER_THEN_CLOSE; /* nothing can follow half a request */
	move(c, CLIENT_READY);
	c->next_ms = UINT64_MAX;
	if (c->exchange.answer.then == ANSWER_THEN_CLOSE)
		c->next_ms = now_ms(c) + g->timeout_ms; /* its end is to come */
	else if (g->state == GROUP_ASKS)
		c->next_ms = c->exchange.asked_us / 1000 + g->every_ms;
	set_timer(c);
	if (c->exchange.answer.then != ANSWER_THEN_CLOSE && g->times > 0 && c->asked >= g->times) {
		SSL_shutdown(c->ssl);
		ended(c, END_OURS, NULL);
	}
}

static void stall(struct client *c)
{
	const struct group *g = c->group;

	if (g->stall_ms == 0 || c->stalled_ms > 0 || c->exchange.answer.got < g->stall_at ||
		c->exchange.answer.got == c->exchange.answer.length || c->exchange.answer.got - g->stall_at > READ_LEN)
		return;
	c->stalled_ms = now_ms(c) + g->stall_ms;
	set_interest(c, c->interest & ~(uint32_t)EPOLLIN);
	set_timer(c);
}

static void take(struct client *c, const uint8_t *data, size_t len)
{
	const uint64_t got = c->exchange.answer.got;

	if (c->state == CLIENT_ASKED)
		move(c, CLIENT_MIDWAY);
	if (c->state != CLIENT_MIDWAY) {
		ended(c, END_WRONG, "bytes that nobody asked for");
		return;
	}
	byte_came(c);
	const size_t taken = answer_feed(&c->exchange.answer, &c->exchange.expected, data, len);
	c->group->tally.bytes_in += c->exchange.answer.got - got;
	if (c->exchange.answer.agent[0])
		memcpy(c->agent, c->exchange.answer.agent, sizeof(c->agent));
	if (c->exchange.answer.progress == ANSWER_WRONG)
		ended(c, END_WRONG, c->exchange.answer.wrong);
	else if (taken < len)
		ended(c, END_WRONG, "bytes behind the answer");
	else if (c->exchange.answer.progress == ANSWER_WHOLE && c->exchange.answer.status == 200 &&
		 !exchange_is_sent(&c->exchange))
		ended(c, END_WRONG, "answered before it was asked");
	else if (c->exchange.answer.progress == ANSWER_WHOLE)
		answered(c);
	else
		stall(c);
}

static void read_on(struct client *c)
{
	static uint8_t buffer[READ_LEN];

	for (unsigned i = 0; i < READS_AT_ONCE && c->state >= CLIENT_READY && c->state != CLIENT_OVER; i++) {
		if (c->stalled_ms > 0)
			return;
		ERR_clear_error();
		errno = 0;
		const int n = SSL_read(c->ssl, buffer, sizeof(buffer));
		if (n <= 0) {
			goes_on(c, n);
			return;
		}
		progressed(c);
		take(c, buffer, (size_t)n);
	}
}

/* --- coming --- */

int client_on_session(SSL *ssl, SSL_SESSION *session)
{
	struct client *c = SSL_get_app_data(ssl);

	if (c->group->session != SESSION_OFFERED)
		return 0;
	SSL_SESSION_free(c->session);
	c->session = session;
	return 1;
}

void client_come(struct client *c)
{
	struct epoll_event e = { .events = EPOLLOUT, .data.ptr = c };

	move(c, CLIENT_CONNECTING);
	progressed(c);
	c->next_ms = UINT64_MAX;
	c->came_us = c->group->load->now_us;
	c->asked = 0;
	c->write_error = 0;
	c->agent[0] = '\0';
	answer_start(&c->exchange.answer);
	c->fd = dial(c->group, c->number, &c->port);
	c->ssl = c->fd < 0 ? NULL : dial_tls(c->group, c->number, c->fd, c->session);
	if (!c->ssl) {
		ended(c, END_NO_CONNECT, strerror(errno));
		return;
	}
	SSL_set_app_data(c->ssl, c);
	c->interest = e.events;
	epoll_ctl(c->group->load->epoll, EPOLL_CTL_ADD, c->fd, &e);
	set_timer(c);
}

/* READY, and nothing to ask: the next KeyUpdates are due some time. */
static void plan_keys(struct client *c)
{
	if (c->group->keys_every_ms > 0 && SSL_version(c->ssl) == TLS1_3_VERSION)
		c->next_ms = now_ms(c) + c->group->keys_every_ms;
}

/* A burst leaves in one segment, so that a stranger costs its machine little. */
static void hold_segment(const struct client *c, int hold)
{
	setsockopt(c->fd, IPPROTO_TCP, TCP_CORK, &hold, sizeof(hold));
}

static void say_keys(struct client *c)
{
	int r = 1;

	ERR_clear_error();
	errno = 0;
	hold_segment(c, 1);
	for (unsigned n = 0; n < c->group->keys_at_once && r == 1; n++) {
		SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
		c->group->tally.key_updates++;
		r = SSL_do_handshake(c->ssl);
	}
	if (r != 1 && !goes_on(c, r))
		return;
	hold_segment(c, 0);
	plan_keys(c);
	set_timer(c);
}

static void shaken(struct client *c)
{
	struct group *g = c->group;

	move(c, CLIENT_READY);
	c->shaking_us = g->load->now_us - c->came_us;
	g->tally.connected++;
	g->tally.resumed += SSL_session_reused(c->ssl) != 0;
	if (c->apart_us > 0)
		histogram_add(&g->tally.apart, g->load->now_us - c->apart_us);
	c->apart_us = 0;
	/* Spread over the interval, so that they do not all ask at once. */
	c->next_ms =
		g->state == GROUP_ASKS ? now_ms(c) + (g->every_ms ? c->number * 7919u % g->every_ms : 0) : UINT64_MAX;
	if (g->state == GROUP_WAITS)
		plan_keys(c);
	set_interest(c, EPOLLIN);
	set_timer(c);
}

static void shake(struct client *c)
{
	ERR_clear_error();
	errno = 0;
	const int r = SSL_do_handshake(c->ssl);
	progressed(c);
	if (r == 1)
		shaken(c);
	else if (goes_on(c, r))
		set_interest(c, SSL_want_write(c->ssl) ? EPOLLOUT : EPOLLIN);
}

static void on_connected(struct client *c)
{
	int error = 0;
	socklen_t len = sizeof(error);

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error) {
		ended(c, END_NO_CONNECT, strerror(error));
		return;
	}
	move(c, CLIENT_SHAKING);
	shake(c);
}

/* --- events --- */

void client_on_event(struct client *c, uint32_t events)
{
	if (c->state == CLIENT_CONNECTING)
		on_connected(c);
	else if (c->state == CLIENT_SHAKING)
		shake(c);
	else {
		if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			read_on(c);
		if ((events & EPOLLOUT) && (c->state == CLIENT_ASKED || c->state == CLIENT_MIDWAY))
			write_on(c);
	}
}

void client_on_timer(struct client *c)
{
	const uint64_t now = now_ms(c);

	switch (c->state) {
	case CLIENT_APART:
		if (c->group->state == GROUP_STOPPED)
			client_leave(c);
		else
			client_come(c);
		return;
	case CLIENT_READY:
		if (c->exchange.answer.then == ANSWER_THEN_CLOSE)
			ended(c, END_TIMEOUT, "it said close and did not");
		else if (c->group->state == GROUP_WAITS && c->group->keys_every_ms > 0)
			say_keys(c);
		else if (c->group->state != GROUP_STOPPED)
			client_ask(c);
		return;
	case CLIENT_OVER: return;
	default: break;
	}
	if (c->stalled_ms > 0 && now >= c->stalled_ms) {
		c->stalled_ms = 0;
		progressed(c);
		set_interest(c, c->interest | EPOLLIN);
		read_on(c);
	} else if (now >= c->progress_ms + c->group->timeout_ms) {
		ended(c, END_TIMEOUT, NULL);
		return;
	}
	if (c->state == CLIENT_ASKED || c->state == CLIENT_MIDWAY)
		write_on(c);
	else if (c->state != CLIENT_OVER)
		set_timer(c);
}

void client_start(struct client *c, struct group *g, unsigned number)
{
	c->group = g;
	c->number = number;
	c->fd = -1;
	c->state = CLIENT_APART;
	c->next_ms = UINT64_MAX;
	g->in_state[CLIENT_APART]++;
	g->newcomers++;
}

void client_destroy(struct client *c)
{
	wheel_cancel(&c->timer);
	close_socket(c);
	SSL_SESSION_free(c->session);
}
