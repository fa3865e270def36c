/* cluster.c: the life of the membership, and its timer. */
#include "sslagent/cluster/cluster.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/memory.h"
#include "net/address.h"
#include "net/listener.h"
#include "net/log.h"
#include "net/timer.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/passed_backends.h"
#include "sslagent/cluster/peer.h"

#define LIVE_STORE_PART     4 /* of the store's size, for live parts on top of it */
#define HOUSEKEEPING_MS     100
#define COUNTER_WORN        (DATAGRAM_COUNTER_MAX / 2)
#define PEERS_EVERY_MS      20
#define QUIET_TICK_MS       50 /* while nobody waits for a tick */
#define TOMBSTONES_EVERY_MS 10000
#define KEY_MAKER_STEP_MS   2000 /* time between agents that could make the next ticket key */

struct cluster_thread *cluster_thread_of(struct cluster *c, const struct worker *w)
{
	struct cluster_thread *t;

	if (w == c->main)
		return cluster_main_thread(c);
	if (!w || worker_index(w) >= c->self->workers)
		return NULL;
	t = &c->threads[worker_index(w)];
	return t->worker == w ? t : NULL; /* only its own thread sets and reads it here */
}

int cluster_agent_index(const struct cluster *c, const char *name)
{
	for (unsigned i = 0; i < c->agent_count; i++)
		if (strcmp(c->conf->agents[i].name, name) == 0)
			return (int)i;
	return -1;
}

struct placement_ranks cluster_holders(const struct cluster *c, const uint8_t *id, unsigned wanted)
{
	struct placement_ranks all = placement_rank(c->placement, id, wanted), others = { 0 };

	for (unsigned i = 0; i < all.count; i++)
		if (all.agents[i] != c->self_index)
			others.agents[others.count++] = all.agents[i];
	return others;
}

uint64_t cluster_boot_id(const struct cluster *c)
{
	return c->boot_id;
}

const uint8_t *cluster_id_check_key(const struct cluster *c)
{
	return c->id_check_keys[0];
}

int cluster_id_check(const struct cluster *c, const uint8_t *id, size_t len, struct session_id_facts *out)
{
	int r = CSSL_E_MISMATCH;

	for (unsigned i = 0; r && i < c->ring->count; i++)
		r = session_id_check(id, len, c->id_check_keys[i], out);
	return r;
}

enum cluster_state cluster_state(const struct cluster *c)
{
	return atomic_load(&((struct cluster *)c)->state);
}

/* The timer */

static void say_heartbeat(struct cluster *c, int to)
{
	uint64_t highest[SENDER_THREADS_MAX];
	Cssl__Heartbeat h = { MESSAGE(heartbeat), .n_highest = c->self->workers + 1, .highest = highest,
		.shared_clock_ms = cluster_shared_clock_ms(c) };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .what_case = CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT,
		.heartbeat = &h };

	for (unsigned i = 0; i < h.n_highest; i++)
		highest[i] = broadcast_sender_mark(c->threads[i].sender, to, 0).highest;
	cluster_thread_say(cluster_main_thread(c), to, &m);
}

/* With placement, this agent numbers a stream for each other agent, so each gets a heartbeat with the last number of
 * its own stream. */
static void heartbeat(struct cluster *c)
{
	uint64_t bytes, live_bytes, sessions = shelf_count(store_shelf(c->store), &bytes);

	if (!c->placement)
		say_heartbeat(c, BROADCAST_ALL);
	for (unsigned i = 0; c->placement && i < c->agent_count; i++)
		if (peer_listens(c, i))
			say_heartbeat(c, (int)i);
	count_gauge(COUNT_SESSIONS, sessions);
	count_gauge(COUNT_SESSION_BYTES, bytes);
	count_gauge(COUNT_LIVE_PARTS, shelf_count(c->live, &live_bytes));
	count_gauge(COUNT_CONNECTIONS_SEEN, connections_seen_count(c->seen));
	count_gauge(COUNT_LIVE_BYTES, live_bytes);
	count_gauge(COUNT_TOMBSTONES, tombstones_count(c->tombstones));
}

static int waits_for_peer(void *ctx, unsigned peer)
{
	struct cluster *c = ctx;

	return c->peers[peer] && c->peers[peer]->state == PEER_UP;
}

static void roll_sending_key(struct cluster *c, int64_t now_ms)
{
	if (sending_keys_roll(c->sending, now_ms) != 0)
		return; /* the next key is on its way */
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		peer_send_next_key(p);
}

void cluster_make_ticket_key(struct cluster *c, int64_t now_ms)
{
	ticket_keys_make(c->tickets, now_ms);
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		peer_send_ticket_keys(p);
}

void cluster_rotate(struct cluster *c)
{
	int64_t now_ms = cluster_now_ms();

	roll_sending_key(c, now_ms);
	if (c->ticket_use == TICKETS_USED)
		cluster_make_ticket_key(c, now_ms);
}

static bool is_worn(const struct cluster *c)
{
	uint32_t generation = sending_keys_generation(c->sending);

	for (unsigned i = 0; i <= c->self->workers; i++)
		if (broadcast_sender_mark(c->threads[i].sender, 0, generation).next_counter > COUNTER_WORN)
			return true;
	return false;
}

/* The first agent by name makes the key, the second if it does not, and so on. */
static int64_t key_maker_turn_ms(const struct cluster *c)
{
	int64_t turn_ms = 0;

	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		if (atomic_load(&c->flags[p->index].alive) && strcmp(p->conf->name, c->self->name) < 0)
			turn_ms += KEY_MAKER_STEP_MS;
	return turn_ms;
}

static void keep_keys_fresh(struct cluster *c, int64_t now_ms)
{
	int64_t life_ms = (int64_t)c->conf->broadcast.key_lifetime_s * 1000;
	int64_t ticket_age_ms = ticket_keys_newest_age_ms(c->tickets, now_ms);

	if (sending_keys_age_ms(c->sending, now_ms) > life_ms || is_worn(c))
		roll_sending_key(c, now_ms);
	ticket_keys_expire(c->tickets, now_ms);
	if (c->ticket_use == TICKETS_UNUSED || cluster_state(c) != CLUSTER_READY)
		return;
	if (ticket_age_ms > life_ms + key_maker_turn_ms(c))
		cluster_make_ticket_key(c, now_ms);
}

/* Once, until another agent is up again. */
static void tell_if_alone(struct cluster *c, unsigned up)
{
	const uint64_t refused = counter_get(&counters_here->at[COUNT_PEER_LINKS_REFUSED]);

	if (up > 0) {
		c->refused_before = refused;
	} else if (cluster_state(c) == CLUSTER_READY && refused > c->refused_before) {
		c->refused_before = UINT64_MAX;
		log_event(LOG_WARNING, NULL, "alone among others",
			"cause=\"this agent or others refused the links between them\" remedy=\"the lines `peer "
			"refused` of all agents have the reasons\"");
	}
}

static void step_peers(struct cluster *c, int64_t now_ms)
{
	unsigned up = 0, unheard = 0;

	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p)) {
		peer_tick(p, now_ms);
		up += p->state == PEER_UP;
		unheard += p->is_unheard;
	}
	count_gauge(COUNT_PEERS_UP, up);
	count_gauge(COUNT_PEERS_UNHEARD, unheard);
	tell_if_alone(c, up);
	joining_tick(c, now_ms);
	revocations_tick(c, now_ms);
	if (sending_keys_step(c->sending, waits_for_peer, c, now_ms)) {
		count(COUNT_SENDING_KEYS_ROLLED);
		log_event(LOG_INFO, NULL, "sending key rolled", "generation=%u", sending_keys_generation(c->sending));
	}
}

static void keep_house(struct cluster *c, int64_t now_ms)
{
	shelf_expire(store_shelf(c->store), now_ms);
	shelf_expire(c->live, now_ms);
	passed_backends_tick(c, now_ms);
	keep_keys_fresh(c, now_ms);
	for (unsigned i = 0; i <= c->self->workers; i++)
		cluster_thread_nudge(&c->threads[i]);
	if (now_ms - c->tombstones_looked_at_ms < TOMBSTONES_EVERY_MS)
		return;
	c->tombstones_looked_at_ms = now_ms;
	tombstones_expire(c->tombstones, now_ms);
}

static bool is_settled(const struct cluster *c)
{
	if (cluster_state(c) != CLUSTER_READY || revocations_wait(&c->revocations))
		return false;
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		if (!peer_is_settled(p))
			return false;
	return true;
}

/* An idle agent ticks slowly: it should not wake up without work. */
void cluster_tick_as_needed(struct cluster *c)
{
	int64_t soon_ms = cluster_now_ms() + QUIET_TICK_MS;
	bool is_needed =
		broadcast_receiver_due_ms(c->receiver) < soon_ms || pulls_wait(c) || c->resettling.state == RESETTLING;
	int64_t tick_ms = is_needed ? BROADCAST_TICK_MS : is_settled(c) ? QUIET_TICK_MS : PEERS_EVERY_MS;

	if (!c->timer || tick_ms == c->tick_ms)
		return;
	c->tick_ms = tick_ms;
	timer_set_every(c->timer, (uint64_t)tick_ms);
}

static void on_tick_wish(struct cluster *c, unsigned from, const uint8_t *about)
{
	c->tick_wish = TICK_UNASKED;
	cluster_tick_as_needed(c);
}

void cluster_tick_sooner(struct cluster *c)
{
	if (c->tick_ms == BROADCAST_TICK_MS ||
		broadcast_receiver_due_ms(c->receiver) >= cluster_now_ms() + QUIET_TICK_MS)
		return;
	if (atomic_exchange(&c->tick_wish, TICK_ASKED) == TICK_UNASKED &&
		cluster_tell(cluster_main_thread(c), on_tick_wish, c->self_index, NULL, 0) != 0)
		c->tick_wish = TICK_UNASKED;
}

static void on_timer(void *ctx)
{
	struct cluster *c = ctx;
	int64_t now_ms = cluster_now_ms();

	broadcast_receiver_tick(c->receiver, now_ms);
	pulls_tick(c, now_ms);
	resettling_tick(c, now_ms);
	if (now_ms >= c->peers_at_ms) {
		c->peers_at_ms = now_ms + PEERS_EVERY_MS;
		step_peers(c, now_ms);
	}
	if (now_ms >= c->heartbeat_at_ms) {
		c->heartbeat_at_ms = now_ms + c->conf->broadcast.heartbeat_ms;
		heartbeat(c);
	}
	if (now_ms >= c->house_at_ms) {
		c->house_at_ms = now_ms + HOUSEKEEPING_MS;
		keep_house(c, now_ms);
	}
	cluster_tick_as_needed(c);
}

/* Create and destroy */

static const struct udp_ops main_udp_ops = { .on_closed = cluster_handle_closed, .peer_name = cluster_peer_at };

static int64_t ticket_life_ms(const struct conf *conf)
{
	int64_t longest_s = 0;

	for (size_t i = 0; i < conf->listener_count; i++)
		if (conf->listeners[i].tls.session_lifetime_s > longest_s)
			longest_s = conf->listeners[i].tls.session_lifetime_s;
	return (longest_s + conf->broadcast.key_lifetime_s) * 1000;
}

static int create_tables(struct cluster *c, int64_t now_ms)
{
	struct store_limits limits = {
		.bytes = c->conf->store.bytes,
		.per_source_percent = c->conf->store.per_source_percent,
		.lifetime_ms = (int64_t)c->conf->store.family_lifetime_s * 1000,
	};

	c->tombstones = tombstones_create(limits.lifetime_ms, TOMBSTONES_MAX);
	c->store = store_create(&limits, c->tombstones);
	c->seen = connections_seen_create(
		connections_seen_places(memory_for_seen(c->conf)), c->conf->broadcast.remember_s * 1000, now_ms);
	c->live = live_table_create(limits.bytes / LIVE_STORE_PART);
	c->families = recent_create();
	c->negatives = recent_create();
	c->sending = sending_keys_create(c->agent_count, now_ms);
	c->tickets = ticket_keys_create(ticket_life_ms(c->conf));
	c->passed = passed_backends_create();
	c->receiver = broadcast_receiver_create(c->agent_count, &cluster_hear_ops, c);
	c->flags = calloc(c->agent_count, sizeof *c->flags);
	c->peers = calloc(c->agent_count, sizeof(struct peer *));
	c->threads = calloc(c->self->workers + 1, sizeof *c->threads);
	if (resettling_start(c) != 0)
		return CSSL_E_NO_MEMORY;
	return c->tombstones && c->store && c->seen && c->live && c->families && c->negatives && c->sending &&
			       c->tickets && c->passed && c->receiver && c->flags && c->peers && c->threads
		       ? 0
		       : CSSL_E_NO_MEMORY;
}

static int create_members(struct cluster *c)
{
	int r = 0;

	for (unsigned i = 0; !r && i <= c->self->workers; i++)
		r = cluster_thread_init(&c->threads[i], c, i);
	for (unsigned i = 0; !r && i < c->agent_count; i++) {
		c->flags[i].origin = session_id_origin(c->conf->agents[i].name);
		if (i == c->self_index)
			continue;
		c->peers[i] = peer_create(c, (agent_index)i);
		r = c->peers[i] ? 0 : CSSL_E_NO_MEMORY;
	}
	return r;
}

/* A thread's own socket to send from. NULL with *uv_error. */
static struct udp *open_sending(struct cluster *c, struct worker *w, const struct udp_ops *ops, int *uv_error)
{
	struct sockaddr_storage from = c->self->peer;

	address_set_port((struct sockaddr *)&from, 0);
	return udp_create(w, (const struct sockaddr *)&from, 0, ops, c, uv_error);
}

static int open_sockets(struct cluster *c, char *error, size_t error_cap)
{
	int uv_error = 0;

	if (cluster_bind_receiving(c, error, error_cap) != 0)
		return CSSL_E_SYSTEM;
	struct udp *udp = open_sending(c, c->main, &main_udp_ops, &uv_error);
	if (!udp) {
		snprintf(error, error_cap, "cannot speak to other agents: %s", uv_strerror(uv_error));
		return CSSL_E_SYSTEM;
	}
	c->handles++;
	cluster_thread_join(cluster_main_thread(c), c->main, udp, NULL);
	if (cluster_links_listen(c, error, error_cap) != 0)
		return CSSL_E_SYSTEM;
	c->tick_ms = BROADCAST_TICK_MS;
	c->timer = timer_start(c->main, on_timer, c, BROADCAST_TICK_MS, BROADCAST_TICK_MS);
	if (!c->timer) {
		snprintf(error, error_cap, "out of memory");
		return CSSL_E_NO_MEMORY;
	}
	return 0;
}

static void identify(struct cluster *c)
{
	do
		randombytes_buf(&c->boot_id, sizeof c->boot_id);
	while (c->boot_id == 0);
	c->self_origin = session_id_origin(c->self->name);
	for (unsigned i = 0; i < c->ring->count; i++)
		key_ring_subkey(c->ring, i, SUBKEY_ID_CHECK, c->id_check_keys[i], sizeof c->id_check_keys[i]);
	for (size_t i = 0; i < c->conf->listener_count; i++)
		if (c->conf->listeners[i].tls.tls12_tickets == CONF_ON)
			c->ticket_use = TICKETS_USED;
}

static void close_handles(struct cluster *c)
{
	struct cluster_thread *main = cluster_main_thread(c);
	struct udp *udp = main->udp;

	atomic_store(&c->state, CLUSTER_CLOSING);
	timer_stop(c->timer);
	c->timer = NULL;
	for (struct peer *p = peer_next(c, NULL); p; p = peer_next(c, p))
		peer_close(p);
	cluster_links_close(c);
	pulls_finish(c);
	passed_backends_finish(c);
	revocations_finish(c);
	if (udp)
		cluster_thread_leave(main);
	udp_close(udp);
}

static void on_failed_closed(void *ctx)
{
	cluster_destroy(ctx);
}

struct cluster *cluster_create(struct worker *main, const struct conf *conf, const struct conf_agent *self,
	const struct key_ring *ring, char *error, size_t error_cap)
{
	int64_t now_ms = cluster_now_ms();
	struct cluster *c;

	if (self->workers + 1 > SENDER_THREADS_MAX || conf->agent_count > UINT16_MAX) {
		snprintf(error, error_cap, "at most %u workers per agent and %u agents can share sessions",
			SENDER_THREADS_MAX - 1, UINT16_MAX);
		return NULL;
	}
	c = OPENSSL_zalloc(sizeof *c);
	if (!c) {
		snprintf(error, error_cap, "out of memory");
		return NULL;
	}
	c->main = main;
	c->conf = conf;
	c->self = self;
	c->self_index = (agent_index)(self - conf->agents);
	c->ring = ring;
	c->agent_count = (unsigned)conf->agent_count;
	cluster_links_init(c);
	identify(c);
	cluster_source_init(c);
	if (create_tables(c, now_ms) != 0 || create_members(c) != 0) {
		snprintf(error, error_cap, "out of memory");
		cluster_destroy(c);
		return NULL;
	}
	if (open_sockets(c, error, error_cap) != 0) {
		c->on_closed = on_failed_closed;
		c->closed_ctx = c;
		c->handles++; /* this call */
		close_handles(c);
		cluster_handle_closed(c);
		return NULL;
	}
	joining_start(c, now_ms);
	return c;
}

void cluster_handle_closed(void *cluster)
{
	struct cluster *c = cluster;

	assert(c->handles > 0);
	if (--c->handles == 0 && c->on_closed)
		c->on_closed(c->closed_ctx);
}

void cluster_close(struct cluster *c, void (*on_closed)(void *ctx), void *ctx)
{
	c->on_closed = on_closed;
	c->closed_ctx = ctx;
	close_handles(c); /* the socket at least closes later */
}

void cluster_destroy(struct cluster *c)
{
	if (!c)
		return;
	assert(c->handles == 0);
	for (unsigned i = 0; c->peers && i < c->agent_count; i++)
		peer_destroy(c->peers[i]);
	for (unsigned i = 0; c->threads && i <= c->self->workers; i++)
		cluster_thread_destroy(&c->threads[i]);
	free(c->threads);
	free(c->peers);
	free(c->flags);
	resettling_free(c);
	broadcast_receiver_destroy(c->receiver);
	pulls_free(&c->pulls);
	passed_backends_destroy(c->passed);
	ticket_keys_destroy(c->tickets);
	sending_keys_destroy(c->sending);
	recent_destroy(c->negatives);
	recent_destroy(c->families);
	shelf_destroy(c->live);
	connections_seen_destroy(c->seen);
	store_destroy(c->store);
	tombstones_destroy(c->tombstones);
	OPENSSL_clear_free(c, sizeof *c);
}

/* Workers */

int cluster_join_worker(struct cluster *c, struct worker *w)
{
	int uv_error = 0;

	if (worker_index(w) >= c->self->workers || c->threads[worker_index(w)].receiving_fd < 0)
		return CSSL_E_STATE;
	struct cluster_thread *t = &c->threads[worker_index(w)];
	struct udp *receiving = udp_create_fd(w, t->receiving_fd, &cluster_udp_ops, c, &uv_error);
	t->receiving_fd = -1;
	if (!receiving)
		return uv_error;
	struct udp *udp = open_sending(c, w, &cluster_udp_ops, &uv_error);
	if (!udp) {
		udp_close(receiving);
		return uv_error;
	}
	cluster_thread_join(t, w, udp, receiving);
	return 0;
}

void cluster_on_superseded(struct cluster *c, struct worker *w, superseded_fn fn, void *ctx)
{
	struct cluster_thread *t = cluster_thread_of(c, w);

	t->superseded = fn;
	t->superseded_ctx = ctx;
}

void cluster_leave_worker(struct cluster *c, struct worker *w)
{
	struct cluster_thread *t = cluster_thread_of(c, w);

	if (!t)
		return;
	struct udp *udp = t->udp, *receiving = t->receiving;
	cluster_thread_leave(t);
	udp_close(udp);
	udp_close(receiving);
}
