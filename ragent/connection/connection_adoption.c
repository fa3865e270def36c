/* connection_adoption.c: finds the next owner, asks it, and takes its answer. */
#include <string.h>

#include "net/points/fault.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "proto/link_words.h"
#include "ragent/connection/connection_client.h"
#include "ragent/connection/connection_owner.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"
#include "ragent/dispatch/dispatch.h"

#define WAKE_RETRY_MS     100u
#define WAKE_ATTEMPTS_MAX 50u /* so many attempts to find an agent that is up */

bool connection_needs_owner(const struct connection *c)
{
	return (c->busy && kept_len(&c->busy->kept) > 0) || c->now.tail == TAIL_VIOLATION ||
	       c->now.position.response != POSITION_AT_CHECKPOINT || connection_service(c)->rest == SERVICE_NEVER_RESTS;
}

/* --- what the adopter is told --- */

static Cssl__ResponseState adoption_response_state(const struct connection *c)
{
	static const Cssl__ResponseState states[] = {
		[POSITION_AT_CHECKPOINT] = CSSL__RESPONSE_STATE__RESPONSE_AT_CHECKPOINT,
		[POSITION_NOTHING_DELIVERED] = CSSL__RESPONSE_STATE__RESPONSE_NOTHING_DELIVERED,
		[POSITION_PARTLY_DELIVERED] = CSSL__RESPONSE_STATE__RESPONSE_PARTLY_DELIVERED,
	};
	const struct position *p = &c->now.position;

	const bool replays = position_replays_from(p, c->busy->kept.first_record);
	const bool resolves = connection_service(c)->loss == SERVICE_RESOLVES_LOSS;

	if (c->now.cause != CSSL__CAUSE__CAUSE_TAKEOVER)
		return states[p->response];
	/* before the count of losses: without its records, a service that resolves the loss repeats nothing that might
	 * be the reason of the losses; it can only ask */
	if (resolves && p->response != POSITION_AT_CHECKPOINT && !replays)
		return CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE;
	if (c->busy->exposure.losses >= EXPOSURE_LOSSES_MAX)
		return CSSL__RESPONSE_STATE__RESPONSE_POISONED;
	if (p->response == POSITION_NOTHING_DELIVERED && !replays)
		return CSSL__RESPONSE_STATE__RESPONSE_NOT_REPLAYABLE;
	return states[p->response];
}

static void adoption_fill_position(const struct position *from, Cssl__Position *out)
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

/* In test builds: values that every agent has to refuse. */
static void adoption_lie(const struct connection *c, Cssl__LinkSslId *m, Cssl__Position *p)
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

static void adoption_send_ssl_id(struct connection *c)
{
	Cssl__LinkSslId m = CSSL__LINK_SSL_ID__INIT;
	Cssl__Endpoints e;
	Cssl__Position p;

	endpoints_message(&c->endpoints, &e);
	adoption_fill_position(&c->now.position, &p);
	m.connection_id = (ProtobufCBinaryData){ CONNECTION_ID_LEN, c->id.bytes };
	m.epoch = c->now.epoch;
	m.cause = (Cssl__Cause)c->now.cause;
	m.position = &p;
	m.response_state = adoption_response_state(c);
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
	if (c->busy->note.current)
		m.sealed_download = (ProtobufCBinaryData){ c->busy->note.current->len, c->busy->note.current->data };
	adoption_lie(c, &m, &p);
	link_send_message(c->now.current.link, c->now.current.stream, FRAME_SSL_ID, &m.base);
}

/* --- to an agent --- */

static void adoption_ask(struct connection *c, struct link *l, uint16_t epoch, enum adopter_asked asked)
{
	if (connection_begin_stream(c, l) < 0)
		return;
	c->now.epoch = epoch;
	c->busy->asked = asked;
	connection_assign(c, link_agent(l), NO_AGENT);
	if (c->now.state != CONNECTION_ADOPTING)
		connection_to(c, CONNECTION_ADOPTING);
	connection_save_before_telling(c); /* law 2: before the epoch leaves RAgent, the next process knows of it */
	adoption_send_ssl_id(c);
	fault_at("ssl_id.written", NULL, NULL);
	connection_send_records(c);
}

/* The next ownership begins on @l, or the connection ends. */
static void adoption_begin(struct connection *c, struct link *l)
{
	const int raised = fault_at("epoch.raise", NULL, NULL) != FAULT_FAIL;

	if (c->now.epoch == UINT16_MAX) /* an epoch is part of a TLS 1.2 nonce */
		connection_end(c, END_MOVE_UNSAFE, END_RESET);
	else
		adoption_ask(c, l, (uint16_t)(c->now.epoch + raised), ADOPTER_ASKED_ONCE);
}

/* The link on which it should continue: to @wanted; if that agent is not available, to another one, but not to
 * @except. NULL: there is none. */
static struct link *adoption_find(struct connection *c, int wanted, int except)
{
	struct link *l = NULL;

	if (wanted != NO_AGENT && agents_take_new(connection_agents(c), wanted))
		l = links_choose(&c->home->links, wanted, &c->id);
	if (l)
		return l;
	int other = dispatch_owner(&c->home->links, c->front, &c->endpoints.client, except);
	return other == NO_AGENT ? NULL : links_choose(&c->home->links, other, &c->id);
}

/* --- woken, or its owner was lost --- */

static void adoption_wake_in(struct connection *c, uint64_t in_ms)
{
	if (++c->now.attempts <= WAKE_ATTEMPTS_MAX)
		connection_set_deadline(c, in_ms);
	else
		connection_end(c, END_NO_AGENT, END_RESET);
}

void connection_wake_in_turn(struct connection *c)
{
	adoption_wake_in(c, pace_delay_ms(&c->home->takeovers, connection_now_ms(c)));
}

/* The client of a lost owner begins to wait. */
static void adoption_pause_begins(struct connection *c)
{
	if (c->now.cause == CSSL__CAUSE__CAUSE_TAKEOVER && c->busy->pause_began_ms == 0)
		c->busy->pause_began_ms = connection_now_ms(c);
}

void connection_wake(struct connection *c, int except)
{
	/* where connections do not follow an address, the last owner still has open backend connections */
	int wanted = front_hands_off(c->front) || c->now.owner == except ? NO_AGENT : c->now.owner;
	struct link *l = adoption_find(c, wanted, except);

	adoption_pause_begins(c);
	if (c->busy->move_began_ns == 0)
		connection_owner_goes(c);
	if (l)
		adoption_begin(c, l);
	else
		adoption_wake_in(c, WAKE_RETRY_MS);
}

/* Do not choose another link of the lost agent, even if RAgent has not seen its end yet. */
void connection_adopt_lost(struct connection *c, int lost)
{
	uint64_t delay_ms = pace_delay_ms(&c->home->takeovers, connection_now_ms(c));

	counter_add(&c->home->counters.takeovers_adopted, 1);
	adoption_pause_begins(c);
	connection_owner_goes(c);
	if (delay_ms == 0) {
		connection_wake(c, lost);
		return;
	}
	counter_add(&c->home->counters.takeovers_delayed, 1);
	adoption_wake_in(c, delay_ms);
}

/* --- its owner froze it --- */

/* An ordered move that did not begin, or whose target refused, goes back to the owner that froze the connection. */
static struct link *adoption_way_back(const struct connection *c, const struct link *not_this)
{
	return c->busy->frozen.link && c->busy->frozen.link != not_this && link_open(c->busy->frozen.link)
		       ? c->busy->frozen.link
		       : NULL;
}

/* The target of the order. If the connection only leaves a draining agent, any other agent will do, unless its
 * backend connection was passed already. */
static struct link *adoption_commanded(struct connection *c, int from)
{
	if (c->now.cause == CSSL__CAUSE__CAUSE_DRAIN && c->now.backend == CSSL__BACKEND_HALF__BACKEND_NONE)
		return adoption_find(c, c->now.move_target, from);
	return links_choose(&c->home->links, c->now.move_target, &c->id);
}

/* It froze the connection because it was told to let it rest; the answer may be late. */
static bool adoption_is_to_rest(const struct connection *c)
{
	return c->now.cause == CSSL__CAUSE__CAUSE_REST &&
	       (c->now.state == CONNECTION_MOVING ||
		       (c->now.state == CONNECTION_OWNED && c->busy->move_answer == MOVE_ANSWER_OVERDUE));
}

static void adoption_rest(struct connection *c, int from)
{
	counter_add(&c->home->counters.rested, 1);
	connection_to_rest(c, OWNERSHIP_REST,
		&(struct move_result){ .outcome = MOVE_DONE, .from = from, .to = NO_AGENT, .epoch = c->now.epoch });
	if (connection_needs_owner(c)) /* a record came while the owner froze it */
		connection_wake(c, NO_AGENT);
	else if (c->now.tail == TAIL_FIN)
		connection_end(c, END_CLIENT_CLOSED, END_ORDERLY);
	else
		connection_drain_if_idle(c);
}

void connection_hand_over(struct connection *c)
{
	int from = link_agent(c->now.current.link);
	struct link *l;

	/* not ended yet: if no agent adopts it, this one gets it back, under the next epoch (law 2) */
	c->busy->frozen = c->now.current;
	c->now.current = (struct place){ NULL, 0 };
	link_wait_cancel(&c->busy->waiter);
	if (adoption_is_to_rest(c)) {
		adoption_rest(c, from);
		return;
	}
	c->now.attempts = 0;
	const bool was_sent_late = c->busy->move_answer == MOVE_ANSWER_OVERDUE && c->now.move_target != NO_AGENT;
	if (c->now.state == CONNECTION_MOVING || was_sent_late) {
		l = adoption_commanded(c, from);
	} else {
		c->now.cause =
			c->now.state == CONNECTION_OWNED ? CSSL__CAUSE__CAUSE_DRAIN : CSSL__CAUSE__CAUSE_HAND_OFF;
		connection_owner_goes(c);
		l = adoption_find(c, c->now.affinity_agent == from ? NO_AGENT : c->now.affinity_agent, from);
	}
	if (!l)
		l = adoption_way_back(c, NULL);
	if (l)
		adoption_begin(c, l);
	else
		connection_end(c, END_MOVE_FAILED, END_RESET);
}

/* --- its answer --- */

/* No agent owns it. A refusal for lack of room may be different in the next moment. */
static bool adoption_may_try_later(const struct connection *c, Cssl__LinkRefused__Reason reason)
{
	return (c->now.cause == CSSL__CAUSE__CAUSE_TAKEOVER || c->now.cause == CSSL__CAUSE__CAUSE_WAKE) &&
	       (reason == CSSL__LINK_REFUSED__REASON__BUSY || reason == CSSL__LINK_REFUSED__REASON__LEAVING);
}

/* SSL_ID may have been lost with the link or the process. Then its agent is no owner, and can be asked again. If it was
 * one, it knows that epoch and refuses (law 2). */
static void adoption_not_reattached(struct connection *c, struct link *l)
{
	if (c->busy->resumes != CONNECTION_ADOPTING) {
		connection_reattach_failed(c);
		return;
	}
	counter_add(&c->home->counters.adopts_repeated, 1);
	adoption_ask(c, l, c->now.epoch, ADOPTER_ASKED_AGAIN);
}

void connection_adopt_refused(struct connection *c, Cssl__LinkRefused__Reason reason)
{
	struct link *refused = c->now.current.link;
	int refused_by = link_agent(refused);

	connection_release_current(c);
	if (c->now.state == CONNECTION_REATTACHING) {
		adoption_not_reattached(c, refused);
		return;
	}
	counter_add(&c->home->counters.adopts_refused, 1);
	if (c->busy->asked == ADOPTER_ASKED_AGAIN) { /* law 2: it may have been the owner, and forgot the stream */
		connection_reattach_failed(c);
		return;
	}
	if (reason == CSSL__LINK_REFUSED__REASON__NONCE_UNSAFE) {
		connection_end(c, END_MOVE_UNSAFE, END_RESET);
		return;
	}
	struct link *l = adoption_way_back(c, refused);
	if (!l && ++c->now.attempts <= ATTEMPTS_MAX)
		l = adoption_find(c, NO_AGENT, refused_by);
	if (l) {
		adoption_begin(c, l);
	} else if (adoption_may_try_later(c, reason)) {
		connection_assign(c, NO_AGENT, NO_AGENT);
		connection_to(c, CONNECTION_RESTING);
		adoption_wake_in(c, WAKE_RETRY_MS);
	} else {
		connection_end(c, END_MOVE_FAILED, END_RESET);
	}
}

/* The agent that gave it up for this ownership; NO_AGENT: it rested, or its owner was lost. A frozen owner may be
 * lost before its successor has adopted; it counts here all the same. */
static int adoption_former_owner(const struct connection *c)
{
	if (c->busy->frozen.link)
		return link_agent(c->busy->frozen.link);
	return c->now.cause == CSSL__CAUSE__CAUSE_DRAIN || c->now.cause == CSSL__CAUSE__CAUSE_MOVE ? c->now.owner
												   : NO_AGENT;
}

static enum ownership_cause adoption_cause(const struct connection *c)
{
	static const uint8_t causes[] = { [CSSL__CAUSE__CAUSE_HAND_OFF] = OWNERSHIP_HAND_OFF,
		[CSSL__CAUSE__CAUSE_MOVE] = OWNERSHIP_MOVE,
		[CSSL__CAUSE__CAUSE_DRAIN] = OWNERSHIP_DRAIN,
		[CSSL__CAUSE__CAUSE_WAKE] = OWNERSHIP_WAKE,
		[CSSL__CAUSE__CAUSE_TAKEOVER] = OWNERSHIP_TAKEOVER,
		[CSSL__CAUSE__CAUSE_REST] = OWNERSHIP_REST };

	return causes[c->now.cause];
}

int connection_in_adopted(struct connection *c, const struct frame *f, const void *message)
{
	const Cssl__LinkAdopted *adopted = message;

	if (adopted->epoch != c->now.epoch)
		return CSSL_E_MISMATCH;
	int from = adoption_former_owner(c);
	int to = link_agent(c->now.current.link);
	uint64_t pause_us = connection_note_owner(c, to, adoption_cause(c));
	bool is_usual = c->now.cause == CSSL__CAUSE__CAUSE_HAND_OFF || c->now.cause == CSSL__CAUSE__CAUSE_WAKE;
	enum log_level level = is_usual ? LOG_DEBUG : LOG_INFO;

	connection_release_frozen(c, FROZEN_HEARS);
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
	return 0;
}
