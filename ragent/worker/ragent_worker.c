/* ragent_worker.c: a worker's listeners, links and health; its stop in three steps: no new connections, then none at
 * all, then no links.
 */
#include "ragent/worker/ragent_worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/memory.h"
#include "net/address.h"
#include "net/listener.h"
#include "net/log.h"
#include "proto/client_hello.h"
#include "proto/error.h"
#include "ragent/dispatch/worker_choice.h"

/* --- links --- */

static void link_came_up(struct ragent_worker *rw, struct link *l)
{
	const struct link_hello *peer = link_peer(l);

	memcpy(rw->id_check_key, peer->id_check_key, sizeof rw->id_check_key);
	agents_link_up(rw->shared->agents, link_agent(l), peer->boot_id);
	counter_add(&rw->counters.links_up, 1);
}

static void each_link(struct ragent_worker *rw, void (*fn)(struct link *l))
{
	for (unsigned a = 0; a < agents_count(rw->shared->agents); a++)
		for (unsigned i = 0; i < rw->links[a].count; i++)
			fn(rw->links[a].at[i]);
}

static void link_went_down(struct ragent_worker *rw, struct link *l)
{
	if (link_fate(l) == PEER_DEAD) /* its other links go with it, and who dies together is no successor */
		each_link(rw, link_lose_if_dead);
	requests_link_lost(&rw->requests, l);
	agents_link_down(rw->shared->agents, link_agent(l));
	counter_add(&rw->counters.links_up, (uint64_t)-1);
}

static void on_link_state(void *ctx, struct link *l, enum link_state from, enum link_state to)
{
	struct ragent_worker *rw = ctx;

	if (from != LINK_SUSPECT && to == LINK_UP)
		link_came_up(rw, l);
	if (from == LINK_SUSPECT)
		agents_link_recovered(rw->shared->agents, link_agent(l));
	if (to == LINK_SUSPECT)
		agents_link_suspect(rw->shared->agents, link_agent(l));
	if (to == LINK_LOSING && (from == LINK_UP || from == LINK_SUSPECT))
		link_went_down(rw, l);
}

static void on_load(void *ctx, struct link *l, const Cssl__LinkLoad *load)
{
	struct ragent_worker *rw = ctx;
	const struct agent_load a = {
		.connections = load->connections,
		.sessions = load->sessions,
		.handshake_us = load->handshake_us,
		.busy_permille = (uint16_t)(load->busy_permille < UINT16_MAX ? load->busy_permille : UINT16_MAX),
		.ready = load->ready ? AGENT_READY : AGENT_NOT_READY,
	};

	agents_set_load(rw->shared->agents, link_agent(l), &a);
}

static void on_leaving(void *ctx, struct link *l)
{
	struct ragent_worker *rw = ctx;

	log_event(LOG_INFO, NULL, "agent leaving", "agent=%s", agents_name(rw->shared->agents, link_agent(l)));
	agents_drain(rw->shared->agents, link_agent(l), DRAIN_LEAVING, worker_now_ms(rw->worker),
		rw->shared->self->moves.drain_timeout_ms);
	mover_look(&rw->mover);
}

static void on_response(void *ctx, struct link *l, Cssl__LinkResponse *response)
{
	struct ragent_worker *rw = ctx;

	requests_answered(&rw->requests, l, response);
}

static void settle(struct ragent_worker *rw);

static void on_link_closed(void *ctx, struct link *l)
{
	struct ragent_worker *rw = ctx;

	rw->open_links--;
	settle(rw);
}

static const struct link_ops link_ops = {
	.on_frame = connection_on_frame,
	.on_stream_lost = connection_on_stream_lost,
	.on_state = on_link_state,
	.on_load = on_load,
	.on_leaving = on_leaving,
	.on_response = on_response,
	.on_closed = on_link_closed,
};

static int create_links(struct ragent_worker *rw, int agent)
{
	const struct ragent_shared *s = rw->shared;
	const struct conf_agent *conf = agents_conf(s->agents, agent);
	struct agent_links *links = &rw->links[agent];
	struct link_params p = {
		.worker = rw->worker,
		.agent = conf,
		.agent_index = agent,
		.ring = s->link_key,
		.hello = { .version_min = LINK_VERSION,
			.version_max = LINK_VERSION,
			.role = LINK_ROLE_RAGENT,
			.protection = conf->link_protection,
			.aead = aead_preferred(),
			.bytes = conf->link.ss_family == AF_UNIX ? conf->link_bytes : LINK_BYTES_ON_SOCKET,
			.boot_id = s->boot_id,
			.worker = (uint16_t)worker_index(rw->worker),
			.workers = (uint16_t)s->self->workers },
		.health = s->self->health,
		.counters = &rw->counters,
		.ops = &link_ops,
		.ctx = rw,
	};

	snprintf(p.hello.name, sizeof p.hello.name, "%s", s->self->name);
	links->at = calloc(conf->workers, sizeof *links->at);
	if (!links->at)
		return CSSL_E_NO_MEMORY;
	for (; links->count < conf->workers; links->count++) {
		p.agent_worker = links->count;
		links->at[links->count] = link_create(&p);
		if (!links->at[links->count])
			return CSSL_E_NO_MEMORY;
		rw->open_links++;
	}
	return 0;
}

static int takes_new(const struct link *l)
{
	return link_state(l) == LINK_UP && link_open(l);
}

struct link *ragent_worker_link(struct ragent_worker *rw, int agent, const struct connection_id *id)
{
	const struct agent_links *links = &rw->links[agent];
	unsigned first = worker_choice(rw->shared->self->workers, worker_index(rw->worker), links->count,
		rendezvous_hash(id->bytes, sizeof id->bytes));

	for (unsigned n = 0; n < links->count; n++) {
		struct link *l = links->at[(first + n) % links->count];
		if (takes_new(l))
			return l;
	}
	return NULL;
}

static int has_link(const struct agent_links *links)
{
	for (unsigned i = 0; i < links->count; i++)
		if (takes_new(links->at[i]))
			return 1;
	return 0;
}

size_t ragent_worker_candidates(struct ragent_worker *rw, int except)
{
	const struct agents *agents = rw->shared->agents;
	size_t count = 0;

	for (int a = 0; a < (int)agents_count(agents); a++)
		if (a != except && agents_take_new(agents, a) && has_link(&rw->links[a]))
			agents_candidate(agents, a, &rw->candidates[count++]);
	return count;
}

static uint64_t links_queued(const struct ragent_worker *rw)
{
	uint64_t queued = 0;

	for (unsigned a = 0; a < agents_count(rw->shared->agents); a++)
		for (unsigned i = 0; i < rw->links[a].count; i++)
			queued += link_queued(rw->links[a].at[i]);
	return queued;
}

static void on_tick(void *ctx)
{
	struct ragent_worker *rw = ctx;

	counter_set(&rw->counters.link_queued_bytes, links_queued(rw));
	counter_set(&rw->counters.kept_bytes, rw->holdings.len);
	counter_set(&rw->counters.handshakes_under_way, handshake_limit_count(rw->handshakes));
	each_link(rw, link_tick);
	connection_end_partials(rw);
	connection_tell_left_out(rw);
	mover_look(&rw->mover);
}

/* --- listeners --- */

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct listening *at = ctx;

	connection_accept(at->home, at->front, fd, peer);
}

static void on_listener_closed(void *ctx)
{
	struct listening *at = ctx;

	at->home->open_listeners--;
	settle(at->home);
}

static const struct listener_ops listener_ops = { .on_accept = on_accept, .on_closed = on_listener_closed };

/* The first worker finds out which port 0 became; the others share it. */
static int bind_one(
	struct ragent_worker *rw, struct front *f, size_t index, struct passed_sockets *passed, char *error, size_t cap)
{
	struct listening *at = &rw->listening[rw->listening_count];
	struct sockaddr_storage *address = &f->bound[index];
	char key[PASSED_KEY_MAX], text[ADDRESS_TEXT_MAX];
	int r = 0;

	*at = (struct listening){
		.home = rw, .front = f, .configured = (const struct sockaddr *)&f->conf->listen.at[index]
	};
	int fd = passed_sockets_take(
		passed, passed_key_of_listener(key, f->conf->name, at->configured), worker_index(rw->worker));
	if (fd >= 0)
		at->listener = listener_create_fd(rw->worker, fd, &listener_ops, at, &r);
	else if (worker_index(rw->worker) == 0)
		at->listener = listener_create(
			rw->worker, (const struct sockaddr *)address, RAGENT_BACKLOG, 0, &listener_ops, at, &r);
	else
		at->listener = listener_create_beside(
			rw->worker, (const struct sockaddr *)address, RAGENT_BACKLOG, &listener_ops, at, &r);
	if (!at->listener) {
		snprintf(error, cap, "listener %s: cannot listen on %s: %s", f->conf->name,
			address_format((const struct sockaddr *)address, text), uv_strerror(r));
		return CSSL_E_SYSTEM;
	}
	rw->listening_count++;
	rw->open_listeners++;
	return listener_address(at->listener, address) < 0 ? CSSL_E_SYSTEM : 0;
}

int ragent_worker_listen(struct ragent_worker *rw, struct passed_sockets *passed, char *error, size_t error_cap)
{
	const struct ragent_shared *s = rw->shared;

	for (size_t f = 0; f < s->front_count; f++) {
		for (size_t i = 0; i < s->fronts[f].bound_count; i++) {
			int r = bind_one(rw, &s->fronts[f], i, passed, error, error_cap);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

void ragent_worker_unlisten(struct ragent_worker *rw)
{
	for (size_t i = 0; i < rw->listening_count; i++) {
		listener_close(rw->listening[i].listener);
		rw->listening[i].listener = NULL;
	}
}

/* --- life --- */

static void each_connection(struct ragent_worker *rw, void (*fn)(struct connection *c))
{
	struct connection *next;

	for (struct connection *c = rw->connections; c; c = next) {
		next = connection_next(c);
		fn(c);
	}
}

static void on_drain_over(struct deadline *d)
{
	struct ragent_worker *rw = (struct ragent_worker *)((char *)d - offsetof(struct ragent_worker, drain_deadline));

	each_connection(rw, connection_kill);
}

static size_t listen_address_count(const struct ragent_shared *s)
{
	size_t count = 0;

	for (size_t f = 0; f < s->front_count; f++)
		count += s->fronts[f].bound_count;
	return count;
}

struct ragent_worker *ragent_worker_create(const struct ragent_shared *shared, struct worker *w)
{
	struct ragent_worker *rw = calloc(1, sizeof *rw);
	size_t addresses = listen_address_count(shared);

	if (!rw)
		return NULL;
	rw->shared = shared;
	rw->worker = w;
	rw->requests.worker = w;
	rw->drain_deadline.fn = on_drain_over;
	holdings_init(&rw->holdings, shared->self->limits.kept_len / shared->self->workers);
	partials_init(&rw->partials, memory_for_partials(&shared->self->limits, shared->self->workers));
	block_pool_init(&rw->blocks);
	slabs_init(&rw->connection_blocks, connection_len());
	slabs_init(&rw->awake, connection_awake_len());
	mover_init(&rw->mover, rw);
	pace_init(&rw->takeovers, shared->self->moves.takeovers_per_s, shared->self->workers);
	rw->links = calloc(agents_count(shared->agents) + 1, sizeof *rw->links);
	rw->listening = calloc(addresses + 1, sizeof *rw->listening);
	rw->hello_scratch = malloc(CLIENT_HELLO_MAX);
	rw->ownerships = ownerships_create();
	rw->handshakes =
		handshake_limit_create(shared->self->limits.handshakes, shared->self->limits.handshakes_per_source);
	rw->of_agents = calloc(agents_count(shared->agents) + 1, sizeof *rw->of_agents);
	if (!rw->handshakes || !rw->ownerships || !rw->of_agents || !rw->links || !rw->listening ||
		!rw->hello_scratch) {
		ragent_worker_destroy(rw);
		return NULL;
	}
	return rw;
}

static void destroy_links(struct ragent_worker *rw)
{
	for (unsigned a = 0; rw->links && a < agents_count(rw->shared->agents); a++) {
		for (unsigned i = 0; i < rw->links[a].count; i++)
			link_destroy(rw->links[a].at[i]);
		free(rw->links[a].at);
		rw->links[a] = (struct agent_links){ 0 };
	}
}

int ragent_worker_start(struct ragent_worker *rw)
{
	const struct conf_health *h = &rw->shared->self->health;

	rw->tick = timer_start(rw->worker, on_tick, rw, h->ping_ms, h->ping_ms);
	rw->dormant = dormant_create(rw->worker, connection_on_stir);
	int r = rw->tick && rw->dormant ? 0 : CSSL_E_NO_MEMORY;
	for (int a = 0; r == 0 && a < (int)agents_count(rw->shared->agents); a++)
		r = create_links(rw, a);
	if (r < 0) { /* the loop has not turned yet: nothing is connecting */
		destroy_links(rw);
		dormant_destroy(rw->dormant);
		timer_stop(rw->tick);
		ragent_worker_unlisten(rw);
	}
	return r;
}

static void each_listener(struct ragent_worker *rw, void (*fn)(struct listener *l))
{
	for (size_t i = 0; i < rw->listening_count; i++)
		if (rw->listening[i].listener)
			fn(rw->listening[i].listener);
}

void ragent_worker_park(struct ragent_worker *rw)
{
	assert(rw->state == RAGENT_WORKER_RUNNING || rw->state == RAGENT_WORKER_PARKED);
	rw->state = RAGENT_WORKER_PARKED;
	mover_stop(&rw->mover);
	each_listener(rw, listener_pause);
	each_link(rw, link_park);
}

void ragent_worker_unpark(struct ragent_worker *rw)
{
	if (rw->state != RAGENT_WORKER_PARKED)
		return;
	rw->state = RAGENT_WORKER_RUNNING;
	each_listener(rw, listener_resume);
	each_link(rw, link_unpark);
}

/* The next step of the stop, when what it waits for is over. */
static void settle(struct ragent_worker *rw)
{
	if (rw->state == RAGENT_WORKER_DRAINING && !rw->connections) {
		rw->state = RAGENT_WORKER_CLOSING;
		deadline_cancel(&rw->drain_deadline);
		timer_stop(rw->tick);
		rw->tick = NULL;
		dormant_destroy(rw->dormant);
		rw->dormant = NULL;
		each_link(rw, link_close);
	}
	if (rw->state == RAGENT_WORKER_CLOSING && rw->open_links == 0 && rw->open_listeners == 0) {
		rw->state = RAGENT_WORKER_CLOSED;
		rw->on_closed(rw);
	}
}

void ragent_worker_stop(struct ragent_worker *rw, uint64_t limit_ms, void (*on_closed)(struct ragent_worker *rw))
{
	if (rw->state != RAGENT_WORKER_RUNNING && rw->state != RAGENT_WORKER_PARKED) {
		each_connection(rw, connection_kill);
		return;
	}
	rw->state = RAGENT_WORKER_DRAINING;
	rw->on_closed = on_closed;
	mover_stop(&rw->mover);
	ragent_worker_unlisten(rw);
	deadline_set(rw->worker, &rw->drain_deadline, limit_ms);
	each_connection(rw, connection_drain);
	settle(rw);
}

void ragent_worker_destroy(struct ragent_worker *rw)
{
	if (!rw)
		return;
	assert(!rw->connections);
	destroy_links(rw);
	free(rw->links);
	free(rw->listening);
	free(rw->hello_scratch);
	ownerships_destroy(rw->ownerships);
	handshake_limit_destroy(rw->handshakes);
	free(rw->of_agents);
	block_pool_clear(&rw->blocks);
	slabs_clear(&rw->connection_blocks);
	slabs_clear(&rw->awake);
	free(rw);
}

void ragent_worker_joined(struct ragent_worker *rw)
{
	counter_add(&rw->counters.connections_open, 1);
}

void ragent_worker_left(struct ragent_worker *rw)
{
	counter_add(&rw->counters.connections_open, (uint64_t)-1);
	settle(rw);
}
