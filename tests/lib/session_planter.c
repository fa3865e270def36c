/* session_planter.c: an agent that only has sessions: it is a member of a cluster, its peers take what it has and keep
 * it, but it has no links and no listeners.
 *
 *   session_planter --config cluster.yaml --name AGENT --sessions N
 *
 * Every hundredth is for rare.example, the others are for www.example; half of them are of TLS 1.2. They come from
 * addresses in 10.0.0.0/8. Says "planted N" when it has them; ends with its standard input. */
#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "net/loop/worker.h"
#include "net/report/log.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/counters.h"

#define MESSAGE_CAP    1024u
#define RARE_EVERY     100u
#define SESSION_LEN    135u
#define REMAINING_S    7200u
#define PLANTED_A_TURN 1000u

struct planter {
	const char *config, *name;
	unsigned wanted, planted;
	struct conf *conf;
	const struct conf_agent *self;
	struct key_ring *ring;
	struct agent_counters *counters;
	struct worker *main, *worker;
	struct cluster *cluster;
	sem_t done;
};

static void plant_one(struct planter *p, struct worker *w)
{
	struct session_source *source = cluster_session_source(p->cluster);
	uint8_t secret[SESSION_LEN];
	struct sess_obj o = { .session = secret, .session_len = sizeof(secret), .session_remaining_s = REMAINING_S };
	struct session_facts *f = &o.facts;
	const unsigned i = p->planted++;

	randombytes_buf(secret, sizeof(secret));
	randombytes_buf(f->family_id, sizeof(f->family_id));
	source->make_id(source, f->session_id);
	f->session_id_len = SESSION_ID_LEN;
	f->protocol_version = i % 2 ? 0x0304 : 0x0303;
	f->cipher_suite = i % 2 ? 0x1302 : 0xc02b;
	snprintf(f->origin, sizeof(f->origin), "%s", p->self->name);
	snprintf(f->listener, sizeof(f->listener), "sl");
	snprintf(f->server_name, sizeof(f->server_name), "%s", i % RARE_EVERY ? "www.example" : "rare.example");
	f->client = (struct client_address){ { 10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i }, 4 };
	if (source->share(source, w, &o) != 0) {
		fprintf(stderr, "session_planter: session %u was refused\n", i);
		exit(EXIT_FAILURE);
	}
}

static void on_plant(struct worker *w, void *arg)
{
	struct planter *p = arg;

	for (unsigned i = 0; i < PLANTED_A_TURN && p->planted < p->wanted; i++)
		plant_one(p, w);
	if (p->planted == p->wanted)
		sem_post(&p->done);
	else
		worker_post(w, on_plant, p);
}

/* --- start and stop --- */

static int on_main(struct worker *w, void *arg)
{
	struct planter *p = arg;
	char message[MESSAGE_CAP] = "";

	counters_use(counters_of(p->counters, 0));
	p->cluster = cluster_create(w, p->conf, p->self, p->ring, message, sizeof(message));
	if (!p->cluster)
		fprintf(stderr, "session_planter: %s\n", message);
	return p->cluster ? 0 : -1;
}

static int on_worker(struct worker *w, void *arg)
{
	struct planter *p = arg;

	counters_use(counters_of(p->counters, 1));
	return cluster_join_worker(p->cluster, w, NULL, NULL);
}

static void start(struct planter *p)
{
	char message[MESSAGE_CAP] = "";

	sem_init(&p->done, 0, 0);
	if (conf_load(p->config, &p->conf, message, sizeof(message)) == 0) {
		p->self = conf_agent_find(p->conf, p->name);
		p->ring = conf_read_key(p->conf->agents_key, message, sizeof(message));
	}
	p->counters = agent_counters_create(2);
	p->main = worker_create(0, "main");
	p->worker = worker_create(0, "worker");
	log_set_level(LOG_ERROR);
	if (p->self && p->ring && p->counters && p->main && p->worker && worker_start(p->main, on_main, p) == 0 &&
		worker_start(p->worker, on_worker, p) == 0)
		return;
	fprintf(stderr, "session_planter: not started: %s\n", message);
	exit(EXIT_FAILURE);
}

static void on_leave(struct worker *w, void *arg)
{
	struct planter *p = arg;

	cluster_leave_worker(p->cluster, w);
	worker_stop(w);
}

static void on_closed(void *ctx)
{
	worker_stop(((struct planter *)ctx)->main);
}

static void on_close(struct worker *w, void *arg)
{
	struct planter *p = arg;

	cluster_close(p->cluster, on_closed, p);
}

static void stop(struct planter *p)
{
	worker_post(p->worker, on_leave, p);
	worker_destroy(p->worker);
	worker_post(p->main, on_close, p);
	worker_destroy(p->main);
	cluster_destroy(p->cluster);
	agent_counters_destroy(p->counters);
	sodium_free(p->ring);
	conf_destroy(p->conf);
	sem_destroy(&p->done);
}

static int parse(int argc, char **argv, struct planter *p)
{
	static const struct option options[] = { { "config", required_argument, NULL, 'c' },
		{ "name", required_argument, NULL, 'n' }, { "sessions", required_argument, NULL, 's' },
		{ NULL, 0, NULL, 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'c': p->config = optarg; break;
		case 'n': p->name = optarg; break;
		case 's': p->wanted = (unsigned)strtoul(optarg, NULL, 10); break;
		default: return -1;
		}
	}
	return p->config && p->name && p->wanted > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct planter p = { .wanted = 0 };

	if (parse(argc, argv, &p) != 0 || sodium_init() < 0) {
		fprintf(stderr, "session_planter: --config FILE, --name AGENT and --sessions N are needed\n");
		return EXIT_FAILURE;
	}
	start(&p);
	worker_post(p.worker, on_plant, &p);
	while (sem_wait(&p.done) != 0)
		;
	printf("planted %u\n", p.planted);
	fflush(stdout);
	while (getchar() != EOF)
		;
	stop(&p);
	return EXIT_SUCCESS;
}
