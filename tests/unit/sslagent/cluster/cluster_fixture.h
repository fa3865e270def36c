/* cluster_fixture.h: agents as threads of one process: each with its main loop and one worker, joined over loopback by
 * real sockets. */
#pragma once

#include "conf/conf.h"
#include "tests/unit/sslagent/sessions/session_maker.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/counters.h"

#define AGENTS_MAX 4u

enum agent_links { LINKS_UNIX, LINKS_TCP };

struct test_agent {
	const struct conf_agent *conf;
	struct worker *main, *worker;
	struct cluster *cluster;
	struct session_source *source;
	struct agent_counters *counters; /* threads: worker, main */
	const struct key_ring *ring;
};

struct test_cluster {
	struct conf conf;
	struct conf_agent agent_confs[AGENTS_MAX];
	struct conf_listener listener;
	struct key_ring ring, other_ring;
	struct test_agent agents[AGENTS_MAX];
	char folder[64];
	char sockets[AGENTS_MAX][96];
};

/* The file of @agents agents "a", "b"..., none started. */
void cluster_describe(struct test_cluster *t, unsigned agents, enum agent_links links);
/* Start one; wait until it is ready; until all that run have links to one another and hear each other. */
void cluster_start(struct test_cluster *t, unsigned agent);
void cluster_wait_ready(struct test_cluster *t, unsigned agent);
void cluster_wait_joined(struct test_cluster *t);
/* All at once. */
void cluster_start_all(struct test_cluster *t, unsigned agents, enum agent_links links);
/* Stop one and assert that every handle closed. */
void cluster_stop(struct test_cluster *t, unsigned agent);
void cluster_stop_all(struct test_cluster *t);

/* Call @fn(@arg) on a thread of the agent and wait until it returned. */
enum test_thread { ON_WORKER, ON_MAIN };
void cluster_call(
	struct test_agent *a, enum test_thread thread, void (*fn)(struct test_agent *a, void *arg), void *arg);

/* A session of @agent's with an id of its own; shared by its worker. TOLD: broadcast; UNTOLD: only stored there. The id
 * is in *id. */
enum test_telling { TOLD, UNTOLD };
int cluster_share(
	struct test_cluster *t, unsigned agent, struct session_wish wish, enum test_telling telling, uint8_t *id);
/* As the source says, without waiting. */
enum session_answer cluster_find(struct test_cluster *t, unsigned agent, const uint8_t *id);
/* Wait (5 s) until it says so. */
void cluster_wait_found(struct test_cluster *t, unsigned agent, const uint8_t *id);
/* Pull it and wait for the answer; *ms: how long it took. */
enum session_answer cluster_pull(struct test_cluster *t, unsigned agent, const uint8_t *id, int64_t *ms);

struct test_revocation {
	uint64_t sessions;
	unsigned confirmed, unconfirmed;
};
struct test_revocation cluster_revoke_and_wait(struct test_cluster *t, unsigned agent, const revoke_what *what);

uint64_t cluster_counted(struct test_cluster *t, unsigned agent, enum agent_counter which);
void cluster_wait_counted(struct test_cluster *t, unsigned agent, enum agent_counter which, uint64_t at_least);

/* Poll until @is(@ctx); fails after 10 s, naming @what. */
void wait_until(int (*is)(void *ctx), void *ctx, const char *what);
