/* lone_joining.c: tables that are empty, peers that are away. */
#include "tests/unit/sslagent/cluster/joining/lone_joining.h"

#include <check.h>

#include "net/report/log.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/sessions/live_table.h"
#include "sslagent/sessions/store.h"
#include "sslagent/sessions/tombstones.h"

#define DAY_MS 86400000

static char names[LONE_AGENTS][2] = { "a", "b", "c" };
static struct conf_agent agents[LONE_AGENTS];
static struct conf conf;

static const struct peers_ops no_peers_ops = { 0 };

static void on_ready(void *ctx)
{
	((struct lone_joining *)ctx)->ready++;
}

static const struct joining_ops joining_ops = { .on_ready = on_ready };

static void start_peers(struct lone_joining *l, unsigned self)
{
	const struct peers_conf peers = { .conf = &conf,
		.self = &agents[self],
		.receiver = l->receiver,
		.sending = l->sending,
		.ops = &no_peers_ops,
		.ctx = l };

	ck_assert_int_eq(peers_init(&l->peers, &peers), 0);
}

void lone_joining_start(struct lone_joining *l, unsigned self, unsigned replicas)
{
	const struct store_limits limits = { .bytes = 1 << 20, .per_source_percent = 50, .lifetime_ms = DAY_MS };

	log_open("unit", "a", LOG_TEXT, LOG_ERROR, "/dev/null");
	for (unsigned i = 0; i < LONE_AGENTS; i++)
		agents[i] = (struct conf_agent){ .name = names[i], .workers = 1 };
	conf = (struct conf){ .agents = agents,
		.agent_count = LONE_AGENTS,
		.broadcast = { .alone_after_ms = LONE_ALONE_AFTER_MS, .left_ms = LONE_LEFT_MS, .replicas = replicas } };
	*l = (struct lone_joining){ .receiver = broadcast_receiver_create(
					    LONE_AGENTS, &(struct broadcast_receiver_ops){ 0 }, NULL),
		.sending = sending_keys_create(),
		.tombstones = tombstones_create(DAY_MS, 100),
		.live = live_table_create(1 << 16),
		.seen = connections_seen_create(64, DAY_MS, 0) };
	l->store = store_create(&limits, l->tombstones);
	start_peers(l, self);
	const struct joining_conf joining = { .peers = &l->peers,
		.store = l->store,
		.live = l->live,
		.seen = l->seen,
		.tombstones = l->tombstones,
		.ops = &joining_ops,
		.ctx = l };
	ck_assert_int_eq(joining_init(&l->joining, &joining, 0), 0);
}

void lone_joining_stop(struct lone_joining *l)
{
	joining_free(&l->joining);
	peers_free(&l->peers);
	store_destroy(l->store);
	shelf_destroy(l->live);
	connections_seen_destroy(l->seen);
	tombstones_destroy(l->tombstones);
	sending_keys_destroy(l->sending);
	broadcast_receiver_destroy(l->receiver);
}
