/* connection_arrival.c: what befalls a client until an agent makes its handshake, in this order. */
#include <stdlib.h>
#include <string.h>

#include "net/limits/admission.h"
#include "net/loop/listener.h"
#include "net/points/fault.h"
#include "net/socket/discard.h"
#include "proto/error.h"
#include "proto/first_bytes.h"
#include "ragent/connection/connection_clear.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_life.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"
#include "ragent/dispatch/dispatch.h"
#include "smtp/preamble.h"

/* --- accepted --- */

/* A client that would begin in clear is told so (RFC 5321 3.8). Returns the length of the words. */
static size_t arrival_refusing_words(
	const struct front *front, enum end_reason reason, uint8_t out[static SMTP_PREAMBLE_REPLY_MAX])
{
	struct wire_writer w = wire_writer(out, SMTP_PREAMBLE_REPLY_MAX);

	if (conf_has_preamble(front->conf))
		smtp_own_write(&w, reason == END_NOT_CAPTURED ? SMTP_OWN_MISCONFIGURED : SMTP_OWN_TOO_MANY_CONNECTIONS);
	return (size_t)wire_writer_len(&w);
}

void connection_turn_away(struct connection_home *home, const struct front *front, int fd, enum end_reason reason)
{
	static struct log_pace paces[END_REASON_COUNT];
	uint8_t words[SMTP_PREAMBLE_REPLY_MAX];

	log_event_paced(&paces[reason], LOG_INFO, NULL, "connection refused", "listener=%s reason=%s",
		front->conf->name, end_reason_text(reason));
	counter_add(&home->counters.ended[reason], 1);
	counter_add(&home->of_listeners[front->index].refused, 1);
	listener_refuse_accepted(fd, words, arrival_refusing_words(front, reason, words));
}

/* Did clients of its source crash earlier processes? */
static bool arrival_is_suspect(const struct connection *c)
{
	const struct notes *n = c->home->shared->notes;

	return n && suspects_refuse(&n->shared->suspects, &c->endpoints.client, connection_now_ms(c));
}

/* Until it is closed, it holds a place of the total. Its source has no share left, so it is closed at once. */
static void arrival_refuse_source(struct connection *c)
{
	uint8_t words[SMTP_PREAMBLE_REPLY_MAX];
	const size_t len = arrival_refusing_words(c->front, END_LIMIT_SOURCE, words);

	connection_end(c, END_LIMIT_SOURCE,
		discard_behind_words(stream_fd(&c->busy->client), words, len) ? END_AT_ONCE : END_RESET);
}

static void arrival_is_known(struct connection *c)
{
	if (blocked_has(c->home->shared->blocked, &c->endpoints.client, connection_now_ms(c))) {
		connection_end(c, END_OPERATOR, END_RESET);
		return;
	}
	if (admission_enter_source(c->home->shared->admission, &c->endpoints.client) < 0) {
		arrival_refuse_source(c);
		return;
	}
	c->now.source = SOURCE_COUNTED;
	if (arrival_is_suspect(c)) {
		counter_add(&c->home->counters.suspects_refused, 1);
		connection_end(c, END_SUSPECTED, END_RESET);
		return;
	}
	if (conf_has_preamble(c->front->conf))
		connection_preamble_begin(c);
	else
		connection_to(c, CONNECTION_HELLO);
}

/* The unique id goes where the rest of the connection is. */
static int arrival_take_header(struct connection *c, const struct proxy_header *h)
{
	struct endpoints *e = &c->endpoints;
	int r = endpoints_from_proxy(e, h);

	if (r < 0 || !e->unique_id)
		return r;
	uint8_t *id = fine_block_take(&c->home->blocks, e->unique_id_len);
	if (id)
		memcpy(id, e->unique_id, e->unique_id_len);
	else
		e->unique_id_len = 0;
	free(e->unique_id);
	e->unique_id = id;
	return id ? 0 : CSSL_E_NO_MEMORY;
}

static void arrival_begin(
	struct connection *c, const struct sockaddr_storage *peer, const struct sockaddr_storage *server)
{
	endpoints_from_sockets(&c->endpoints, (const struct sockaddr *)peer, (const struct sockaddr *)server);
	connection_arm_deadline(c);
	connection_begin_reading(c);
	if (c->front->conf->proxy_protocol == CONF_OFF) {
		arrival_is_known(c);
	} else if (!address_nets_have(
			   c->front->conf->trusted, c->front->conf->trusted_count, (const struct sockaddr *)peer)) {
		counter_add(&c->home->counters.proxy_untrusted, 1);
		connection_end(c, END_PROXY_HEADER_BAD, END_RESET);
	}
}

void connection_accept(struct connection_home *home, struct front *front, int fd, const struct sockaddr_storage *peer,
	const struct sockaddr_storage *server)
{
	fault_at("client.accepted", NULL, NULL);
	if (admission_enter_beyond(home->shared->admission, front->beyond) < 0) {
		connection_turn_away(home, front, fd, END_LIMIT_TOTAL);
		return;
	}
	struct connection *c = connection_create(home, front);
	if (!c) {
		connection_turn_away(home, front, fd, END_INTERNAL);
		admission_leave(home->shared->admission);
		return;
	}
	stream_open_accepted(&c->busy->client, home->worker, &connection_client_ops, fd);
	counter_add(&home->counters.connections_accepted, 1);
	counter_add(&connection_counts(c)->accepted, 1);
	connection_join(c);
	arrival_begin(c, peer, server);
	connection_save_if_changed(c);
}

/* --- an agent for the handshake --- */

static void arrival_send_open(struct connection *c, bool keep)
{
	Cssl__LinkOpen m = CSSL__LINK_OPEN__INIT;
	Cssl__Endpoints e;

	endpoints_message(&c->endpoints, &e);
	m.connection_id = (ProtobufCBinaryData){ CONNECTION_ID_LEN, c->id.bytes };
	m.listener = c->front->conf->name;
	m.endpoints = &e;
	m.disposition = keep ? CSSL__LINK_OPEN__DISPOSITION__KEEP : CSSL__LINK_OPEN__DISPOSITION__HAND_OFF;
	link_send_message(c->now.current.link, c->now.current.stream, FRAME_OPEN, &m.base);
}

static void arrival_open_later(struct connection *c)
{
	connection_assign(c, NO_AGENT, NO_AGENT);
	if (c->now.state == CONNECTION_WAITING)
		connection_arm_deadline(c);
	else
		connection_to(c, CONNECTION_WAITING);
}

/* Usually an agent comes up soon, because its supervisor starts it again. */
static void arrival_wait_for_agent(struct connection *c)
{
	const uint64_t now_ms = connection_now_ms(c);

	if (c->busy->wait_began_ms == 0) {
		c->busy->wait_began_ms = now_ms;
		counter_add(&c->home->counters.hellos_held, connection_limits(c)->agent_wait_ms > 0);
	}
	if (now_ms - c->busy->wait_began_ms >= connection_limits(c)->agent_wait_ms) {
		connection_refuse(c, END_NO_AGENT, TLS_ALERT_INTERNAL_ERROR);
		return;
	}
	arrival_open_later(c);
}

static void arrival_open_except(struct connection *c, int except)
{
	struct dispatch d;
	struct link *l = NULL;

	if (++c->now.attempts > ATTEMPTS_MAX) {
		connection_refuse(c, END_OVERLOADED, TLS_ALERT_INTERNAL_ERROR);
		return;
	}
	if (dispatch_hello(&c->home->links, c->front, &c->endpoints.client, c->now.hello, except, &d) == 0)
		l = links_choose(&c->home->links, d.handshake_agent, &c->id);
	if (!l) {
		arrival_wait_for_agent(c);
		return;
	}
	if (connection_begin_stream(c, l) < 0)
		return;
	c->busy->wait_began_ms = 0;
	c->now.account.base = c->now.queued; /* what was sent in clear does not count for this agent */
	c->now.epoch = 1;
	connection_assign(c, d.affinity_agent, d.handshake_agent);
	if (c->now.state != CONNECTION_HANDSHAKING)
		connection_to(c, CONNECTION_HANDSHAKING);
	connection_save_before_telling(c); /* law 2, as for each next epoch */
	arrival_send_open(c, d.handshake_agent == d.affinity_agent);
	connection_send_records(c);
}

void connection_open_again(struct connection *c, uint64_t left_ms)
{
	if (left_ms == 0) {
		connection_refuse(c, END_HANDSHAKE_TIMEOUT, TLS_ALERT_INTERNAL_ERROR);
		return;
	}
	c->now.attempts = 0;
	arrival_open_except(c, NO_AGENT);
}

static void arrival_begin_anew(struct connection *c)
{
	position_init(&c->now.position);
	kept_return(&c->busy->kept);
	connection_read_less(c);
}

void connection_open_refused(struct connection *c, Cssl__LinkRefused__Reason reason)
{
	int refused_by = link_agent(c->now.current.link);

	counter_add(&c->home->counters.opens_refused, 1);
	connection_release_current(c);
	if (c->now.position.server_records) {
		connection_end(c, END_HANDSHAKE_FAILED, END_RESET); /* it cannot start again in the middle */
		return;
	}
	arrival_begin_anew(c);
	if (reason == CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER && c->now.attempts >= ATTEMPTS_MAX)
		connection_refuse(c, END_NO_AGENT, TLS_ALERT_INTERNAL_ERROR);
	else
		arrival_open_except(c, refused_by);
}

/* At once, on another agent. If that one is lost as well, several died together. Their other links report it soon,
 * and the agents that are left then are alive. */
void connection_open_anew(struct connection *c, int lost)
{
	counter_add(&c->home->counters.takeovers_restarted, 1);
	arrival_begin_anew(c);
	if (c->now.restarts++ == 0)
		arrival_open_except(c, lost);
	else
		arrival_open_later(c);
}

/* --- its first bytes --- */

size_t connection_take_proxy(struct connection *c, uint8_t *data, size_t len)
{
	struct proxy_header h;
	size_t taken;
	int r = proxy_header_parse(data, len, &h, &taken);

	if (r == PROXY_INCOMPLETE)
		return 0;
	connection_touch(c);
	if (r == 0)
		r = arrival_take_header(c, &h);
	if (r < 0) {
		counter_add(&c->home->counters.proxy_malformed, 1);
		connection_end(c, END_PROXY_HEADER_BAD, END_RESET);
		return len;
	}
	return taken;
}

void connection_header_is_over(struct connection *c)
{
	connection_work_on_bytes_begins(c);
	connection_fault_at(c, "records.came");
	arrival_is_known(c);
}

/* A client that speaks another protocol is told so, if there are words for that. But one that goes on in clear behind
 * STARTTLS gets no answer in clear. */
static void arrival_end_unless_tls(struct connection *c, enum first_bytes what)
{
	size_t len;

	if (c->busy->preamble && first_bytes_is_text(what)) {
		connection_clear_reset_injected(c);
		return;
	}
	const void *answer = first_bytes_answer(what, &len);
	connection_end_saying(c, first_bytes_reason(what), answer, len);
}

static void arrival_end_for_handshakes(struct connection *c, counter *which)
{
	counter_add(which, 1);
	connection_end(c, END_LIMIT_HANDSHAKES, END_RESET);
}

static bool arrival_may_shake_hands(struct connection *c)
{
	struct connection_home *home = c->home;
	struct handshake_place *loser;

	c->busy->place.holder = c;
	if (handshake_limit_enter(
		    home->handshakes, &c->busy->place, &c->endpoints.client, connection_now_ms(c), &loser) < 0) {
		arrival_end_for_handshakes(c, &home->counters.handshakes_refused);
		return false;
	}
	if (loser)
		arrival_end_for_handshakes(loser->holder, &home->counters.handshakes_displaced);
	connection_home_look_for_storm(home);
	return true;
}

size_t connection_take_hello(struct connection *c, uint8_t *data, size_t len)
{
	enum hello_offer kind;
	int r = hello_look(data, len, c->home->id_check_key, c->home->hello_scratch, &kind);

	if (r == HELLO_INCOMPLETE)
		return 0;
	if (r == CSSL_E_TOO_LONG) {
		counter_add(&c->home->counters.hellos_too_long, 1);
		connection_refuse(c, END_HANDSHAKE_FAILED, TLS_ALERT_ILLEGAL_PARAMETER);
		return len;
	}
	if (r < 0) {
		arrival_end_unless_tls(c, first_bytes_judge(data, len));
		return len;
	}
	c->now.hello = (uint8_t)kind;
	counter_add(&c->home->counters.hellos, 1);
	if (kind == HELLO_RESUMING)
		counter_add(&c->home->counters.hellos_resuming, 1);
	if (!arrival_may_shake_hands(c))
		return len;
	arrival_open_except(c, NO_AGENT);
	return connection_is_over(c) ? len : 0;
}
