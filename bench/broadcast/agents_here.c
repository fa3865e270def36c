/* agents_here.c: the cluster file is made in memory; sessions differ in their ids and have what a TLS 1.3 session has.
 */
#include "bench/broadcast/agents_here.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "net/loop/worker.h"
#include "sslagent/cluster/cluster.h"

#define PATIENCE_S      60
#define HEARD_WITHIN_MS 500u
#define MASTER_LEN      48u
#define SESSION_LEN_MAX 1024u
#define STORE_BYTES     (UINT64_C(256) << 20)

struct agent_here {
	struct agents_here *all;
	unsigned index;
	char name[8];
	struct worker *main, *worker;
	struct cluster *cluster;
	struct agent_counters *counters;
	clockid_t clocks[2]; /* by enum agent_thread */
};

struct agents_here {
	struct conf conf;
	struct conf_agent agent_confs[AGENTS_HERE_MAX];
	struct key_ring ring;
	struct agent_here agents[AGENTS_HERE_MAX];
	unsigned count;
	uint8_t session[SESSION_LEN_MAX];
	size_t session_len, object_len[HERE_KINDS];
	unsigned by, turns_left, per_turn;
	enum agents_here_kind kind;
	pthread_mutex_t lock;
	pthread_cond_t said;
};

/* An address that nobody uses now, for UDP and TCP. 0 or -1. */
static int free_address(struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	socklen_t len = sizeof *in;
	int tcp = socket(AF_INET, SOCK_STREAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
	int r = -1;

	*out = (struct sockaddr_storage){ .ss_family = AF_INET };
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (tcp >= 0 && udp >= 0 && bind(tcp, (struct sockaddr *)out, sizeof *in) == 0 &&
		getsockname(tcp, (struct sockaddr *)out, &len) == 0)
		r = bind(udp, (struct sockaddr *)out, sizeof *in);
	if (tcp >= 0)
		close(tcp);
	if (udp >= 0)
		close(udp);
	return r;
}

/* Make a TLS 1.3 session and write it in OpenSSL's format. 0 or -1. */
static int make_session(struct agents_here *a)
{
	static const unsigned char suite[2] = { 0x13, 0x02 };
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	SSL *ssl = ctx ? SSL_new(ctx) : NULL;
	SSL_SESSION *session = SSL_SESSION_new();
	unsigned char secret[MASTER_LEN], *to = a->session;
	int len = 0;

	/* All that a handshake would fill in, so that the object has the length of a real one. */
	randombytes_buf(secret, sizeof secret);
	if (ssl && session && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
		SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite)) &&
		SSL_SESSION_set1_master_key(session, secret, sizeof secret) &&
		SSL_SESSION_set1_id(session, secret, SESSION_ID_LEN) &&
		SSL_SESSION_set1_hostname(session, "www.example.org"))
		len = i2d_SSL_SESSION(session, NULL);
	if (len > 0 && len <= (int)sizeof a->session)
		a->session_len = (size_t)i2d_SSL_SESSION(session, &to);
	SSL_SESSION_free(session);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return a->session_len > 0 ? 0 : -1;
}

static void fill_object(struct agents_here *a, struct sess_obj *o)
{
	struct session_facts *f = &o->facts;
	uint32_t source = randombytes_random();

	*o = (struct sess_obj){ .session = a->session, .session_len = a->session_len, .session_remaining_s = 7200 };
	f->protocol_version = TLS1_3_VERSION;
	f->cipher_suite = 0x1302;
	f->session_id_len = SESSION_ID_LEN;
	randombytes_buf(f->family_id, sizeof f->family_id);
	strcpy(f->origin, a->agents[a->by].name);
	strcpy(f->listener, "https");
	strcpy(f->server_name, "www.example.org");
	strcpy(f->alpn, "http/1.1");
	f->client.len = sizeof source;
	memcpy(f->client.bytes, &source, sizeof source);
	f->context_len = sizeof f->context;
}

/* Of a connection with the same suite, which its agent keeps. */
static void fill_live(struct live_part *l)
{
	*l = (struct live_part){ .epoch = 1, .write_sequence = 2, .remaining_s = 7u * 86400u, .made_ms = 1 };
	l->client_write.secret_len = l->server_write.secret_len = MASTER_LEN;
	randombytes_buf(l->connection.bytes, sizeof l->connection.bytes);
	randombytes_buf(l->client_write.secret, MASTER_LEN);
	randombytes_buf(l->server_write.secret, MASTER_LEN);
	randombytes_buf(l->token, sizeof l->token);
}

static void share_session(struct agents_here *a, struct worker *w, struct sess_obj *o)
{
	struct session_source *source = cluster_session_source(a->agents[a->by].cluster);

	source->make_id(source, o->facts.session_id);
	source->share(source, w, o);
	a->object_len[HERE_SESSION] = (size_t)sess_obj_encoded_len(o);
}

static void share_live(struct agents_here *a, struct worker *w, const struct sess_obj *session)
{
	struct sess_obj o = *session;
	struct live_part part;

	fill_live(&part);
	o.session = NULL;
	o.session_len = 0;
	o.live = &part;
	if (cluster_share_live(a->agents[a->by].cluster, w, &o) != 0)
		abort();
	a->object_len[HERE_LIVE] = (size_t)sess_obj_encoded_len(&o);
}

/* One turn's objects; the next turn follows as another post, so that the flush is between them. */
static void on_share(struct worker *w, void *arg)
{
	struct agents_here *a = arg;
	struct sess_obj o;

	fill_object(a, &o);
	for (unsigned i = 0; i < a->per_turn; i++) {
		if (a->kind == HERE_SESSION)
			share_session(a, w, &o);
		else
			share_live(a, w, &o);
	}
	pthread_mutex_lock(&a->lock);
	if (--a->turns_left == 0)
		pthread_cond_signal(&a->said);
	else
		worker_post(w, on_share, a);
	pthread_mutex_unlock(&a->lock);
}

void agents_here_share(struct agents_here *a, unsigned by, enum agents_here_kind kind, unsigned turns, unsigned count)
{
	pthread_mutex_lock(&a->lock);
	a->by = by;
	a->kind = kind;
	a->turns_left = turns;
	a->per_turn = count;
	if (worker_post(a->agents[by].worker, on_share, a) == 0)
		while (a->turns_left > 0)
			pthread_cond_wait(&a->said, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

uint64_t agents_here_counted(struct agents_here *a, unsigned agent, enum agent_counter which)
{
	return agent_counters_sum(a->agents[agent].counters, which);
}

uint64_t agents_here_cpu_ns(struct agents_here *a, unsigned agent, enum agent_thread thread)
{
	struct timespec t = { 0 };

	clock_gettime(a->agents[agent].clocks[thread], &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

size_t agents_here_object_len(const struct agents_here *a, enum agents_here_kind kind)
{
	return a->object_len[kind];
}

/* Start and stop */

static int on_main(struct worker *w, void *arg)
{
	struct agent_here *agent = arg;
	struct agents_here *a = agent->all;
	char error[256] = "";

	counters_use(counters_of(agent->counters, 1));
	pthread_getcpuclockid(pthread_self(), &agent->clocks[THREAD_MAIN]);
	agent->cluster = cluster_create(w, &a->conf, &a->agent_confs[agent->index], &a->ring, error, sizeof error);
	if (!agent->cluster)
		fprintf(stderr, "cssl-bench: %s\n", error);
	return agent->cluster ? 0 : -1;
}

static int on_worker(struct worker *w, void *arg)
{
	struct agent_here *agent = arg;

	counters_use(counters_of(agent->counters, 0));
	pthread_getcpuclockid(pthread_self(), &agent->clocks[THREAD_WORKER]);
	return cluster_join_worker(agent->cluster, w, NULL, NULL);
}

static int start_agent(struct agents_here *a, unsigned i)
{
	struct agent_here *agent = &a->agents[i];

	agent->counters = agent_counters_create(2);
	agent->main = worker_create(0, "main");
	agent->worker = worker_create(0, "worker");
	if (!agent->counters || !agent->main || !agent->worker)
		return -1;
	if (worker_start(agent->main, on_main, agent) != 0)
		return -1;
	return worker_start(agent->worker, on_worker, agent);
}

static int agents_describe(struct agents_here *a, unsigned count, enum conf_live live)
{
	a->count = count;
	a->ring.count = 1;
	strcpy(a->ring.keys[0].id, "k1");
	randombytes_buf(a->ring.keys[0].key, KEY_LEN);
	a->conf.store =
		(struct conf_store){ .bytes = STORE_BYTES, .per_source_percent = 100, .family_lifetime_s = 86400 };
	a->conf.broadcast = (struct conf_broadcast){ .live = live,
		.live_keep_s = 60,
		.remember_s = 600,
		.heartbeat_ms = 100,
		.alone_after_ms = 300,
		.left_ms = 10000,
		.ring = 8192,
		.park_ms = 100,
		.parked_max = 256,
		.key_lifetime_s = 3600 };
	a->conf.agents = a->agent_confs;
	a->conf.agent_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct agent_here *agent = &a->agents[i];

		agent->all = a;
		agent->index = i;
		snprintf(agent->name, sizeof agent->name, "a%u", i + 1);
		a->agent_confs[i] = (struct conf_agent){ .name = agent->name, .workers = 1, .weight = 1 };
		if (free_address(&a->agent_confs[i].peer) != 0)
			return -1;
	}
	return 0;
}

/* By all but agent 0, together. */
static uint64_t agents_received(struct agents_here *a)
{
	uint64_t objects = 0;

	for (unsigned i = 1; i < a->count; i++)
		objects += agents_here_counted(a, i, COUNT_OBJECTS_RECEIVED);
	return objects;
}

/* True when all agents are ready, know all others, and get all messages of agent 0. */
static bool agents_are_heard(struct agents_here *a)
{
	const uint64_t before = agents_received(a);

	for (unsigned i = 0; i < a->count; i++) {
		if (cluster_state(a->agents[i].cluster) != CLUSTER_READY ||
			agents_here_counted(a, i, COUNT_PEERS_UP) != a->count - 1)
			return false;
	}
	agents_here_share(a, 0, HERE_SESSION, 1, 4 * a->count);
	uint64_t wanted = 4 * a->count * (a->count - 1);
	for (unsigned i = 0; i < HEARD_WITHIN_MS; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		if (agents_received(a) - before >= wanted)
			return true;
	}
	return false;
}

struct agents_here *agents_here_start(unsigned count, enum conf_live live)
{
	struct agents_here *a = calloc(1, sizeof *a);
	time_t until = time(NULL) + PATIENCE_S;

	if (!a || sodium_init() < 0 || agents_describe(a, count, live) != 0 || make_session(a) != 0)
		goto failed;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->said, NULL);
	log_set_level(LOG_ERROR);
	for (unsigned i = 0; i < a->count; i++)
		if (start_agent(a, i) != 0)
			goto failed;
	while (!agents_are_heard(a)) {
		if (time(NULL) > until)
			goto failed;
		nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
	return a;
failed:
	fprintf(stderr, "cssl-bench: the agents did not come to hear each other\n");
	exit(EXIT_FAILURE); /* threads run */
}

static void on_leave(struct worker *w, void *arg)
{
	struct agent_here *agent = arg;

	cluster_leave_worker(agent->cluster, w);
	worker_stop(w);
}

static void on_agent_closed(void *ctx)
{
	worker_stop(((struct agent_here *)ctx)->main);
}

static void on_close(struct worker *w, void *arg)
{
	struct agent_here *agent = arg;

	cluster_close(agent->cluster, on_agent_closed, agent);
}

void agents_here_stop(struct agents_here *a)
{
	for (unsigned i = 0; a && i < a->count; i++) {
		struct agent_here *agent = &a->agents[i];

		worker_post(agent->worker, on_leave, agent);
		worker_destroy(agent->worker);
		worker_post(agent->main, on_close, agent);
		worker_destroy(agent->main);
		cluster_destroy(agent->cluster);
		agent_counters_destroy(agent->counters);
	}
	if (!a)
		return;
	pthread_cond_destroy(&a->said);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
