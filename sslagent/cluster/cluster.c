/* cluster.c: the life of the membership: it makes the parts, joins them, and ends them. Its timer, on the main thread,
 * says whose turn it is, and how soon the next tick has to come. */
#include <assert.h>
#include <openssl/crypto.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/memory.h"
#include "net/loop/timer.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/live_table.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/ticket_keys.h"

#define LIVE_STORE_PART     4 /* of the store's size, for live parts on top of it */
#define HOUSEKEEPING_MS     100
#define QUIET_TICK_MS       50 /* while nobody waits for a tick */
#define TOMBSTONES_EVERY_MS 10000

const struct cluster_identity *cluster_identity(const struct cluster *c)
{
	return &c->identity;
}

enum cluster_state cluster_state(const struct cluster *c)
{
	return atomic_load(&((struct cluster *)c)->state);
}

static int64_t cluster_ticket_life_ms(const struct conf *conf)
{
	int64_t longest_s = 0;

	for (size_t i = 0; i < conf->listener_count; i++)
		if (conf->listeners[i].tls.session_lifetime_s > longest_s)
			longest_s = conf->listeners[i].tls.session_lifetime_s;
	return (longest_s + conf->broadcast.key_lifetime_s) * 1000;
}

static int cluster_make_tables(struct cluster *c, int64_t now_ms)
{
	struct store_limits limits = {
		.bytes = c->conf->store.bytes,
		.per_source_percent = c->conf->store.per_source_percent,
		.lifetime_ms = (int64_t)c->conf->store.family_lifetime_s * 1000,
	};

	/* looked at only when all are made: the clean-up takes each that is there */
	c->tombstones = tombstones_create(limits.lifetime_ms, TOMBSTONES_MAX);
	c->store = store_create(&limits, c->tombstones);
	c->seen = connections_seen_create(
		connections_seen_places(memory_for_seen(c->conf)), c->conf->broadcast.remember_s * 1000, now_ms);
	c->live = live_table_create(limits.bytes / LIVE_STORE_PART);
	c->families = recent_create();
	c->negatives = recent_create();
	c->sending = sending_keys_create();
	c->sending_since_ms = now_ms;
	c->tickets = ticket_keys_create(cluster_ticket_life_ms(c->conf));
	c->receiver = broadcast_receiver_create((unsigned)c->conf->agent_count, &cluster_hear_ops, c);
	c->threads = calloc(c->self->workers + 1, sizeof *c->threads);
	return c->tombstones && c->store && c->seen && c->live && c->families && c->negatives && c->sending &&
			       c->tickets && c->receiver && c->threads
		       ? 0
		       : CSSL_E_NO_MEMORY;
}

static int cluster_make_parts(struct cluster *c, int64_t now_ms)
{
	const struct peers_conf peers = {
		.link = { c->main, NULL, NULL, c->ring, c->self->name, c->identity.boot_id, c->self->workers },
		.conf = c->conf,
		.self = c->self,
		.receiver = c->receiver,
		.sending = c->sending,
		.ops = &cluster_peers_ops,
		.ctx = c,
	};
	const struct joining_conf joining = { .peers = &c->peers,
		.store = c->store,
		.live = c->live,
		.seen = c->seen,
		.tombstones = c->tombstones,
		.ops = &cluster_joining_ops,
		.ctx = c };
	int r = peers_init(&c->peers, &peers);

	if (!r)
		r = joining_init(&c->joining, &joining, now_ms);
	for (unsigned i = 0; !r && i <= c->self->workers; i++)
		r = cluster_thread_init(&c->threads[i], c, i);
	return r;
}

/* The timer of the main thread */

static void tick_say_heartbeat(struct cluster *c, int to)
{
	uint64_t highest[SENDER_THREADS_MAX];
	Cssl__Heartbeat h = { MESSAGE(heartbeat), .n_highest = c->self->workers + 1, .highest = highest,
		.shared_clock_ms = cluster_shared_clock_ms(c) };
	Cssl__BroadcastMessage m = { MESSAGE(broadcast_message), .made_ms = cluster_now_ms(),
		.what_case = CSSL__BROADCAST_MESSAGE__WHAT_HEARTBEAT, .heartbeat = &h };

	for (unsigned i = 0; i < h.n_highest; i++)
		highest[i] = broadcast_sender_mark(c->threads[i].sender, to, 0).highest;
	broadcast_sender_say(cluster_main_thread(c)->sender, to, &m);
}

/* With placement, this agent numbers a stream for each other agent, so each gets a heartbeat with the last number of
 * its own stream. */
static void tick_heartbeat(struct cluster *c)
{
	if (!c->peers.placement)
		tick_say_heartbeat(c, BROADCAST_ALL);
	for (unsigned i = 0; c->peers.placement && i < c->peers.count; i++)
		if (peers_listens(&c->peers, i))
			tick_say_heartbeat(c, (int)i);
}

/* Once, until another agent is up again. */
static void tick_tell_if_alone(struct cluster *c, unsigned up)
{
	const uint64_t refused = counter_get(&counters_here->at[COUNT_PEER_LINKS_REFUSED]);

	if (up > 0) {
		c->refused_before = refused;
	} else if (c->joining.is_ready && refused > c->refused_before) {
		c->refused_before = UINT64_MAX;
		log_event(LOG_WARNING, NULL, "alone among others",
			"cause=\"this agent or others refused the links between them\" remedy=\"the lines `peer "
			"refused` of all agents have the reasons\"");
	}
}

static void tick_peers(struct cluster *c, int64_t now_ms)
{
	unsigned up = 0, unheard = 0;

	for (struct peer *p = peers_next(&c->peers, NULL); p; p = peers_next(&c->peers, p)) {
		if (peer_tick(p, now_ms))
			live_table_drop_owner(c->live, p->index);
		up += p->state == PEER_UP;
		unheard += p->is_unheard;
	}
	count_gauge(COUNT_PEERS_UP, up);
	count_gauge(COUNT_PEERS_UNHEARD, unheard);
	tick_tell_if_alone(c, up);
	joining_tick(&c->joining, now_ms);
	revocations_tick(c, now_ms);
	cluster_keys_tick(c, now_ms);
}

static void tick_gauges(struct cluster *c)
{
	uint64_t bytes, live_bytes, queued = 0;

	count_gauge(COUNT_SESSIONS, shelf_count(store_shelf(c->store), &bytes));
	count_gauge(COUNT_SESSION_BYTES, bytes);
	count_gauge(COUNT_LIVE_PARTS, shelf_count(c->live, &live_bytes));
	count_gauge(COUNT_CONNECTIONS_SEEN, connections_seen_count(c->seen));
	count_gauge(COUNT_LIVE_BYTES, live_bytes);
	count_gauge(COUNT_TOMBSTONES, tombstones_count(c->tombstones));
	for (struct peer *p = peers_next(&c->peers, NULL); p; p = peers_next(&c->peers, p))
		queued += p->state == PEER_UP ? stream_pending(&p->link->stream) : 0;
	count_gauge(COUNT_PEER_LINK_QUEUED_BYTES, queued);
}

static void tick_house(struct cluster *c, int64_t now_ms)
{
	shelf_expire(store_shelf(c->store), now_ms);
	shelf_expire(c->live, now_ms);
	passed_backends_tick(c, now_ms);
	for (unsigned i = 0; i <= c->self->workers; i++)
		cluster_thread_nudge(&c->threads[i]);
	tick_gauges(c);
	if (now_ms - c->tombstones_looked_at_ms < TOMBSTONES_EVERY_MS)
		return;
	c->tombstones_looked_at_ms = now_ms;
	tombstones_expire(c->tombstones, now_ms);
}

static bool tick_is_settled(const struct cluster *c)
{
	if (!c->joining.is_ready || c->revocations.under_way)
		return false;
	for (struct peer *p = peers_next(&c->peers, NULL); p; p = peers_next(&c->peers, p))
		if (!peer_is_settled(p) || !joining_is_idle(&c->joining, p->index))
			return false;
	return true;
}

/* An idle agent ticks slowly: it should not wake up without work. */
static void tick_as_needed(struct cluster *c, int64_t now_ms)
{
	bool is_needed = broadcast_receiver_due_ms(c->receiver) < now_ms + QUIET_TICK_MS || c->pulls.waiting > 0 ||
			 c->joining.resettling.state == RESETTLING;
	int64_t tick_ms = is_needed ? BROADCAST_TICK_MS : tick_is_settled(c) ? QUIET_TICK_MS : PEERS_EVERY_MS;

	if (!c->timer || tick_ms == c->tick_ms)
		return;
	c->tick_ms = tick_ms;
	timer_set_every(c->timer, (uint64_t)tick_ms);
}

static void on_timer(void *ctx)
{
	struct cluster *c = ctx;
	int64_t now_ms = cluster_now_ms();

	broadcast_receiver_tick(c->receiver, now_ms);
	if (c->pulls.waiting > 0)
		pulls_tick(c, now_ms);
	resettling_tick(&c->joining, now_ms);
	if (now_ms >= c->peers_at_ms) {
		c->peers_at_ms = now_ms + PEERS_EVERY_MS;
		tick_peers(c, now_ms);
	}
	if (now_ms >= c->heartbeat_at_ms) {
		c->heartbeat_at_ms = now_ms + c->conf->broadcast.heartbeat_ms;
		tick_heartbeat(c);
	}
	if (now_ms >= c->house_at_ms) {
		c->house_at_ms = now_ms + HOUSEKEEPING_MS;
		tick_house(c, now_ms);
	}
	tick_as_needed(c, cluster_now_ms());
}

/* Life */

static int cluster_open(struct cluster *c, char *error, size_t error_cap)
{
	int r = cluster_hear_open(c, error, error_cap);

	if (!r)
		r = peers_listen(&c->peers, error, error_cap);
	if (r)
		return r;
	c->tick_ms = BROADCAST_TICK_MS;
	c->timer = timer_start(c->main, on_timer, c, BROADCAST_TICK_MS, BROADCAST_TICK_MS);
	if (c->timer)
		return 0;
	snprintf(error, error_cap, "out of memory");
	return CSSL_E_NO_MEMORY;
}

static void cluster_identify(struct cluster *c)
{
	do
		randombytes_buf(&c->identity.boot_id, sizeof c->identity.boot_id);
	while (c->identity.boot_id == 0);
	c->self_origin = session_id_origin(c->self->name);
	for (unsigned i = 0; i < c->ring->count; i++)
		key_ring_subkey(c->ring, i, SUBKEY_ID_CHECK, c->id_check_keys[i], sizeof c->id_check_keys[i]);
	c->identity.id_check_key = c->id_check_keys[0];
	for (size_t i = 0; i < c->conf->listener_count; i++)
		if (c->conf->listeners[i].tls.tls12_tickets == CONF_ON)
			c->ticket_use = TICKETS_USED;
	c->source = cluster_source;
	c->source.origin = c->self->name;
}

static void cluster_close_handles(struct cluster *c)
{
	atomic_store(&c->state, CLUSTER_CLOSING);
	timer_stop(c->timer);
	c->timer = NULL;
	c->handles++; /* the peers */
	peers_close(&c->peers);
	pulls_tick(c, PULLS_END);
	passed_backends_tick(c, PASSES_END);
	revocations_tick(c, REVOCATIONS_END);
	cluster_leave_worker(c, c->main);
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
	c->ring = ring;
	c->passed = (struct passed_backends)PASSED_BACKENDS_NONE;
	cluster_identify(c);
	if (cluster_make_tables(c, now_ms) != 0 || cluster_make_parts(c, now_ms) != 0) {
		snprintf(error, error_cap, "out of memory");
		cluster_destroy(c);
		return NULL;
	}
	if (cluster_open(c, error, error_cap) != 0) {
		c->on_closed = on_failed_closed;
		c->closed_ctx = c;
		c->handles++; /* this call */
		cluster_close_handles(c);
		cluster_handle_closed(c);
		return NULL;
	}
	return c;
}

void cluster_close(struct cluster *c, void (*on_closed)(void *ctx), void *ctx)
{
	c->on_closed = on_closed;
	c->closed_ctx = ctx;
	cluster_close_handles(c); /* the socket at least closes later */
}

void cluster_destroy(struct cluster *c)
{
	if (!c)
		return;
	assert(c->handles == 0);
	for (unsigned i = 0; c->threads && i <= c->self->workers; i++)
		cluster_thread_destroy(&c->threads[i]);
	free(c->threads);
	joining_free(&c->joining);
	peers_free(&c->peers);
	broadcast_receiver_destroy(c->receiver);
	table_clear(&c->pulls.table);
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
