/* ragent_worker.c: a worker's listeners, links and health. It stops in three steps: it accepts no new connections,
 * then ends all connections, then closes the links.
 */
#include "ragent/worker/ragent_worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/loop/dormant.h"
#include "net/loop/listener.h"
#include "net/loop/timer.h"
#include "net/memory/container_of.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "net/socket/capture.h"
#include "proto/error.h"
#include "ragent/connection/revival/revival.h"

/* --- links --- */

/* @ctx NULL: it matters to nobody. */
static void on_blocked_told(void *ctx, int agent, Cssl__LinkResponse *response, const char *error)
{
	const struct ragent_worker *rw = ctx;

	if (rw && (error || response->error[0]))
		log_event(LOG_WARNING, NULL, "agent does not block networks", "agent=%s cause=%s",
			agents_name(rw->home.shared->agents, agent), error ? error : response->error);
	if (response)
		cssl__link_response__free_unpacked(response, NULL);
}

/* Nobody else sees the clients of its own listeners. */
static void tell_blocked(struct ragent_worker *rw, struct link *l)
{
	Cssl__LinkRequest m = CSSL__LINK_REQUEST__INIT;
	uint8_t packed[BLOCKED_PACKED_MAX];

	m.what_case = CSSL__LINK_REQUEST__WHAT_BLOCKED;
	m.blocked.data = packed;
	m.blocked.len = blocked_pack(rw->home.shared->blocked, worker_now_ms(rw->home.worker), packed);
	requests_send(&rw->requests, l, &m, on_blocked_told, m.blocked.len > BLOCKED_MADE_LEN ? rw : NULL);
}

static void link_came_up(struct ragent_worker *rw, struct link *l)
{
	const struct link_hello *peer = link_peer(l);

	link_prove(l);
	memcpy(rw->home.id_check_key, peer->id_check_key, sizeof rw->home.id_check_key);
	agents_link_up(rw->home.shared->agents, link_agent(l), peer->boot_id);
	counter_add(&rw->home.counters.links_up, 1);
	connection_reattach_all(&rw->home, l, REATTACH_BY_ASKING);
	if (worker_index(rw->home.worker) == 0 && agents_conf(rw->home.shared->agents, link_agent(l))->direct_count)
		tell_blocked(rw, l);
}

static void link_went_down(struct ragent_worker *rw, struct link *l)
{
	if (link_fate(l) == PEER_DEAD) /* close its other links, too: a dead agent must not be chosen as successor */
		links_each(&rw->home.links, link_lose_if_dead);
	requests_link_lost(&rw->requests, l);
	agents_link_down(rw->home.shared->agents, link_agent(l));
	counter_add(&rw->home.counters.links_up, (uint64_t)-1);
}

/* Did the system say that no process listens there? A host that cannot be reached may only be cut off. */
static bool is_nobody_there(int failure)
{
	return failure == UV_ECONNREFUSED || failure == UV_ENOENT;
}

static void on_link_state(void *ctx, struct link *l, enum link_state from, enum link_state to)
{
	struct ragent_worker *rw = ctx;

	/* a link that was only suspect has its streams: nothing is asked for again */
	if (from != LINK_SUSPECT && to == LINK_UP)
		link_came_up(rw, l);
	if (from == LINK_SUSPECT)
		agents_link_recovered(rw->home.shared->agents, link_agent(l));
	if (to == LINK_SUSPECT)
		agents_link_suspect(rw->home.shared->agents, link_agent(l));
	/* the agent is gone, so what waits for it need not wait until its time is over */
	if (to == LINK_LOSING && from == LINK_OPENING && is_nobody_there(link_failure(l)))
		connection_reattach_all(&rw->home, l, REATTACH_IN_VAIN);
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
		.version = load->version,
		.backends = load->cut_off ? AGENT_CUT_OFF : AGENT_HAS_BACKENDS,
		.failing_backends = load->failing_backends,
		.clock = load->wall_ms ? AGENT_CLOCK_KNOWN : AGENT_CLOCK_UNKNOWN,
		.clock_offset_ms = load->wall_ms - worker_wall_ms(),
	};

	agents_set_load(rw->home.shared->agents, link_agent(l), &a);
}

static void ragent_worker_on_leaving(void *ctx, struct link *l)
{
	struct ragent_worker *rw = ctx;

	log_event(LOG_INFO, NULL, "agent leaving", "agent=%s", agents_name(rw->home.shared->agents, link_agent(l)));
	agents_drain(rw->home.shared->agents, link_agent(l), DRAIN_LEAVING, worker_now_ms(rw->home.worker),
		rw->home.shared->self->moves.drain_timeout_ms);
	mover_look(&rw->home.mover);
}

static void ragent_worker_on_response(void *ctx, struct link *l, Cssl__LinkResponse *response)
{
	struct ragent_worker *rw = ctx;

	requests_answered(&rw->requests, l, response);
}

static void ragent_worker_settle(struct ragent_worker *rw);

static void on_link_closed(void *ctx, struct link *l)
{
	struct ragent_worker *rw = ctx;

	rw->open_links--;
	ragent_worker_settle(rw);
}

static const struct link_ops link_ops = {
	.on_frame = connection_on_frame,
	.foresee = connection_foresee_frame,
	.on_stream_lost = connection_on_stream_lost,
	.on_state = on_link_state,
	.on_load = on_load,
	.on_leaving = ragent_worker_on_leaving,
	.on_response = ragent_worker_on_response,
	.on_closed = on_link_closed,
};

static int create_links(struct ragent_worker *rw, int agent)
{
	const struct ragent_shared *s = rw->home.shared;
	const struct conf_agent *conf = agents_conf(s->agents, agent);
	struct link_params p = {
		.worker = rw->home.worker,
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
			.worker = (uint16_t)worker_index(rw->home.worker),
			.workers = (uint16_t)s->self->workers },
		.health = s->self->health,
		.secret = s->notes ? s->notes->outliving.secret : NULL,
		.counters = &rw->home.counters,
		.ops = &link_ops,
		.ctx = rw,
	};

	snprintf(p.hello.name, sizeof p.hello.name, "%s", s->self->name);
	int r = links_create(&rw->home.links, &p);
	if (r < 0)
		return r;
	rw->open_links += (unsigned)r;
	return 0;
}

static void ragent_worker_on_tick(void *ctx)
{
	struct ragent_worker *rw = ctx;

	notes_beat(rw->home.shared->notes, 1 + worker_index(rw->home.worker));
	counter_set(&rw->home.counters.link_queued_bytes, links_queued(&rw->home.links));
	links_each(&rw->home.links, link_tick);
	if (rw->home.restoring) /* agents keep the streams of those that are left for as long as they hear this */
		links_each(&rw->home.links, link_prove);
	connection_home_tick(&rw->home);
	slot_table_cool(rw->home.table);
}

/* --- listeners --- */

static void listening_on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct listening *at = ctx;
	struct connection_home *home = &at->home->home;
	struct sockaddr_storage server;

	if (capture_destination(fd, at->front->conf->capture, at->bound, &server) < 0)
		connection_turn_away(home, at->front, fd, END_NOT_CAPTURED);
	else
		connection_accept(home, at->front, fd, peer, &server);
}

/* May a connection with this PROXY-independent address come from that listening socket? What TPROXY delivered has the
 * address that its client wanted. */
static bool is_from(const struct listening *at, int fd, const struct sockaddr *local)
{
	const struct sockaddr *b = at->bound;
	const bool captures = at->front->conf->capture == CAPTURE_TPROXY;
	uint8_t here[16], there[16];

	if (!at->listener || b->sa_family != local->sa_family || capture_is_transparent(fd) != captures)
		return false;
	if (captures)
		return true;
	size_t len = address_bytes(b, here);
	return address_port(b) == address_port(local) &&
	       (address_is_any(b) || (len == address_bytes(local, there) && memcmp(here, there, len) == 0));
}

/* NULL: the socket is gone, or several may be it. */
static struct listening *origin_of(struct ragent_worker *rw, int fd, const struct sockaddr *local)
{
	struct listening *found = NULL;

	for (size_t i = 0; i < rw->listening_count; i++) {
		if (!is_from(&rw->listening[i], fd, local))
			continue;
		if (found)
			return NULL;
		found = &rw->listening[i];
	}
	return found;
}

void ragent_worker_welcome(struct ragent_worker *rw, int fd)
{
	struct sockaddr_storage local, peer;
	socklen_t local_len = sizeof local, peer_len = sizeof peer;

	if (getsockname(fd, (struct sockaddr *)&local, &local_len) == 0 &&
		getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0) {
		struct listening *at = origin_of(rw, fd, (const struct sockaddr *)&local);
		if (at) {
			listening_on_accept(at, fd, &peer);
			return;
		}
	}
	listener_refuse_accepted(fd, NULL, 0);
}

static void listening_on_closed(void *ctx)
{
	struct listening *at = ctx;

	at->home->open_listeners--;
	ragent_worker_settle(at->home);
}

static const struct listener_ops listener_ops = { .on_accept = listening_on_accept, .on_closed = listening_on_closed };

static int prepare_capture(const struct listening *at, char *error, size_t cap)
{
	const struct conf_listener *conf = at->front->conf;
	const int r = capture_prepare(listener_fd(at->listener), conf->capture);

	if (r == 0)
		return 0;
	snprintf(error, cap,
		"listener %s: original_destination: tproxy needs CAP_NET_ADMIN (%s); start RAgent as root, and with "
		"this capability",
		conf->name, uv_strerror(r));
	return CSSL_E_SYSTEM;
}

/* The first worker learns which port the system chose for port 0; the others use the same. */
static int bind_one(
	struct ragent_worker *rw, struct front *f, size_t index, struct passed_sockets *passed, char *error, size_t cap)
{
	struct listening *at = &rw->listening[rw->listening_count];
	struct sockaddr_storage *address = &f->bound[index];
	char key[NOTES_KEY_MAX], text[ADDRESS_TEXT_MAX];
	int r = 0;

	*at = (struct listening){ .home = rw,
		.front = f,
		.configured = (const struct sockaddr *)&f->conf->listen.at[index],
		.bound = (const struct sockaddr *)address };
	int fd = passed_sockets_take(
		passed, passed_key_of_listener(key, f->conf->name, at->configured), worker_index(rw->home.worker));
	if (fd >= 0)
		at->listener = listener_create_fd(rw->home.worker, fd, &listener_ops, at, &r);
	else if (worker_index(rw->home.worker) == 0)
		at->listener = listener_create(
			rw->home.worker, (const struct sockaddr *)address, RAGENT_BACKLOG, 0, &listener_ops, at, &r);
	else
		at->listener = listener_create_beside(
			rw->home.worker, (const struct sockaddr *)address, RAGENT_BACKLOG, &listener_ops, at, &r);
	if (!at->listener) {
		snprintf(error, cap, "listener %s: cannot listen on %s: %s", f->conf->name,
			address_format((const struct sockaddr *)address, text), uv_strerror(r));
		return CSSL_E_SYSTEM;
	}
	rw->listening_count++;
	rw->open_listeners++;
	if (listener_address(at->listener, address) < 0)
		return CSSL_E_SYSTEM;
	return prepare_capture(at, error, cap);
}

int ragent_worker_listen(struct ragent_worker *rw, struct passed_sockets *passed, char *error, size_t error_cap)
{
	const struct ragent_shared *s = rw->home.shared;

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

static void on_drain_over(struct deadline *d)
{
	struct ragent_worker *rw = container_of(d, struct ragent_worker, drain_deadline);

	connection_home_each(&rw->home, connection_kill);
}

static size_t listen_address_count(const struct ragent_shared *s)
{
	size_t count = 0;

	for (size_t f = 0; f < s->front_count; f++)
		count += s->fronts[f].bound_count;
	return count;
}

static void on_connection_left(struct connection_home *home)
{
	ragent_worker_settle(container_of(home, struct ragent_worker, home));
}

struct ragent_worker *ragent_worker_create(const struct ragent_shared *shared, struct worker *w)
{
	struct ragent_worker *rw = calloc(1, sizeof *rw);

	if (!rw)
		return NULL;
	rw->requests.worker = w;
	rw->drain_deadline.fn = on_drain_over;
	rw->home.on_left = on_connection_left;
	rw->listening = calloc(listen_address_count(shared) + 1, sizeof *rw->listening);
	if (connection_home_init(&rw->home, shared, w) < 0 || !rw->listening) {
		ragent_worker_destroy(rw);
		return NULL;
	}
	return rw;
}

/* No connection is left: stop all that needs the loop. */
static void stop_home(struct ragent_worker *rw)
{
	timer_stop(rw->tick);
	rw->tick = NULL;
	dormant_destroy(rw->home.dormant);
	rw->home.dormant = NULL;
}

int ragent_worker_start(struct ragent_worker *rw)
{
	const struct conf_health *h = &rw->home.shared->self->health;
	int r = 0;

	rw->home.dormant = dormant_create(rw->home.worker, connection_on_input);
	rw->tick = timer_start(rw->home.worker, ragent_worker_on_tick, rw, h->ping_ms, h->ping_ms);
	if (!rw->home.dormant || !rw->tick)
		r = CSSL_E_NO_MEMORY;
	for (int a = 0; r == 0 && a < (int)agents_count(rw->home.shared->agents); a++)
		r = create_links(rw, a);
	if (r < 0) { /* the loop has not run yet, so nothing is connecting */
		links_destroy(&rw->home.links);
		stop_home(rw);
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
	rw->home.state = HOME_PARKED;
	mover_stop(&rw->home.mover);
	each_listener(rw, listener_pause);
	links_each(&rw->home.links, link_leave);
}

void ragent_worker_unpark(struct worker *w, void *worker)
{
	struct ragent_worker *rw = worker;

	if (rw->state != RAGENT_WORKER_PARKED)
		return;
	rw->state = RAGENT_WORKER_RUNNING;
	rw->home.state = HOME_RUNNING;
	each_listener(rw, listener_resume);
	links_each(&rw->home.links, link_return);
}

/* Goes on with the next step of the stop when the current one is complete. */
static void ragent_worker_settle(struct ragent_worker *rw)
{
	if (rw->state == RAGENT_WORKER_DRAINING && !rw->home.connections) {
		rw->state = RAGENT_WORKER_CLOSING;
		deadline_cancel(&rw->drain_deadline);
		stop_home(rw);
		links_each(&rw->home.links, link_close);
	}
	if (rw->state == RAGENT_WORKER_CLOSING && rw->open_links == 0 && rw->open_listeners == 0) {
		rw->state = RAGENT_WORKER_CLOSED;
		rw->on_closed(rw);
	}
}

void ragent_worker_stop(struct ragent_worker *rw, uint64_t limit_ms, void (*on_closed)(struct ragent_worker *rw))
{
	if (rw->state != RAGENT_WORKER_RUNNING && rw->state != RAGENT_WORKER_PARKED) {
		connection_home_each(&rw->home, connection_kill);
		return;
	}
	connection_restore_rest(&rw->home); /* and end them as all others */
	rw->state = RAGENT_WORKER_DRAINING;
	rw->on_closed = on_closed;
	ragent_worker_unlisten(rw);
	deadline_set(rw->home.worker, &rw->drain_deadline, limit_ms);
	connection_home_drain(&rw->home);
	ragent_worker_settle(rw);
}

void ragent_worker_destroy(struct ragent_worker *rw)
{
	if (!rw)
		return;
	connection_home_clear(&rw->home);
	free(rw->listening);
	free(rw);
}
