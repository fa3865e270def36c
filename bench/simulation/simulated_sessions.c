/* simulated_sessions.c: handshakes, and which agents have a session. That follows from the received messages, and after
 * deaths and returns of agents from the placement: snapshots and resettling are not simulated object by object. */
#include <string.h>

#include "bench/simulation/simulation_inside.h"

#define PARK_MS     100
#define SETTLE_MS   2000 /* as in resettling.c */
#define SNAPSHOT_MS 1000

static const unsigned return_ms[SIMULATION_RETURNS] = { 1, 10, 100, 1000 };

unsigned simulation_return_ms(unsigned row)
{
	return return_ms[row];
}

void session_id_of(const struct simulation *s, uint64_t serial, uint8_t id[static SESSION_ID_LEN])
{
	uint64_t x = (serial + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ s->conf.seed;

	for (unsigned i = 0; i < SESSION_ID_LEN / sizeof x; i++) {
		x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9) + i;
		memcpy(id + i * sizeof x, &x, sizeof x);
	}
}

static int made_it(const struct simulation *s, const struct agent *a, uint64_t serial)
{
	return s->made[serial].origin == a->index && s->made[serial].life == a->life;
}

static int holds(const struct simulation *s, const struct agent *a, uint64_t serial)
{
	uint8_t id[SESSION_ID_LEN];

	if (s->conf.replicas == 0)
		return 1;
	session_id_of(s, serial, id);
	struct placement_ranks ranks = placement_rank(s->placement, id, s->conf.replicas);
	return placement_has(&ranks, a->index);
}

/* By a snapshot when it started, or told in the place of one that left. */
static int got_otherwise(const struct simulation *s, const struct agent *a, uint64_t serial)
{
	const struct agent *origin = &s->agents[s->made[serial].origin];
	int64_t at_ms = s->made[serial].at_ms, now_ms = now_of(s);
	int survived = (origin->state == AGENT_UP && made_it(s, origin, serial)) || s->conf.replicas != 1;

	if (at_ms < a->up_ms)
		return survived && now_ms - a->up_ms >= SNAPSHOT_MS && holds(s, a, serial);
	return s->conf.replicas > 0 && survived && s->members_changed_ms > at_ms &&
	       now_ms - s->members_changed_ms >= SETTLE_MS && holds(s, a, serial);
}

int agent_has(const struct simulation *s, const struct agent *a, uint64_t serial)
{
	if (a->state == AGENT_DOWN)
		return 0;
	return made_it(s, a, serial) || (a->heard[serial / 8] >> serial % 8 & 1) || got_otherwise(s, a, serial);
}

/* One that is not watched and holds it: after as long as it took one that is. */
static int must_have(struct simulation *s, const struct agent *a, uint64_t serial)
{
	int64_t age_ms = now_of(s) - s->made[serial].at_ms;
	unsigned known = s->recent_count < RECENT ? s->recent_count : RECENT;

	if (s->made[serial].at_ms < a->up_ms)
		return got_otherwise(s, a, serial);
	if (!holds(s, a, serial))
		return 0;
	return known == 0 ? age_ms > s->conf.delay_ms : age_ms >= s->recent[virtual_wire_pick(s->wire, known)];
}

static int answers(struct simulation *s, unsigned agent, uint64_t serial)
{
	struct agent *a = &s->agents[agent];

	if (a->state == AGENT_DOWN)
		return 0;
	if (is_watched(s, agent))
		return agent_has(s, a, serial);
	return made_it(s, a, serial) || must_have(s, a, serial);
}

static int can_be_pulled(struct simulation *s, const struct agent *by, uint64_t serial)
{
	struct placement_ranks ranks = { 0 };
	uint8_t id[SESSION_ID_LEN];

	session_id_of(s, serial, id);
	if (s->conf.replicas > 0)
		ranks = placement_rank(s->placement, id, s->conf.replicas + 1);
	for (unsigned i = 0; i < ranks.count; i++)
		if (ranks.agents[i] != by->index && answers(s, ranks.agents[i], serial))
			return 1;
	return s->made[serial].origin != by->index && answers(s, s->made[serial].origin, serial);
}

/* Clients come back */

struct coming {
	struct wire_event event;
	uint64_t serial;
	unsigned row, to;
};

static void on_parked(void *ctx, struct wire_event *e)
{
	struct simulation *s = ctx;
	struct coming *c = (struct coming *)e;
	struct simulation_returns *r = &s->result->returns[c->row];

	if (agent_has(s, &s->agents[c->to], c->serial))
		r->pulled++;
	else
		r->missed++;
	free(c);
}

static void on_coming(void *ctx, struct wire_event *e)
{
	struct simulation *s = ctx;
	struct coming *c = (struct coming *)e;
	struct simulation_returns *r = &s->result->returns[c->row];
	struct agent *to = simulation_pick_up(s, s->conf.watched);

	r->returned++;
	if (agent_has(s, to, c->serial)) {
		r->at_once++;
		free(c);
	} else if (can_be_pulled(s, to, c->serial)) {
		r->pulled++;
		free(c);
	} else {
		c->to = to->index;
		c->event.fn = on_parked;
		virtual_wire_after(s->wire, &c->event, PARK_MS);
	}
}

static void client_will_come_back(struct simulation *s, uint64_t serial)
{
	if (serial % s->return_every != 0)
		return;
	struct coming *c = event_of(sizeof *c, on_coming);
	c->serial = serial;
	c->row = (unsigned)(serial / s->return_every % SIMULATION_RETURNS);
	virtual_wire_after(s->wire, &c->event, return_ms[c->row]);
}

/* Handshakes */

static void tell_watched_holders(struct simulation *s, struct agent *origin, uint64_t serial, Cssl__BroadcastMessage *m)
{
	uint8_t id[SESSION_ID_LEN];

	session_id_of(s, serial, id);
	struct placement_ranks ranks = placement_rank(s->placement, id, s->conf.replicas);
	for (unsigned i = 0; i < ranks.count; i++) {
		if (!is_watched(s, ranks.agents[i]) || ranks.agents[i] == origin->index)
			continue;
		broadcast_sender_number(origin->sender, ranks.agents[i], m);
		s->result->sent_objects++;
	}
}

static void tell_word(struct agent *by)
{
	Cssl__BroadcastMessage m = CSSL__BROADCAST_MESSAGE__INIT;
	Cssl__Adopted adopted = CSSL__ADOPTED__INIT;
	struct connection_id id = { { 0 } };

	adopted.connection_id = (ProtobufCBinaryData){ sizeof id.bytes, id.bytes };
	adopted.epoch = 1;
	adopted.write_sequence = 2;
	m.what_case = CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED;
	m.adopted = &adopted;
	by->simulation->result->made_words++;
	broadcast_sender_number(by->sender, BROADCAST_ALL, &m);
}

/* In the same turn as the session. The later words on the connection come as often, so they are told now. */
static void tell_connection(struct simulation *s, struct agent *origin)
{
	Cssl__BroadcastMessage m = CSSL__BROADCAST_MESSAGE__INIT;
	const uint64_t serial = LIVE_SERIAL;

	if (s->conf.live == SIMULATION_BROADCAST) {
		memcpy(s->object, &serial, sizeof serial);
		m.made_ms = m.family_made_ms = now_of(s);
		m.what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ;
		m.ssl_obj = (ProtobufCBinaryData){ s->conf.live_len, s->object };
		broadcast_sender_number(origin->sender, BROADCAST_ALL, &m);
	} else if (s->conf.live == SIMULATION_CARRIED) {
		tell_word(origin);
	}
	for (unsigned i = 0; i < s->conf.words; i++)
		tell_word(simulation_pick_up(s, s->conf.agents));
}

void simulation_handshake(struct simulation *s)
{
	Cssl__BroadcastMessage m = CSSL__BROADCAST_MESSAGE__INIT;
	struct agent *origin = simulation_pick_up(s, s->conf.agents);
	uint64_t serial = s->result->sessions;

	if (serial == s->made_max)
		return;
	s->result->sessions++;
	s->made[serial] = (struct made){ now_of(s), (uint16_t)origin->index, origin->life };
	memcpy(s->object, &serial, sizeof serial);
	m.made_ms = m.family_made_ms = now_of(s);
	m.what_case = CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ;
	m.ssl_obj = (ProtobufCBinaryData){ s->conf.object_len, s->object };
	if (s->conf.replicas > 0) {
		tell_watched_holders(s, origin, serial, &m);
	} else {
		broadcast_sender_number(origin->sender, BROADCAST_ALL, &m);
		s->result->sent_objects += s->conf.watched - (unsigned)is_watched(s, origin->index);
	}
	tell_connection(s, origin);
	client_will_come_back(s, serial);
}
