/* lone_cluster.c: the fuzzer's end of the link is one end of a socket pair. */
#include "lone_cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <sodium.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/report/log.h"
#include "tests/fuzz/must.h"

#define PEER 0u /* "a": the lower name, so it is the one that connects */
#define SELF 1u

static char name_a[] = "a", name_b[] = "b";
static struct conf_agent agents[2] = { { .name = name_a, .workers = 1 }, { .name = name_b, .workers = 1 } };
static struct conf conf = {
	.store = { .bytes = 1 << 20, .per_source_percent = 50, .family_lifetime_s = 86400 },
	.broadcast = { .live = CONF_LIVE_BROADCAST,
		.live_keep_s = 60,
		.remember_s = 600,
		.heartbeat_ms = 1000,
		.alone_after_ms = 10,
		.ring = 64,
		.park_ms = 100,
		.key_lifetime_s = 3600 },
	.agents = agents,
	.agent_count = 2,
};
static struct key_ring ring = { .count = 1, .keys = { { .id = "k", .key = { 1 } } } };
static struct worker *loop;
static struct cluster *cluster;
static int other_end = -1;

static int on_message(struct peer_link *l, const Cssl__PeerMessage *m)
{
	return 0;
}

static void on_open(struct peer_link *l)
{
	peer_take_link(cluster->peers.at[PEER], l);
}

static void on_drained(struct peer_link *l)
{
}

static void on_end(struct peer_link *l, int error)
{
	MUST(!"the opening works");
}

static void on_closed(struct peer_link *l)
{
}

static const struct peer_link_ops ops = { on_open, on_message, on_drained, on_end, on_closed };

static void make_cluster(void)
{
	struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char error[256];

	MUST(sodium_init() >= 0);
	log_open("fuzz", "b", LOG_TEXT, LOG_ERROR, "/dev/null");
	memcpy(&agents[PEER].peer, &loopback, sizeof(loopback));
	memcpy(&agents[SELF].peer, &loopback, sizeof(loopback));
	loop = worker_create(0, "fuzz");
	MUST(loop);
	cluster = cluster_create(loop, &conf, &agents[SELF], &ring, error, sizeof(error));
	MUST(cluster);
}

static void open_step(struct opening *o, const uint8_t *in, size_t len)
{
	uint8_t out[OPENING_MESSAGE_MAX];
	size_t taken, out_len = 0;

	MUST(opening_step(o, in, len, &taken, out, &out_len) >= 0);
	MUST(out_len == 0 || write(other_end, out, out_len) == (ssize_t)out_len);
}

/* The fuzzer opens the link, as agent "a". */
static void open_link(void)
{
	struct link_hello hello = { .version_min = LINK_VERSION,
		.version_max = LINK_VERSION,
		.role = LINK_ROLE_AGENT,
		.protection = LINK_TRUSTED,
		.aead = aead_preferred(),
		.name = "a",
		.boot_id = LONE_PEER_BOOT,
		.workers = 1 };
	struct peer_link_conf link_conf = cluster->peers.of.link;
	struct sockaddr_un from = { .sun_family = AF_UNIX };
	uint8_t in[OPENING_MESSAGE_MAX];
	struct opening *o;
	int pair[2];
	ssize_t len;

	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
	if (other_end >= 0)
		close(other_end);
	other_end = pair[1];
	link_conf.ops = &ops;
	cluster->peers.handles++;
	MUST(peer_link_accept(&link_conf, pair[0], (const struct sockaddr *)&from));
	o = opening_start(&ring, 0, &hello, LINK_ROLE_AGENT);
	MUST(o);
	open_step(o, NULL, 0);
	while (cluster->peers.at[PEER]->state != PEER_UP) {
		uv_run(worker_loop(loop), UV_RUN_NOWAIT);
		len = read(other_end, in, sizeof(in));
		if (len > 0 && !opening_peer(o))
			open_step(o, in, (size_t)len);
	}
	opening_destroy(o);
}

void lone_cluster_turn(void)
{
	uint8_t waste[65536];

	uv_run(worker_loop(loop), UV_RUN_NOWAIT);
	while (read(other_end, waste, sizeof(waste)) > 0)
		;
}

struct cluster *lone_cluster(void)
{
	return cluster;
}

struct peer *lone_cluster_peer(void)
{
	struct peer *p;
	int64_t now_ms = cluster_now_ms();

	if (!cluster)
		make_cluster();
	p = cluster->peers.at[PEER];
	if (p->state != PEER_UP)
		open_link();
	broadcast_receiver_clock_answered(cluster->receiver, PEER, now_ms, now_ms, now_ms);
	return p;
}
