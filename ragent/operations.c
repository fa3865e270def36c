/* operations.c: status, connections and moves. A question to the workers is a gather; what it needs on the way is in
 * one struct that the last step frees.
 */
#include "ragent/operations.h"

#include <stdlib.h>
#include <string.h>

#include "ragent/gather.h"
#include "ragent/page.h"
#include "ragent/policy.h"

/* --- status --- */

static void fill_agents(const struct agents *agents, struct control_agent *out)
{
	for (int a = 0; a < (int)agents_count(agents); a++) {
		struct agent_status s;
		agents_status(agents, a, &s);
		out[a] = (struct control_agent){ .name = s.name,
			.state = s.state,
			.links_up = s.links_up,
			.connections = s.connections,
			.handshakes = s.handshakes,
			.sessions = s.sessions,
			.busy_permille = s.busy_permille,
			.handshake_us = s.handshake_us };
	}
}

struct status_room {
	struct control_agent *agents;
	struct control_listener *listeners;
	const char **addresses;
	char (*texts)[ADDRESS_TEXT_MAX];
};

static int status_room_get(const struct ragent_shared *s, struct status_room *room)
{
	size_t addresses = 0;

	for (size_t f = 0; f < s->front_count; f++)
		addresses += s->fronts[f].bound_count;
	room->agents = calloc(agents_count(s->agents) + 1, sizeof *room->agents);
	room->listeners = calloc(s->front_count + 1, sizeof *room->listeners);
	room->addresses = calloc(addresses + 1, sizeof *room->addresses);
	room->texts = calloc(addresses + 1, sizeof *room->texts);
	return room->agents && room->listeners && room->addresses && room->texts ? 0 : -1;
}

static void status_room_free(struct status_room *room)
{
	free(room->agents);
	free(room->listeners);
	free(room->addresses);
	free(room->texts);
}

static void fill_listeners(const struct ragent_shared *s, struct status_room *room)
{
	size_t at = 0;

	for (size_t f = 0; f < s->front_count; f++) {
		struct front *front = &s->fronts[f];
		const struct conf_listener *conf = front->conf;
		room->listeners[f] = (struct control_listener){ .name = conf->name,
			.mode = conf->mode == CONF_SF ? "sf" : "sl",
			.migration = conf->migration == CONF_MIGRATION_ON ? "on" : "off",
			.handshake = policy_name(conf->handshake),
			.resumption = policy_name(conf->resumption),
			.addresses = &room->addresses[at],
			.address_count = front->bound_count,
			.connections = atomic_load(&front->connections) };
		for (size_t i = 0; i < front->bound_count; i++, at++)
			room->addresses[at] = address_format((struct sockaddr *)&front->bound[i], room->texts[at]);
	}
}

static void status(void *ctx, struct control_request *r)
{
	const struct operations *o = ctx;
	const struct ragent_shared *s = o->shared;
	struct status_room room = { 0 };

	if (status_room_get(s, &room) < 0) {
		status_room_free(&room);
		control_fail(r, CONTROL_INTERNAL, "out of memory");
		return;
	}
	fill_agents(s->agents, room.agents);
	for (int a = 0; a < (int)agents_count(s->agents); a++)
		room.agents[a].links = o->worker_count * agents_conf(s->agents, a)->workers;
	fill_listeners(s, &room);
	const struct control_status out = {
		.name = s->self->name,
		.version = CSSL_VERSION,
		.state = o->state == OPERATIONS_RUNNING ? "running" : "stopping",
		.uptime_s = (worker_now_ms(o->main) - o->started_ms) / 1000,
		.workers = o->worker_count,
		.connections = admission_total(s->admission),
		.listeners = room.listeners,
		.listener_count = s->front_count,
		.agents = room.agents,
		.agent_count = agents_count(s->agents),
	};
	control_answer_status(r, &out);
	status_room_free(&room);
}

/* --- connections --- */

struct listing {
	const struct operations *operations;
	struct control_request *request;
	struct page_query query;
};

static void ask_page(struct gather_part *p)
{
	const struct listing *l = p->gather->ctx;

	p->result = page_create(p->rw, &l->query);
	gather_answer(p);
}

static void answer_page(struct gather *g)
{
	struct listing *l = g->ctx;
	struct page *all = page_merge(g, l->query.limit);

	if (!all)
		control_fail(l->request, CONTROL_INTERNAL, "out of memory");
	else if (l->query.exact && all->count == 0)
		control_fail(l->request, CONTROL_NOT_FOUND, "no such connection");
	else
		control_answer_connections(l->request, all->rows, all->count, all->more);
	page_destroy(all);
	page_query_clear(&l->query);
	free(l);
}

static void list(const struct operations *o, struct control_request *r, struct listing *l)
{
	if (l)
		*l = (struct listing){ .operations = o, .request = r, .query = l->query };
	if (l && gather_start(o->main, o->workers, o->worker_count, ask_page, answer_page, l))
		return;
	control_fail(r, CONTROL_INTERNAL, "out of memory");
	if (l)
		page_query_clear(&l->query);
	free(l);
}

static void connections(void *ctx, const struct control_query *q, struct control_request *r)
{
	const struct operations *o = ctx;
	struct listing *l = calloc(1, sizeof *l);

	if (q->agent && agents_find(o->shared->agents, q->agent) == NO_AGENT) {
		control_fail(r, CONTROL_NOT_FOUND, "no agent of that name");
		free(l);
		return;
	}
	if (l && page_query_set(&l->query, q) < 0) {
		free(l);
		l = NULL;
	}
	list(o, r, l);
}

static void connection(void *ctx, const struct connection_id *id, struct control_request *r)
{
	struct listing *l = calloc(1, sizeof *l);

	if (l)
		page_query_set_exact(&l->query, id);
	list(ctx, r, l);
}

/* --- move --- */

struct moving {
	const struct operations *operations;
	struct control_request *request;
	struct connection_id id;
	int target;
};

/* One worker's part of it, and what became of it. */
struct moving_part {
	struct move_order order;
	struct gather_part *part;
	struct move_result result;
	char reason[160];
};

static void on_moved(struct move_order *o, const struct move_result *r)
{
	struct moving_part *m = (struct moving_part *)((char *)o - offsetof(struct moving_part, order));

	m->result = *r;
	snprintf(m->reason, sizeof m->reason, "%s", r->reason ? r->reason : "");
	m->part->result = m;
	gather_answer(m->part);
}

static void ask_move(struct gather_part *p)
{
	const struct moving *m = p->gather->ctx;
	struct connection *c = p->rw->connections;

	while (c && memcmp(connection_identity(c), &m->id, sizeof m->id) != 0)
		c = connection_next(c);
	struct moving_part *part = c ? calloc(1, sizeof *part) : NULL;
	if (!part) {
		gather_answer(p);
		return;
	}
	part->order.done = on_moved;
	part->part = p;
	connection_move(c, m->target, &part->order);
}

static void answer_moved(const struct moving *m, const struct moving_part *part)
{
	const struct agents *agents = m->operations->shared->agents;
	const struct move_result *r = &part->result;

	if (r->outcome != MOVE_DONE) {
		control_fail(m->request, r->outcome == MOVE_CONFLICT ? CONTROL_CONFLICT : CONTROL_UNAVAILABLE, "%s",
			part->reason);
		return;
	}
	const struct control_moved moved = {
		.from = agents_name(agents, r->from),
		.to = agents_name(agents, r->to),
		.epoch = r->epoch,
		.pause_us = r->pause_us,
	};
	control_answer_move(m->request, &moved);
}

static void answer_move(struct gather *g)
{
	struct moving *m = g->ctx;
	struct moving_part *found = NULL;

	for (unsigned i = 0; i < g->count; i++)
		if (g->parts[i].result)
			found = g->parts[i].result;
	if (found)
		answer_moved(m, found);
	else
		control_fail(m->request, CONTROL_NOT_FOUND, "no such connection");
	free(found);
	free(m);
}

static void move(void *ctx, const struct connection_id *id, const char *agent, struct control_request *r)
{
	const struct operations *o = ctx;
	int target = agents_find(o->shared->agents, agent);
	struct moving *m = target == NO_AGENT ? NULL : calloc(1, sizeof *m);

	if (target == NO_AGENT) {
		control_fail(r, CONTROL_NOT_FOUND, "no agent of that name");
		return;
	}
	if (m) {
		*m = (struct moving){ .operations = o, .request = r, .id = *id, .target = target };
		if (gather_start(o->main, o->workers, o->worker_count, ask_move, answer_move, m))
			return;
	}
	control_fail(r, CONTROL_INTERNAL, "out of memory");
	free(m);
}

const struct control_provider operations_provider = {
	.status = status,
	.counters = operations_counters,
	.connections = connections,
	.connection = connection,
	.move = move,
	.revoke = operations_revoke,
	.rotate = operations_rotate,
	.reload = operations_reload,
};
