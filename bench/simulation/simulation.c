/* simulation.c: millisecond by millisecond: what arrives, what is made, what is said at the end of a turn, and what is
 * due in receivers. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "bench/simulation/simulation_inside.h"
#include "sslagent/cluster/broadcast_message.h"

#define DRAIN_MS     1500                                           /* the last clients come back */
#define AROUND_LEN   (DATAGRAM_HEADER_LEN + DATAGRAM_TAG_LEN + 28u) /* with IP and UDP */
#define RING_MIN     64u
#define RING_MAX     8192u
#define RING_MS      1000 /* a ring holds what is made in so long */
#define RETURNS_MAX  400000u
#define STANDING_ASK 20000u
#define MS_IN_NS     1000000u

static void event_drop(struct wire_event *e)
{
	free(e);
}

/* Datagrams */

struct flying {
	struct wire_event event;
	unsigned from, to;
	uint16_t life;
	size_t len;
	uint8_t payload[];
};

static void on_arrived(void *ctx, struct wire_event *e)
{
	struct simulation *s = ctx;
	struct flying *f = (struct flying *)e;
	struct agent *to = &s->agents[f->to];

	if (to->state == AGENT_UP && s->agents[f->from].life == f->life)
		broadcast_receiver_payload(to->receiver, f->from, 0, f->payload, f->len, now_of(s));
	free(f);
}

static void fly(struct agent *from, unsigned to, const uint8_t *payload, size_t len)
{
	struct simulation *s = from->simulation;

	if (to == from->index || s->agents[to].state == AGENT_DOWN)
		return;
	s->result->datagrams++;
	s->result->bytes += len + AROUND_LEN;
	struct flying *f = event_of(sizeof *f + len, on_arrived);
	f->from = from->index;
	f->to = to;
	f->life = from->life;
	f->len = len;
	memcpy(f->payload, payload, len);
	if (virtual_wire_send(s->wire, &f->event) == WIRE_LOST)
		free(f);
}

static void on_payload(void *ctx, enum datagram_of what, int to, const uint8_t *payload, size_t len)
{
	struct agent *from = ctx;

	from->simulation->result->seals++;
	if (to != BROADCAST_ALL)
		fly(from, (unsigned)to, payload, len);
	for (unsigned i = 0; to == BROADCAST_ALL && i < from->simulation->conf.watched; i++)
		fly(from, i, payload, len);
}

/* Questions for what is missing */

struct question {
	struct wire_event event;
	unsigned from, to;
	uint16_t life;
	uint64_t first, last;
};

static void on_question(void *ctx, struct wire_event *e)
{
	struct simulation *s = ctx;
	struct question *q = (struct question *)e;
	struct agent *to = &s->agents[q->to];

	if (to->state == AGENT_UP && to->life == q->life)
		broadcast_sender_repeat(to->sender, (int)q->from, q->first, q->last, now_of(s));
	free(q);
}

static void on_say(void *ctx, unsigned sender, Cssl__BroadcastMessage *m)
{
	struct agent *from = ctx;
	struct simulation *s = from->simulation;

	if (m->what_case != CSSL__BROADCAST_MESSAGE__WHAT_GAP)
		return;
	s->result->questions++;
	struct question *q = event_of(sizeof *q, on_question);
	q->from = from->index;
	q->to = sender;
	q->life = s->agents[sender].life;
	q->first = m->gap->first;
	q->last = m->gap->last;
	if (virtual_wire_send(s->wire, &q->event) == WIRE_LOST)
		free(q);
}

/* Sessions that arrive */

static void note_heard(struct agent *a, uint64_t serial)
{
	a->heard[serial / 8] |= (uint8_t)(1u << serial % 8);
}

static void on_heard(void *ctx, unsigned sender, const Cssl__BroadcastMessage *m, const struct heard_times *times)
{
	struct agent *a = ctx;
	struct simulation *s = a->simulation;
	uint64_t serial;

	if (m->what_case == CSSL__BROADCAST_MESSAGE__WHAT_ADOPTED) {
		s->result->words++;
		return;
	}
	if (m->what_case != CSSL__BROADCAST_MESSAGE__WHAT_SSL_OBJ || m->ssl_obj.len < sizeof serial)
		return;
	memcpy(&serial, m->ssl_obj.data, sizeof serial);
	if (serial == LIVE_SERIAL) {
		s->result->live_parts++;
		return;
	}
	int64_t took_ms = now_of(s) - s->made[serial].at_ms;
	note_heard(a, serial);
	s->result->objects++;
	s->recent[s->recent_count++ % RECENT] = (unsigned)took_ms;
	histogram_record(s->result->staleness, (uint64_t)took_ms * MS_IN_NS);
}

static void on_forgotten(void *ctx, unsigned sender)
{
	((struct agent *)ctx)->simulation->result->forgotten++;
}

static void on_probe(void *ctx, unsigned sender, const uint8_t *challenge)
{
}

static const struct broadcast_receiver_ops receiver_ops = {
	.say = on_say, .on_probe = on_probe, .on_message = on_heard, .on_forgotten = on_forgotten
};

/* Agents start and die */

static uint64_t boot_id_of(const struct agent *a)
{
	return (uint64_t)(a->index + 1) << 32 | a->life;
}

static unsigned ring_of(const struct simulation_conf *c)
{
	double ring = c->handshakes_per_s / c->agents * RING_MS / 1000;

	if (c->replicas > 0 && c->live == SIMULATION_SESSIONS_ONLY)
		ring *= (double)(c->replicas + 1) / c->agents;
	ring *= 1 + c->words + (c->live != SIMULATION_SESSIONS_ONLY);
	return ring < RING_MIN ? RING_MIN : ring > RING_MAX ? RING_MAX : (unsigned)ring;
}

static void meet(struct agent *hearing, const struct agent *sender)
{
	int64_t now_ms = now_of(hearing->simulation);
	uint64_t said = broadcast_sender_mark(sender->sender, (int)hearing->index, 0).highest;

	if (broadcast_receiver_meet(hearing->receiver, sender->index, boot_id_of(sender), 0) != 0)
		abort();
	broadcast_receiver_clock_answered(hearing->receiver, sender->index, now_ms, now_ms, now_ms);
	broadcast_receiver_complete(hearing->receiver, sender->index, boot_id_of(sender), 0, said);
}

static void meet_all(struct agent *a)
{
	struct simulation *s = a->simulation;

	for (unsigned i = 0; i < s->conf.agents; i++) {
		struct agent *other = &s->agents[i];

		if (i == a->index || other->state == AGENT_DOWN || !other->sender)
			continue;
		if (a->receiver)
			meet(a, other);
		if (other->receiver)
			meet(other, a);
	}
}

static void agent_stop(struct agent *a)
{
	a->state = AGENT_DOWN;
	broadcast_sender_destroy(a->sender);
	broadcast_receiver_destroy(a->receiver);
	a->sender = NULL;
	a->receiver = NULL;
}

/* 0 or -1. */
static int agent_start(struct agent *a)
{
	struct simulation *s = a->simulation;
	struct broadcast_sender_conf conf = { .boot_id = boot_id_of(a) + 1,
		.ring = ring_of(&s->conf),
		.streams = s->conf.replicas > 0 ? s->conf.watched : 0,
		.self = a->index,
		.emit_payload = on_payload,
		.ctx = a };

	a->life++;
	a->up_ms = now_of(s);
	a->sender = broadcast_sender_create(&conf);
	if (!a->sender)
		return -1;
	if (is_watched(s, a->index)) {
		a->receiver = broadcast_receiver_create(s->conf.agents, &receiver_ops, a);
		if (!a->receiver)
			return -1;
		memset(a->heard, 0, s->made_max / 8 + 1);
	}
	a->state = AGENT_UP;
	placement_set(s->placement, a->index, MEMBER_HERE);
	meet_all(a);
	return 0;
}

struct change {
	struct wire_event event;
	unsigned agent;
};

static void on_back(void *ctx, struct wire_event *e)
{
	struct simulation *s = ctx;

	if (agent_start(&s->agents[((struct change *)e)->agent]) != 0)
		abort();
	s->members_changed_ms = now_of(s);
	s->up++;
	free(e);
}

static void on_left(void *ctx, struct wire_event *e)
{
	struct simulation *s = ctx;
	struct agent *a = &s->agents[((struct change *)e)->agent];

	if (a->state == AGENT_DOWN) {
		placement_set(s->placement, a->index, MEMBER_AWAY);
		s->members_changed_ms = now_of(s);
	}
	free(e);
}

struct agent *simulation_pick_up(struct simulation *s, unsigned among)
{
	struct agent *a;

	do
		a = &s->agents[virtual_wire_pick(s->wire, among)];
	while (a->state == AGENT_DOWN);
	return a;
}

/* At least two agents and one watched one stay. */
static void kill_one(struct simulation *s)
{
	struct agent *a = simulation_pick_up(s, s->conf.agents);
	struct change *left = event_of(sizeof *left, on_left), *back = event_of(sizeof *back, on_back);
	unsigned watched_up = 0;

	for (unsigned i = 0; i < s->conf.watched; i++)
		watched_up += s->agents[i].state == AGENT_UP;
	left->agent = back->agent = a->index;
	if (s->up <= 2 || watched_up <= 1) {
		free(left);
		free(back);
		return;
	}
	agent_stop(a);
	s->up--;
	virtual_wire_after(s->wire, &left->event, s->conf.left_ms);
	virtual_wire_after(s->wire, &back->event, s->conf.away_ms);
}

/* Time goes on */

static void heartbeat(struct agent *a)
{
	Cssl__BroadcastMessage m = CSSL__BROADCAST_MESSAGE__INIT;
	Cssl__Heartbeat h = CSSL__HEARTBEAT__INIT;
	struct simulation *s = a->simulation;
	int to_all = s->conf.replicas == 0;
	uint64_t highest;

	h.n_highest = 1;
	h.highest = &highest;
	m.made_ms = now_of(s);
	m.what_case = CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT;
	m.heartbeat = &h;
	for (unsigned i = 0; i < (to_all ? 1 : s->conf.watched); i++) {
		highest = broadcast_sender_mark(a->sender, (int)i, 0).highest;
		broadcast_sender_say(a->sender, to_all ? BROADCAST_ALL : (int)i, &m);
	}
}

static void step_agent(struct agent *a, int64_t now_ms)
{
	const struct simulation_conf *c = &a->simulation->conf;

	if (a->state == AGENT_DOWN)
		return;
	if (a->receiver && now_ms % BROADCAST_TICK_MS == 0)
		broadcast_receiver_tick(a->receiver, now_ms);
	if ((now_ms + a->index) % c->heartbeat_ms == 0)
		heartbeat(a);
	if (now_ms % c->turn_ms == 0)
		broadcast_sender_flush(a->sender);
}

static void step(struct simulation *s)
{
	int making = now_of(s) < SIMULATION_START_MS + (int64_t)s->conf.run_ms;
	unsigned happening = 0;

	virtual_wire_step(s->wire);
	if (making)
		happening = virtual_wire_poisson(s->wire, s->conf.handshakes_per_s / 1000);
	for (unsigned i = 0; i < happening; i++)
		simulation_handshake(s);
	if (making && s->conf.leaves_per_min > 0)
		for (unsigned i = virtual_wire_poisson(s->wire, s->conf.leaves_per_min / 60000); i > 0; i--)
			kill_one(s);
	for (unsigned i = 0; i < s->conf.agents; i++)
		step_agent(&s->agents[i], now_of(s));
	s->result->agents_up += making ? (double)s->up / s->conf.run_ms : 0;
}

static double standing(struct simulation *s)
{
	uint64_t asked = 0, there = 0, every = s->result->sessions / STANDING_ASK + 1;

	for (uint64_t serial = 0; serial < s->result->sessions; serial += every) {
		for (unsigned i = 0; i < s->conf.watched; i++) {
			if (s->agents[i].state == AGENT_DOWN)
				continue;
			asked++;
			there += (uint64_t)agent_has(s, &s->agents[i], serial);
		}
	}
	return asked > 0 ? (double)there / (double)asked : 0;
}

static void summarise(struct simulation *s)
{
	struct simulation_result *r = s->result;

	r->numbers_missed = counter_get(&s->counters.at[COUNT_OBJECTS_MISSED]);
	r->repeated = counter_get(&s->counters.at[COUNT_OBJECTS_REPEATED]);
	r->duplicate = counter_get(&s->counters.at[COUNT_OBJECTS_DUPLICATE]);
	r->standing = standing(s);
}

static struct simulation *simulation_create(const struct simulation_conf *c, struct simulation_result *result)
{
	struct virtual_wire_conf wire = { c->seed, c->loss, c->delay_ms, c->jitter_ms };
	struct simulation *s = calloc(1, sizeof *s + c->agents * sizeof(struct agent));
	double expected = c->handshakes_per_s * c->run_ms / 1000;

	if (!s)
		return NULL;
	assert(c->watched <= c->agents && c->agents <= SIMULATION_AGENTS_MAX);
	s->conf = *c;
	s->result = result;
	s->made_max = (uint64_t)(expected * 1.1) + 1000;
	s->return_every = (uint64_t)(expected / RETURNS_MAX) + 1;
	s->wire = virtual_wire_create(&wire, s);
	s->placement = placement_create(c->agents);
	s->made = calloc(s->made_max, sizeof *s->made);
	int failed = !s->wire || !s->placement || !s->made;
	for (unsigned i = 0; !failed && i < c->agents; i++) {
		char name[16];

		snprintf(name, sizeof name, "a%u", i + 1);
		placement_name(s->placement, i, name);
		s->agents[i] = (struct agent){ .simulation = s, .index = i, .state = AGENT_DOWN };
		if (is_watched(s, i))
			s->agents[i].heard = calloc(1, s->made_max / 8 + 1);
		failed = is_watched(s, i) && !s->agents[i].heard;
	}
	if (!failed)
		return s;
	abort();
}

static void simulation_destroy(struct simulation *s)
{
	for (unsigned i = 0; i < s->conf.agents; i++) {
		agent_stop(&s->agents[i]);
		free(s->agents[i].heard);
	}
	virtual_wire_destroy(s->wire, event_drop);
	placement_destroy(s->placement);
	free(s->made);
	free(s);
}

int simulation_run(const struct simulation_conf *conf, struct simulation_result *out)
{
	*out = (struct simulation_result){ .staleness = calloc(1, sizeof(struct histogram)) };
	struct simulation *s = out->staleness ? simulation_create(conf, out) : NULL;
	if (!s)
		return -1;
	counters_use(&s->counters);
	for (unsigned i = 0; i < conf->agents; i++)
		if (agent_start(&s->agents[i]) != 0)
			abort();
	s->up = conf->agents;
	for (unsigned ms = 0; ms < conf->run_ms + DRAIN_MS; ms++)
		step(s);
	summarise(s);
	counters_use(NULL);
	simulation_destroy(s);
	return 0;
}
