/* operations.c: status and connections. A question to the workers is a gather. Its data are in one struct, which the
 * last step frees.
 */
#include "ragent/control/operations.h"

#include <stdlib.h>
#include <string.h>

#include "net/heap_tide.h"
#include "ragent/dispatch/policy.h"

/* --- status --- */

struct status_room {
	struct control_agent *agents;
	struct control_listener *listeners;
	struct control_counter *counters; /* of the listeners, LISTENER_COUNTER_COUNT of each */
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
	room->counters = calloc(s->front_count * LISTENER_COUNTER_COUNT + 1, sizeof *room->counters);
	return room->agents && room->listeners && room->addresses && room->texts && room->counters ? 0 : -1;
}

static void status_room_free(struct status_room *room)
{
	free(room->agents);
	free(room->listeners);
	free(room->addresses);
	free(room->texts);
	free(room->counters);
}

static void count_listener(const struct operations *o, size_t listener, struct control_counter *at)
{
	for (size_t i = 0; i < LISTENER_COUNTER_COUNT; i++) {
		const struct counter_row *row = listener_counter_row(i);
		at[i] = (struct control_counter){ .name = row->name, .help = row->help, .kind = CONTROL_COUNTER };
		for (unsigned w = 0; w < o->worker_count; w++)
			at[i].value += listener_counter_value(&o->workers[w]->home.of_listeners[listener], i);
	}
}

static void fill_listeners(const struct operations *o, struct status_room *room)
{
	const struct ragent_shared *s = o->shared;
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
			.connections = atomic_load(&front->connections),
			.original_destination = capture_name(conf->capture),
			.service = service_traits[conf->service].name,
			.start = service_traits[conf->service].start,
			.backend = conf->backend,
			.state = o->state == OPERATIONS_RUNNING ? "open" : "closed",
			.counters = &room->counters[f * LISTENER_COUNTER_COUNT],
			.counter_count = LISTENER_COUNTER_COUNT };
		count_listener(o, f, &room->counters[f * LISTENER_COUNTER_COUNT]);
		for (size_t i = 0; i < front->bound_count; i++, at++)
			room->addresses[at] = address_format((struct sockaddr *)&front->bound[i], room->texts[at]);
	}
}

/* Deaths of earlier processes, and what they did to connections. */
static void fill_deaths(const struct notes *n, struct control_status *out)
{
	if (!n)
		return;
	const struct fates *f = &n->shared->fates;
	for (unsigned i = 0; i < DEATH_CAUSE_COUNT; i++)
		out->deaths[i] = atomic_load(&n->shared->deaths[i]);
	out->fates = (struct control_fates){
		.went_on = atomic_load(&f->went_on),
		.began_anew = atomic_load(&f->fresh),
		.reset = atomic_load(&f->reset),
		.outdated = atomic_load(&f->outdated),
		.not_restored = atomic_load(&f->not_restored),
		.given_up = atomic_load(&f->given_up),
		.starts_without_restore = atomic_load(&f->starts_without_restore),
		.pause_us = atomic_load(&f->pause_us),
		.last_pause_us = atomic_load(&f->last_pause_us),
	};
}

void operations_tell_status(const struct operations *o, struct control_request *r, status_teller *tell, void *ctx)
{
	const struct ragent_shared *s = o->shared;
	struct status_room room = { 0 };

	if (status_room_get(s, &room) < 0) {
		status_room_free(&room);
		control_fail(r, CONTROL_INTERNAL, "out of memory");
		return;
	}
	for (int a = 0; a < (int)agents_count(s->agents); a++)
		operations_describe_agent(o, a, &room.agents[a]);
	fill_listeners(o, &room);
	struct control_status out = {
		.name = s->self->name,
		.version = CSSL_VERSION,
		.state = o->state == OPERATIONS_RUNNING ? "running" : "stopping",
		.resident_bytes = resident_bytes(),
		.uptime_s = (worker_now_ms(o->main) - o->started_ms) / 1000,
		.workers = o->worker_count,
		.connections = admission_total(s->admission),
		.listeners = room.listeners,
		.listener_count = s->front_count,
		.agents = room.agents,
		.agent_count = agents_count(s->agents),
	};
	fill_deaths(s->notes, &out);
	tell(r, &out, ctx);
	status_room_free(&room);
}

static void tell_status(struct control_request *r, const struct control_status *s, void *ctx)
{
	control_answer_status(r, s);
}

static void status(void *ctx, struct control_request *r)
{
	operations_tell_status(ctx, r, tell_status, NULL);
}

static void tell_listeners(struct control_request *r, const struct control_status *s, void *ctx)
{
	control_answer_listeners(r, s->listeners, s->listener_count);
}

static void listeners(void *ctx, struct control_request *r)
{
	operations_tell_status(ctx, r, tell_listeners, NULL);
}

/* --- connections --- */

static void ask_page(struct gather_part *p)
{
	const struct selection *s = p->gather->ctx;

	p->result = page_create(p->rw, &s->query);
	gather_answer(p);
}

static void answer_page(struct gather *g)
{
	struct selection *s = g->ctx;
	struct page *all = page_merge(g, s->query.limit);

	if (!all)
		control_fail(s->request, CONTROL_INTERNAL, "out of memory");
	else if (s->query.exact && all->count == 0)
		control_fail(s->request, CONTROL_NOT_FOUND, "no such connection");
	else
		control_answer_connections(s->request, all->rows, all->count, all->more);
	page_destroy(all);
	selection_free(s);
}

static void connections(void *ctx, const struct control_query *q, struct control_request *r)
{
	operations_select(ctx, r, q, (struct selection){ .ask = ask_page, .answer = answer_page });
}

static void connection(void *ctx, const struct connection_id *id, struct control_request *r)
{
	connections(ctx, &(const struct control_query){ .id = id }, r);
}

static void ready(void *ctx, struct control_request *r)
{
	const struct operations *o = ctx;
	struct agent_status s;
	uint64_t count = 0;

	for (int a = 0; o->state == OPERATIONS_RUNNING && a < (int)agents_count(o->shared->agents); a++) {
		agents_status(o->shared->agents, a, &s);
		count += strcmp(s.state, "ready") == 0;
	}
	if (count)
		control_answer_number(r, "ready", count);
	else
		control_fail(r, CONTROL_UNAVAILABLE, "no agent is ready");
}

static void turned_away(void *ctx, enum control_turned_away why)
{
	struct operations *o = ctx;

	counter_add(why == CONTROL_NO_ROOM ? &o->counters.control_no_room : &o->counters.control_no_header, 1);
}

const struct control_provider operations_provider = {
	.status = status,
	.listeners = listeners,
	.counters = operations_counters,
	.metrics = operations_metrics,
	.certificates = operations_certificates,
	.ready = ready,
	.blocks = operations_blocks,
	.block = operations_block,
	.end = operations_end,
	.connections = connections,
	.connection = connection,
	.move = operations_move,
	.rest = operations_rest,
	.agents = operations_list_agents,
	.drain = operations_drain,
	.undrain = operations_undrain,
	.weight = operations_weight,
	.sessions = operations_sessions,
	.session_count = operations_session_count,
	.session = operations_session,
	.revoke = operations_revoke,
	.rotate = operations_rotate,
	.reload = operations_reload,
	.log_level = operations_log_level,
	.mail = operations_mail,
	.turned_away = turned_away,
};
