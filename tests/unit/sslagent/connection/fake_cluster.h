/* fake_cluster.h: what cluster.h promises, without a network: two agents in one process whose broadcast, agent-agent
 * links and memory of epochs do what the test says. Linked in place of the real one.
 */
#pragma once

#include "sslagent/cluster/cluster.h"
#include "tests/lib/memory_source.h"

#define FAKE_HEARD_MAX  8u
#define FAKE_PASSED_MAX 8u
#define FAKE_SEEN_MAX   4096u
#define FAKE_KEEP_MS    1000u
#define FAKE_START_MS   100000

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
	struct connections_seen *seen; /* what it remembers; the other one is told all */
	int64_t now_ms;                /* of the shared clock, and its own */
	struct fake_pass leaving[FAKE_PASSED_MAX];
	size_t leaving_count;
	struct passed_backend arrived[FAKE_PASSED_MAX];
	size_t arrived_count;
	unsigned shared, adopted, gone, rested;
	/* the one pull under way */
	void (*pulled)(void *ctx, enum session_answer answer);
	void *pull_ctx;
	unsigned pulls, pulls_cancelled;
};

void fake_cluster_start(struct cluster *c, const char *name, struct cluster *other);
void fake_cluster_stop(struct cluster *c);

/* Let the passes that left arrive (error 0) or fail. Calls back. */
void fake_cluster_finish_passes(struct cluster *c, int error);
/* Some agent owned it under @epoch; the other one hears of it. */
void fake_cluster_owned(struct cluster *c, const struct connection_id *id, uint16_t epoch);
/* Would it own it under @epoch, with keys that nobody had? As cluster_claim(). */
int fake_cluster_try(struct cluster *c, const struct connection_id *id, uint16_t epoch);
/* It has been restarted, and knows of nothing. */
void fake_cluster_forget(struct cluster *c);
/* The answer to the pull under way; found: the session is here now. */
void fake_cluster_answer_pull(struct cluster *c, enum session_answer answer);
