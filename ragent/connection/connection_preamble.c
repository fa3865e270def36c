/* connection_preamble.c: a client of service smtp before its TLS begins (RFC 3207). RAgent passes the bytes of
 * client and agent and reads none of them. RFC 3207 4.2 discards at STARTTLS all that was sent before. So no agent
 * owns anything here, and another agent may make the handshake.
 *
 * Injection (CVE-2011-0411): the agent reports how many bytes it had read when it answered STARTTLS. Before the
 * client gets that answer, RAgent compares this number with all bytes that came, including those in the kernel's
 * buffer. After the answer, only TLS records may come.
 *
 * Here is its life: which agent speaks with the client, what happens when that agent is
 * lost or leaves, and the end (connection_clear.c has the bytes in both directions). Until the client has the banner,
 * any agent can begin it again. Later RAgent itself sends 421 between two replies (RFC 5321 3.8).
 */
#include <stdlib.h>

#include "ragent/connection/connection_end.h"
#include "ragent/connection/connection_preamble.h"
#include "ragent/connection/connection_states.h"
#include "ragent/connection/connection_stream.h"
#include "ragent/dispatch/dispatch.h"
#include "smtp/preamble.h"

#define RETRY_MS        50u
#define AGENTS_GRACE_MS 2000u /* the agent's own time-out comes first, with its reply */

/* --- end --- */

/* The client has got a part of a reply. */
static bool preamble_is_amid_reply(const struct connection *c)
{
	return c->busy->preamble &&
	       (c->busy->preamble->now.said == PREAMBLE_PART_OF_REPLY || connection_lacks_bytes(c));
}

/* By a reply of RAgent between two replies of the agent; if that is impossible, by a reset. */
static void preamble_end(struct connection *c, enum end_reason reason, enum smtp_own words)
{
	uint8_t reply[SMTP_PREAMBLE_REPLY_MAX];
	struct wire_writer w = wire_writer(reply, sizeof reply);

	if (preamble_is_amid_reply(c)) {
		connection_end(c, reason, END_RESET);
		return;
	}
	smtp_own_write(&w, words);
	connection_end_saying(c, reason, reply, (size_t)wire_writer_len(&w));
}

/* Not a stop, which waits for the end of a mail. */
static bool preamble_ends_at_once(enum end_reason reason)
{
	return reason == END_IDLE_TIMEOUT || reason == END_BACKEND_TIMEOUT || reason == END_OPERATOR;
}

/* A stop lets a mail go on, so a time limit is told behind it. */
static bool preamble_was_told(const struct preamble *p, enum end_reason reason)
{
	return p->now.finishing == PREAMBLE_FINISHING && (!preamble_ends_at_once(reason) || p->now.told == reason);
}

/* The agent sends the last reply, because it knows which commands it has answered. */
void connection_preamble_finish(struct connection *c, enum end_reason reason)
{
	struct preamble *p = c->busy->preamble;
	uint8_t byte = (uint8_t)reason;

	if (!c->now.current.link || reason == END_DRAIN_TIMEOUT) { /* its agent has had its time */
		preamble_end(c, reason, SMTP_OWN_SHUTTING_DOWN);
		return;
	}
	if (preamble_was_told(p, reason)) {
		if (preamble_ends_at_once(reason))
			connection_end(c, reason, END_RESET);
		return;
	}
	p->now.finishing = PREAMBLE_FINISHING;
	p->now.told = byte;
	link_send(c->now.current.link, c->now.current.stream, FRAME_FINISH, 0, &byte, 1);
	if (c->now.state == CONNECTION_PREAMBLE)
		connection_arm_deadline(c);
	else if (preamble_ends_at_once(reason))
		connection_set_deadline(c, AGENTS_GRACE_MS);
}

void connection_preamble_drop(struct connection *c)
{
	struct preamble *p = c->busy->preamble;

	if (!p)
		return;
	handshake_limit_leave(c->home->preambles, &p->place);
	free(p);
	c->busy->preamble = NULL;
}

/* --- an agent for it --- */

static uint64_t preamble_left_ms(const struct connection *c, uint64_t limit_ms)
{
	uint64_t spent_ms = connection_now_ms(c) - c->now.accepted_ms;

	return spent_ms < limit_ms ? limit_ms - spent_ms : 0;
}

static void preamble_wait_for_agent(struct connection *c)
{
	struct preamble *p = c->busy->preamble;
	const uint64_t now_ms = connection_now_ms(c);

	if (p->now.wait_began_ms == 0)
		p->now.wait_began_ms = now_ms;
	c->now.attempts = 0;
	if (now_ms - p->now.wait_began_ms >= connection_limits(c)->agent_wait_ms)
		preamble_end(c, END_NO_AGENT, SMTP_OWN_OVERLOADED);
	else
		connection_arm_deadline(c);
}

static void preamble_send(struct connection *c)
{
	Cssl__LinkPreamble m = CSSL__LINK_PREAMBLE__INIT;
	Cssl__Endpoints e;

	endpoints_message(&c->endpoints, &e);
	m.connection_id = (ProtobufCBinaryData){ CONNECTION_ID_LEN, c->id.bytes };
	m.listener = c->front->conf->name;
	m.endpoints = &e;
	link_send_message(c->now.current.link, c->now.current.stream, FRAME_PREAMBLE, &m.base);
}

void connection_preamble_open(struct connection *c, int except)
{
	int agent = dispatch_preamble(&c->home->links, c->front, &c->endpoints.client, except);
	struct link *l = agent == NO_AGENT ? NULL : links_choose(&c->home->links, agent, &c->id);

	if (!l || ++c->now.attempts > ATTEMPTS_MAX) {
		preamble_wait_for_agent(c);
		return;
	}
	if (connection_begin_stream(c, l) < 0)
		return;
	c->busy->preamble->now.wait_began_ms = 0;
	connection_save_before_telling(c);
	preamble_send(c);
	connection_arm_deadline(c);
}

/* --- begin --- */

static void preamble_refuse(struct connection *c, counter *which)
{
	counter_add(which, 1);
	preamble_end(c, END_LIMIT_PREAMBLES, SMTP_OWN_TOO_MANY_CONNECTIONS);
}

static bool preamble_enter(struct connection *c)
{
	struct preamble *p = c->busy->preamble;
	struct handshake_place *loser;

	p->place.holder = c;
	if (handshake_limit_enter(c->home->preambles, &p->place, &c->endpoints.client, connection_now_ms(c), &loser) <
		0) {
		preamble_refuse(c, &c->home->counters.preambles_refused);
		return false;
	}
	if (loser)
		preamble_refuse(loser->holder, &c->home->counters.preambles_displaced);
	return true;
}

void connection_preamble_begin(struct connection *c)
{
	c->busy->preamble = calloc(1, sizeof *c->busy->preamble);
	if (!c->busy->preamble) {
		connection_end(c, END_INTERNAL, END_RESET);
		return;
	}
	c->busy->kept.unit = KEPT_BYTES;
	connection_to(c, CONNECTION_PREAMBLE);
	counter_add(&c->home->counters.preambles, 1);
	stream_set_read_max(&c->busy->client, FRAME_PREAMBLE_WINDOW);
	if (preamble_enter(c))
		connection_preamble_open(c, NO_AGENT);
}

/* --- what becomes of it --- */

uint64_t connection_preamble_left_ms(const struct connection *c)
{
	const uint64_t left = preamble_left_ms(c, c->front->conf->smtp.preamble_timeout_ms + AGENTS_GRACE_MS);

	if (c->busy->preamble->now.finishing == PREAMBLE_FINISHING && left > AGENTS_GRACE_MS)
		return AGENTS_GRACE_MS;
	return !c->now.current.link && left > RETRY_MS ? RETRY_MS : left;
}

void connection_preamble_on_deadline(struct connection *c)
{
	if (!c->now.current.link && preamble_left_ms(c, c->front->conf->smtp.preamble_timeout_ms) > 0)
		connection_preamble_open(c, NO_AGENT);
	else
		preamble_end(c, END_PREAMBLE_TIMEOUT, SMTP_OWN_TIMED_OUT);
}

void connection_preamble_lost(struct connection *c, int agent)
{
	if (c->busy->preamble->now.said == PREAMBLE_NOTHING && !connection_lacks_bytes(c)) {
		counter_add(&c->home->counters.preambles_restarted, 1);
		connection_preamble_open(c, agent);
		return;
	}
	counter_add(&c->home->counters.preambles_lost, 1);
	log_paced(LOG_INFO, &c->id, "preamble lost", "agent=%s state=%s", agents_name(connection_agents(c), agent),
		connection_state_name(c->now.state));
	preamble_end(c, END_AGENT_LOST, SMTP_OWN_SHUTTING_DOWN);
}

/* --- its agent is asked to go on with it --- */

int connection_preamble_count(struct connection *c)
{
	struct preamble *p = c->busy->preamble;

	if (!connection_is_in_clear(c) || connection_phase(c) != CONNECTION_PREAMBLE || p->place.source)
		return 0;
	p->place.holder = c;
	return handshake_limit_bring(c->home->preambles, &p->place, &c->endpoints.client, c->now.accepted_ms);
}

/* The agent may not have heard that it has to end it. */
void connection_preamble_goes_on(struct connection *c)
{
	struct preamble *p = c->busy->preamble;
	const enum end_reason told = (enum end_reason)p->now.told;

	if (p->now.finishing == PREAMBLE_FINISHING) {
		p->now.finishing = PREAMBLE_GOES_ON;
		connection_preamble_finish(c, told == END_DONE ? END_SHUTTING_DOWN : told);
	} else if (c->home->state == HOME_DRAINING) {
		connection_preamble_finish(c, END_SHUTTING_DOWN);
	}
}
