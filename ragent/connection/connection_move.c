/* connection_move.c: chooses the next owner of a connection: the agent of the handshake, and the successor of a
 * frozen or lost owner. Each ownership gets the next epoch and a stream of its own, and all records that are not
 * consumed are sent again.
 */
#include <string.h>

#include "net/log.h"
#include "proto/link_words.h"
#include "ragent/connection/connection_internal.h"
#include "ragent/dispatch/dispatch.h"

/* --- places --- */

struct agents *connection_agents(const struct connection *c)
{
	return c->home->shared->agents;
}

void connection_lose_place(struct connection *c, struct place *p)
{
	agents_leave(connection_agents(c), link_agent(p->link), AGENT_OWNERSHIPS);
	*p = (struct place){ NULL, 0 };
}

static void leave_place(struct connection *c, struct place *p)
{
	if (!p->link)
		return;
	link_stream_end(p->link, p->stream);
	connection_lose_place(c, p);
}

void connection_release_current(struct connection *c)
{
	if (c->busy)
		link_wait_cancel(&c->busy->waiter);
	leave_place(c, &c->now.current);
}

void connection_forget_frozen(struct connection *c)
{
	if (c->busy)
		leave_place(c, &c->busy->frozen);
}

void connection_release_frozen(struct connection *c)
{
	if (c->busy && c->busy->frozen.link)
		link_send(c->busy->frozen.link, c->busy->frozen.stream, FRAME_DETACH, 0, NULL, 0);
	connection_forget_frozen(c);
}

struct stream_name connection_stream_name(const struct connection *c)
{
	return (struct stream_name){ .boot_id = c->home->shared->boot_id,
		.id = c->now.current.stream,
		.agent = (int16_t)link_agent(c->now.current.link),
		.agent_worker = (uint16_t)link_agent_worker(c->now.current.link) };
}

int connection_begin_stream(struct connection *c, struct link *l)
{
	connection_touch(c);
	connection_owe_queued(c);
	uint32_t stream = link_stream_begin(l, c);

	if (stream == 0)
		return -1;
	c->now.current = (struct place){ l, stream };
	agents_enter(connection_agents(c), link_agent(l), AGENT_OWNERSHIPS);
	c->now.account = (struct stream_account){ .base = c->slot.bytes_written,
		.received = c->now.queued - c->slot.bytes_written,
		.stream = connection_stream_name(c) };
	c->busy->again = (struct again){ 0 };
	c->now.tail_told = TAIL_UNTOLD;
	c->busy->move_answer = MOVE_ANSWER_NOT_DUE;
	c->busy->orders = 0;
	counter_add(&c->home->counters.records_replayed, kept_sent_records(&c->busy->kept));
	kept_rewind(&c->busy->kept);
	return 0;
}

/* --- the handshake --- */

static void send_open(struct connection *c, bool keep)
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

void connection_open_later(struct connection *c)
{
	connection_assign(c, NO_AGENT);
	connection_handshake_at(c, NO_AGENT);
	if (c->now.state == CONNECTION_WAITING)
		connection_arm_deadline(c);
	else
		connection_to(c, CONNECTION_WAITING);
}

/* Usually an agent comes up soon, because its supervisor starts it again. */
static void wait_for_agent(struct connection *c)
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
	connection_open_later(c);
}

void connection_open_again(struct connection *c, uint64_t left_ms)
{
	if (left_ms == 0) {
		connection_refuse(c, END_HANDSHAKE_TIMEOUT, TLS_ALERT_INTERNAL_ERROR);
		return;
	}
	c->now.attempts = 0;
	connection_send_open(c, NO_AGENT);
}

void connection_send_open(struct connection *c, int except)
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
		wait_for_agent(c);
		return;
	}
	if (connection_begin_stream(c, l) < 0) {
		connection_end(c, END_INTERNAL, END_RESET);
		return;
	}
	c->busy->wait_began_ms = 0;
	c->now.account.base = c->now.queued; /* what was sent in clear does not count for this agent */
	c->now.epoch = 1;
	connection_assign(c, d.affinity_agent);
	connection_handshake_at(c, d.handshake_agent);
	if (c->now.state != CONNECTION_HANDSHAKING)
		connection_to(c, CONNECTION_HANDSHAKING);
	connection_save_before_telling(c);
	send_open(c, d.handshake_agent == d.affinity_agent);
	connection_send_records(c);
}

void connection_begin_anew(struct connection *c)
{
	position_init(&c->now.position);
	kept_return(&c->busy->kept);
	connection_read_less(c, stream_kept(&c->busy->client));
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
	connection_begin_anew(c);
	if (reason == CSSL__LINK_REFUSED__REASON__UNKNOWN_LISTENER && c->now.attempts >= ATTEMPTS_MAX)
		connection_refuse(c, END_NO_AGENT, TLS_ALERT_INTERNAL_ERROR);
	else
		connection_send_open(c, refused_by);
}

/* --- adoption --- */

static void fill_position(const struct position *from, Cssl__Position *out)
{
	cssl__position__init(out);
	out->client_records = from->now.client_records;
	out->offset = from->now.offset;
	out->read_generation = from->now.read_generation;
	out->read_sequence = from->now.read_sequence;
	out->server_records = from->server_records;
	out->write_generation = from->write_generation;
	out->write_sequence = from->write_sequence;
}

#ifdef CSSL_TEST_POINTS
/* Values that every agent has to refuse. */
static void lie(const struct connection *c, Cssl__LinkSslId *m, Cssl__Position *p)
{
	const struct ragent_shared *shared = c->home->shared;

	if (fault_at("ssl_id.listener", NULL, NULL) == FAULT_FAIL)
		m->listener = shared->fronts[(size_t)(c->front - shared->fronts + 1) % shared->front_count].conf->name;
	if (fault_at("ssl_id.copy", NULL, NULL) == FAULT_FAIL)
		m->sealed_copy.len = 0;
	if (fault_at("ssl_id.cause", NULL, NULL) == FAULT_FAIL)
		m->cause = CSSL__CAUSE__CAUSE_WAKE;
	if (fault_at("ssl_id.sequence", NULL, NULL) == FAULT_FAIL)
		p->write_sequence--;
}
#else
static void lie(const struct connection *c, Cssl__LinkSslId *m, Cssl__Position *p)
{
	(void)c, (void)m, (void)p;
}
#endif

static void send_ssl_id(struct connection *c)
{
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;
	Cssl__Endpoints e;
	Cssl__Position p;

	endpoints_message(&c->endpoints, &e);
	fill_position(&c->now.position, &p);
	m.connection_id = (ProtobufCBinaryData){ CONNECTION_ID_LEN, c->id.bytes };
	m.epoch = c->now.epoch;
	m.cause = (Cssl__Cause)c->now.cause;
	m.position = &p;
	m.response_state = connection_response_state(c);
	m.response_records = c->now.position.response_records;
	m.response_bytes = c->now.position.response_bytes;
	m.read_closed = c->now.position.now.read_closed;
	m.write_closed = c->now.server_side == SERVER_CLOSE_NOTIFY || c->now.server_side == SERVER_SAID_LAST;
	m.sealed_copy = (ProtobufCBinaryData){ c->now.copies.current->len, c->now.copies.current->data };
	m.backend = (Cssl__BackendHalf)c->now.backend;
	m.listener = c->front->conf->name;
	m.endpoints = &e;
	m.copy_age_s = (uint32_t)((connection_now_ms(c) - c->now.copied_ms) / 1000);
	m.undrained = c->now.queued - c->slot.bytes_written;
	m.exposed_records = c->busy->exposure.records;
	m.fate = c->busy->exposure.fate == PEER_DEAD ? CSSL__FATE__FATE_DEAD : CSSL__FATE__FATE_UNKNOWN;
	if (c->busy->download)
		m.sealed_download = (ProtobufCBinaryData){ c->busy->download->len, c->busy->download->data };
	lie(c, &m, &p);
	link_send_message(c->now.current.link, c->now.current.stream, FRAME_SSL_ID, &m.base);
}

static void ask_to_adopt(struct connection *c, struct link *l, uint16_t epoch, enum adopter_asked asked)
{
	if (connection_begin_stream(c, l) < 0) {
		connection_end(c, END_INTERNAL, END_RESET);
		return;
	}
	c->now.epoch = epoch;
	c->busy->asked = asked;
	connection_assign(c, link_agent(l));
	if (c->now.state != CONNECTION_ADOPTING)
		connection_to(c, CONNECTION_ADOPTING);
	connection_save_before_telling(c);
	send_ssl_id(c);
	fault_at("ssl_id.written", NULL, NULL);
	connection_send_records(c);
}

/* The next ownership begins on @l, or the connection ends. */
void connection_adopt_on(struct connection *c, struct link *l)
{
	const int raised = fault_at("epoch.raise", NULL, NULL) != FAULT_FAIL;

	if (c->now.epoch == UINT16_MAX) /* an epoch is part of a TLS 1.2 nonce */
		connection_end(c, END_MOVE_UNSAFE, END_RESET);
	else
		ask_to_adopt(c, l, (uint16_t)(c->now.epoch + raised), ADOPTER_ASKED_ONCE);
}

void connection_adopt_again(struct connection *c, struct link *l)
{
	counter_add(&c->home->counters.adopts_repeated, 1);
	ask_to_adopt(c, l, c->now.epoch, ADOPTER_ASKED_AGAIN);
}

/* The link on which it should continue: @wanted, or another one if that agent is not available. NULL: none. */
struct link *connection_find_adopter(struct connection *c, int wanted, int except)
{
	struct link *l = NULL;

	if (wanted != NO_AGENT && agents_take_new(connection_agents(c), wanted))
		l = links_choose(&c->home->links, wanted, &c->id);
	if (l)
		return l;
	int other = dispatch_owner(&c->home->links, c->front, &c->endpoints.client, except);
	return other == NO_AGENT ? NULL : links_choose(&c->home->links, other, &c->id);
}

int connection_place(const struct connection *c)
{
	return c->now.current.link ? link_agent(c->now.current.link) : NO_AGENT;
}

/* An ordered move that did not begin, or whose target refused, goes back to the owner that froze the connection. */
static struct link *way_back(const struct connection *c, const struct link *not_this)
{
	return c->busy->frozen.link && c->busy->frozen.link != not_this && link_open(c->busy->frozen.link)
		       ? c->busy->frozen.link
		       : NULL;
}

/* The target of the order. If the connection only leaves a draining agent, any other agent will do, unless its
 * backend connection was passed already. */
static struct link *commanded_adopter(struct connection *c, int from)
{
	if (c->now.cause == CSSL__CAUSE__CAUSE_DRAIN && c->now.backend == CSSL__BACKEND_HALF__BACKEND_NONE)
		return connection_find_adopter(c, c->now.move_target, from);
	return links_choose(&c->home->links, c->now.move_target, &c->id);
}

/* It froze the connection because it was told to let it rest; the answer may be late. */
static bool is_to_rest(const struct connection *c)
{
	return c->now.cause == CSSL__CAUSE__CAUSE_REST &&
	       (c->now.state == CONNECTION_MOVING ||
		       (c->now.state == CONNECTION_OWNED && c->busy->move_answer == MOVE_ANSWER_OVERDUE));
}

void connection_hand_over(struct connection *c)
{
	int from = link_agent(c->now.current.link);
	struct link *l;

	if (is_to_rest(c)) {
		connection_handed_to_rest(c);
		return;
	}
	c->busy->frozen = c->now.current;
	c->now.current = (struct place){ NULL, 0 };
	link_wait_cancel(&c->busy->waiter);
	c->now.attempts = 0;
	const bool was_sent_late = c->busy->move_answer == MOVE_ANSWER_OVERDUE && c->now.move_target != NO_AGENT;
	if (c->now.state == CONNECTION_MOVING || was_sent_late) {
		l = commanded_adopter(c, from);
	} else {
		c->now.cause =
			c->now.state == CONNECTION_OWNED ? CSSL__CAUSE__CAUSE_DRAIN : CSSL__CAUSE__CAUSE_HAND_OFF;
		connection_owner_goes(c);
		l = connection_find_adopter(c, c->now.affinity_agent == from ? NO_AGENT : c->now.affinity_agent, from);
	}
	if (!l)
		l = way_back(c, NULL);
	if (l)
		connection_adopt_on(c, l);
	else
		connection_end(c, END_MOVE_FAILED, END_RESET);
}

/* No agent owns it. A refusal for lack of room may be different in the next moment. */
static bool may_try_later(const struct connection *c, Cssl__LinkRefused__Reason reason)
{
	return (c->now.cause == CSSL__CAUSE__CAUSE_TAKEOVER || c->now.cause == CSSL__CAUSE__CAUSE_WAKE) &&
	       (reason == CSSL__LINK_REFUSED__REASON__BUSY || reason == CSSL__LINK_REFUSED__REASON__LEAVING);
}

void connection_adopt_refused(struct connection *c, Cssl__LinkRefused__Reason reason)
{
	struct link *refused = c->now.current.link;
	int refused_by = link_agent(refused);

	counter_add(&c->home->counters.adopts_refused, 1);
	connection_release_current(c);
	if (c->busy->asked == ADOPTER_ASKED_AGAIN) { /* it may have been the owner, and forgot the stream */
		connection_reattach_failed(c);
		return;
	}
	if (reason == CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE) {
		connection_end(c, END_MOVE_UNSAFE, END_RESET);
		return;
	}
	struct link *l = way_back(c, refused);
	if (!l && ++c->now.attempts <= ATTEMPTS_MAX)
		l = connection_find_adopter(c, NO_AGENT, refused_by);
	if (l) {
		connection_adopt_on(c, l);
	} else if (may_try_later(c, reason)) {
		connection_assign(c, NO_AGENT);
		connection_to(c, CONNECTION_RESTING);
		connection_wake_later(c);
	} else {
		connection_end(c, END_MOVE_FAILED, END_RESET);
	}
}

/* The agent that gave it up for this ownership; NO_AGENT: it rested, or its owner was lost. A frozen owner may be
 * lost before its successor has adopted; it counts here all the same. */
static int former_owner(const struct connection *c)
{
	if (c->busy->frozen.link)
		return link_agent(c->busy->frozen.link);
	return c->now.cause == CSSL__CAUSE__CAUSE_DRAIN || c->now.cause == CSSL__CAUSE__CAUSE_MOVE ? c->now.owner
												   : NO_AGENT;
}

void connection_adopted(struct connection *c)
{
	int from = former_owner(c);
	int to = link_agent(c->now.current.link);
	uint64_t pause_us = connection_owned_by(c, to);
	bool is_usual = c->now.cause == CSSL__CAUSE__CAUSE_HAND_OFF || c->now.cause == CSSL__CAUSE__CAUSE_WAKE;
	enum log_level level = is_usual ? LOG_DEBUG : LOG_INFO;

	connection_release_frozen(c);
	counter_add(&c->home->counters.adopted, 1);
	c->now.attempts = 0;
	c->now.moves++;
	c->now.owner = (int16_t)to;
	connection_to(c, CONNECTION_OWNED);
	log_event(level, &c->id, "adopted", "from=%s to=%s epoch=%u cause=%s", agents_name(connection_agents(c), from),
		agents_name(connection_agents(c), to), c->now.epoch, link_cause_name((Cssl__Cause)c->now.cause));
	struct move_result done = {
		.outcome = MOVE_DONE, .from = from, .to = to, .epoch = c->now.epoch, .pause_us = pause_us
	};
	if (to != c->now.move_target && (c->now.cause != CSSL__CAUSE__CAUSE_DRAIN || to == from)) {
		done.outcome = MOVE_CONFLICT;
		done.reason = "the target agent refused it";
	}
	connection_report_move(c, &done);
	connection_resume_reading(c);
	connection_drain_if_idle(c);
}
