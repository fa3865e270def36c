/* cluster_tick.c: the timer of the main thread: whose turn it is, and how soon the next tick has to come.
 */
#include "net/loop/timer.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "sslagent/cluster/broadcast/broadcast_sender.h"
#include "sslagent/cluster/cluster_root.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/live_table.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/tombstones.h"

#define HOUSEKEEPING_MS     100
#define QUIET_TICK_MS       50 /* while nobody waits for a tick */
#define TOMBSTONES_EVERY_MS 10000

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

int cluster_tick_start(struct cluster *c)
{
	c->tick_ms = BROADCAST_TICK_MS;
	c->timer = timer_start(c->main, on_timer, c, BROADCAST_TICK_MS, BROADCAST_TICK_MS);
	return c->timer ? 0 : CSSL_E_NO_MEMORY;
}
