/* fake_cluster.h: what cluster.h promises, without a network: two agents in one process whose broadcast, agent-agent
 * links and memory of epochs do what the test says. Linked in place of the real one.
 */
#ifndef CSSL_TESTS_UNIT_SSLAGENT_FAKE_CLUSTER_H
#define CSSL_TESTS_UNIT_SSLAGENT_FAKE_CLUSTER_H

#include "sslagent/cluster/cluster.h"
#include "tests/lib/memory_source.h"

#define FAKE_HEARD_MAX  8u
#define FAKE_CLAIMS_MAX 64u
#define FAKE_PASSED_MAX 8u

/* A live part that came by the broadcast, as its bytes. */
struct fake_heard {
	struct connection_id connection;
	uint8_t *bytes;
	size_t len;
	uint16_t epoch;
	uint32_t read_generation, write_generation;
};

/* A pass that waits for its receipt. */
struct fake_pass {
	struct passed_backend backend;
	void (*done)(void *ctx, int error);
	void *ctx;
};

struct cluster {
	struct memory_source source; /* of sessions; pull and pull_cancel are below */
	struct cluster *other;       /* the peer that hears what this one shares */
	enum { BROADCAST_HEARD, BROADCAST_LOST } broadcast;
	enum { PASSES, PASSES_NOT } host; /* can backends be passed to the other one? */
	struct fake_heard heard[FAKE_HEARD_MAX];
	size_t heard_count;
	struct {
		struct connection_id connection;
		uint16_t epoch;
	} claims[FAKE_CLAIMS_MAX];
	size_t claim_count;
	struct fake_pass leaving[FAKE_PASSED_MAX];
	size_t leaving_count;
	struct passed_backend arrived[FAKE_PASSED_MAX];
	size_t arrived_count;
	unsigned shared, adopted, gone, workers;
	/* the one pull under way */
	void (*pulled)(void *ctx, enum session_answer answer);
	void *pull_ctx;
	unsigned pulls, pulls_cancelled;
};

void fake_cluster_start(struct cluster *c, const char *name, struct cluster *other);
void fake_cluster_stop(struct cluster *c);

/* Let the passes that left arrive (error 0) or fail. Calls back. */
void fake_cluster_finish_passes(struct cluster *c, int error);
/* The answer to the pull under way; found: the session is here now. */
void fake_cluster_answer_pull(struct cluster *c, enum session_answer answer);

#endif
