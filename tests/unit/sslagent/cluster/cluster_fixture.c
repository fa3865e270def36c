/* cluster_fixture.c: threads, sockets, waiting. */
#include "tests/unit/sslagent/cluster/cluster_fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "net/loop/worker.h"
#include "net/socket/address.h"

#define WAIT_MS 10000

static int64_t now_ms(void)
{
	return (int64_t)(uv_hrtime() / 1000000);
}

void wait_until(int (*is)(void *ctx), void *ctx, const char *what)
{
	const struct timespec pause = { .tv_nsec = 500000 };
	int64_t until_ms = now_ms() + WAIT_MS;

	while (!is(ctx)) {
		if (now_ms() > until_ms)
			ck_abort_msg("waited in vain for: %s", what);
		nanosleep(&pause, NULL);
	}
}

/* An address of this agent alone, for UDP and TCP: of all that are this host's, and with a port that the kernel gives
 * to no outgoing connection, so that nobody else has it between here and its use. */
static void own_address(struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	*out = (struct sockaddr_storage){ .ss_family = AF_INET };
	in->sin_addr.s_addr = htonl((127u << 24) | (1 + randombytes_uniform((1u << 24) - 2)));
	in->sin_port = htons((uint16_t)(15000 + randombytes_uniform(17000)));
}

static void make_ring(struct key_ring *ring)
{
	ring->count = 1;
	snprintf(ring->keys[0].id, sizeof(ring->keys[0].id), "k1");
	randombytes_buf(ring->keys[0].key, KEY_LEN);
}

static void describe_agent(struct test_cluster *t, unsigned i, enum agent_links links)
{
	static char names[AGENTS_MAX][2] = { "a", "b", "c", "d" };
	struct conf_agent *agent = &t->agent_confs[i];

	agent->name = names[i];
	agent->workers = 1;
	agent->weight = 1;
	own_address(&agent->peer);
	snprintf(t->sockets[i], sizeof(t->sockets[i]), "%s/%s.sock", t->folder, names[i]);
	agent->peer_socket = links == LINKS_UNIX ? t->sockets[i] : NULL;
	t->agents[i].conf = agent;
	t->agents[i].ring = &t->ring;
}

void cluster_describe(struct test_cluster *t, unsigned agents, enum agent_links links)
{
	static char listener[] = "front";

	ck_assert_int_ge(sodium_init(), 0);
	*t = (struct test_cluster){ 0 };
	snprintf(t->folder, sizeof(t->folder), "/tmp/cssl-cluster-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(t->folder));
	make_ring(&t->ring);
	make_ring(&t->other_ring);
	t->listener = (struct conf_listener){ .name = listener,
		.tls = { .tls12_tickets = CONF_ON, .session_lifetime_s = 7200 } };
	t->conf.listeners = &t->listener;
	t->conf.listener_count = 1;
	t->conf.store = (struct conf_store){ .bytes = 16 << 20, .per_source_percent = 100, .family_lifetime_s = 86400 };
	t->conf.broadcast = (struct conf_broadcast){ .live = CONF_LIVE_BROADCAST,
		.live_keep_s = 60,
		.remember_s = 600,
		.heartbeat_ms = 50,
		.alone_after_ms = 300,
		.ring = 1024,
		.park_ms = 1000,
		.parked_max = 256,
		.key_lifetime_s = 3600 };
	t->conf.agents = t->agent_confs;
	t->conf.agent_count = agents;
	for (unsigned i = 0; i < agents; i++)
		describe_agent(t, i, links);
}

/* Calls on a thread */

struct call {
	struct test_agent *agent;
	void (*fn)(struct test_agent *a, void *arg);
	void *arg;
	pthread_mutex_t lock;
	pthread_cond_t finished;
	enum { CALL_RUNNING, CALL_FINISHED } state;
};

static void run_call(struct worker *w, void *arg)
{
	struct call *call = arg;

	call->fn(call->agent, call->arg);
	pthread_mutex_lock(&call->lock);
	call->state = CALL_FINISHED;
	pthread_cond_signal(&call->finished);
	pthread_mutex_unlock(&call->lock);
}

void cluster_call(struct test_agent *a, enum test_thread thread, void (*fn)(struct test_agent *a, void *arg), void *arg)
{
	struct call call = { .agent = a, .fn = fn, .arg = arg };

	pthread_mutex_init(&call.lock, NULL);
	pthread_cond_init(&call.finished, NULL);
	ck_assert_int_eq(worker_post(thread == ON_MAIN ? a->main : a->worker, run_call, &call), 0);
	pthread_mutex_lock(&call.lock);
	while (call.state == CALL_RUNNING)
		pthread_cond_wait(&call.finished, &call.lock);
	pthread_mutex_unlock(&call.lock);
	pthread_cond_destroy(&call.finished);
	pthread_mutex_destroy(&call.lock);
}

/* Start and stop */

struct start {
	struct test_cluster *cluster;
	struct test_agent *agent;
};

static int start_main(struct worker *w, void *arg)
{
	struct start *s = arg;
	struct test_agent *a = s->agent;
	char error[256] = "";

	counters_use(counters_of(a->counters, 1));
	a->cluster = cluster_create(w, &s->cluster->conf, a->conf, a->ring, error, sizeof(error));
	if (!a->cluster)
		fprintf(stderr, "%s\n", error);
	return a->cluster ? 0 : -1;
}

static int start_worker(struct worker *w, void *arg)
{
	struct test_agent *a = arg;

	counters_use(counters_of(a->counters, 0));
	return cluster_join_worker(a->cluster, w, NULL, NULL);
}

void cluster_start(struct test_cluster *t, unsigned agent)
{
	struct test_agent *a = &t->agents[agent];
	struct start s = { t, a };

	a->counters = agent_counters_create(2);
	a->main = worker_create(0, "main");
	a->worker = worker_create(0, "worker");
	ck_assert(a->counters && a->main && a->worker);
	ck_assert_int_eq(worker_start(a->main, start_main, &s), 0);
	ck_assert_int_eq(worker_start(a->worker, start_worker, a), 0);
	a->source = cluster_session_source(a->cluster);
}

static int is_ready(void *ctx)
{
	return cluster_state(((struct test_agent *)ctx)->cluster) == CLUSTER_READY;
}

void cluster_wait_ready(struct test_cluster *t, unsigned agent)
{
	wait_until(is_ready, &t->agents[agent], "an agent to be ready");
}

/* Sessions of each are found on each other one: links, keys and proofs are all there. */
void cluster_wait_joined(struct test_cluster *t)
{
	for (unsigned from = 0; from < t->conf.agent_count; from++) {
		uint8_t id[SESSION_ID_LEN];

		if (!t->agents[from].cluster)
			continue;
		cluster_wait_ready(t, from);
		cluster_share(t, from, (struct session_wish){ 0 }, TOLD, id);
		for (unsigned at = 0; at < t->conf.agent_count; at++)
			if (t->agents[at].cluster)
				cluster_wait_found(t, at, id);
	}
}

void cluster_start_all(struct test_cluster *t, unsigned agents, enum agent_links links)
{
	cluster_describe(t, agents, links);
	for (unsigned i = 0; i < agents; i++)
		cluster_start(t, i);
	cluster_wait_joined(t);
}

static void leave(struct test_agent *a, void *arg)
{
	cluster_leave_worker(a->cluster, a->worker);
	worker_stop(a->worker);
}

static void on_closed(void *ctx)
{
	struct test_agent *a = ctx;

	worker_stop(a->main);
}

static void close_cluster(struct test_agent *a, void *arg)
{
	cluster_close(a->cluster, on_closed, a);
}

void cluster_stop(struct test_cluster *t, unsigned agent)
{
	struct test_agent *a = &t->agents[agent];

	if (!a->cluster)
		return;
	cluster_call(a, ON_WORKER, leave, NULL);
	worker_destroy(a->worker);
	cluster_call(a, ON_MAIN, close_cluster, NULL);
	worker_destroy(a->main);
	cluster_destroy(a->cluster);
	agent_counters_destroy(a->counters);
	a->cluster = NULL;
}

void cluster_stop_all(struct test_cluster *t)
{
	for (unsigned i = 0; i < t->conf.agent_count; i++) {
		cluster_stop(t, i);
		unlink(t->sockets[i]);
	}
	ck_assert_int_eq(rmdir(t->folder), 0);
}

/* Sessions */

struct share {
	struct session_wish wish;
	enum test_telling telling;
	uint8_t id[SESSION_ID_LEN];
	int result;
};

static void share(struct test_agent *a, void *arg)
{
	struct share *s = arg;
	struct made_session *made = malloc(sizeof(*made));

	ck_assert_ptr_nonnull(made);
	a->source->make_id(a->source, s->id);
	s->wish.id = s->id;
	s->wish.origin = a->conf->name;
	session_make(made, &s->wish);
	s->result = a->source->share(a->source, s->telling == TOLD ? a->worker : NULL, &made->obj);
	free(made);
}

int cluster_share(
	struct test_cluster *t, unsigned agent, struct session_wish wish, enum test_telling telling, uint8_t *id)
{
	struct share s = { .wish = wish, .telling = telling };

	cluster_call(&t->agents[agent], ON_WORKER, share, &s);
	memcpy(id, s.id, SESSION_ID_LEN);
	return s.result;
}

enum session_answer cluster_find(struct test_cluster *t, unsigned agent, const uint8_t *id)
{
	struct session_source *source = t->agents[agent].source;
	struct sess_obj obj;
	enum session_answer answer = source->find(source, id, SESSION_ID_LEN, &obj);

	if (answer == SESSION_FOUND)
		sess_obj_destroy(&obj);
	return answer;
}

struct looking {
	struct test_cluster *cluster;
	unsigned agent;
	const uint8_t *id;
};

static int is_found(void *ctx)
{
	struct looking *l = ctx;

	return cluster_find(l->cluster, l->agent, l->id) == SESSION_FOUND;
}

void cluster_wait_found(struct test_cluster *t, unsigned agent, const uint8_t *id)
{
	struct looking l = { t, agent, id };

	wait_until(is_found, &l, "a session to be found");
}

struct pulling {
	const uint8_t *id;
	enum session_answer answer;
	_Atomic int done;
};

static void on_pulled(void *ctx, enum session_answer answer)
{
	struct pulling *p = ctx;

	p->answer = answer;
	p->done = 1;
}

static void start_pull(struct test_agent *a, void *arg)
{
	struct pulling *p = arg;

	ck_assert_ptr_nonnull(a->source->pull(a->source, a->worker, p->id, on_pulled, p));
}

static int is_pulled(void *ctx)
{
	return ((struct pulling *)ctx)->done;
}

enum session_answer cluster_pull(struct test_cluster *t, unsigned agent, const uint8_t *id, int64_t *ms)
{
	struct pulling p = { .id = id };
	int64_t begun_ms = now_ms();

	cluster_call(&t->agents[agent], ON_WORKER, start_pull, &p);
	wait_until(is_pulled, &p, "a pull to be over");
	if (ms)
		*ms = now_ms() - begun_ms;
	return p.answer;
}

struct revoking {
	struct test_revocation result;
	_Atomic int done;
};

static void on_revoked(void *ctx, struct revoke_result *r)
{
	struct revoking *v = ctx;

	v->result =
		(struct test_revocation){ r->sessions, (unsigned)r->confirmed_count, (unsigned)r->unconfirmed_count };
	free(r);
	v->done = 1;
}

static int is_revoked(void *ctx)
{
	return ((struct revoking *)ctx)->done;
}

struct test_revocation cluster_revoke_and_wait(struct test_cluster *t, unsigned agent, const revoke_what *what)
{
	struct revoking v = { 0 };

	cluster_revoke(t->agents[agent].cluster, what, on_revoked, &v);
	wait_until(is_revoked, &v, "a revocation to be over");
	return v.result;
}

uint64_t cluster_counted(struct test_cluster *t, unsigned agent, enum agent_counter which)
{
	return agent_counters_sum(t->agents[agent].counters, which);
}

struct counting {
	struct test_cluster *cluster;
	unsigned agent;
	enum agent_counter which;
	uint64_t at_least;
};

static int is_counted(void *ctx)
{
	struct counting *c = ctx;

	return cluster_counted(c->cluster, c->agent, c->which) >= c->at_least;
}

void cluster_wait_counted(struct test_cluster *t, unsigned agent, enum agent_counter which, uint64_t at_least)
{
	struct counting c = { t, agent, which, at_least };

	wait_until(is_counted, &c, "a counter to rise");
}
