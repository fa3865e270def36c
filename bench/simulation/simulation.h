/* simulation.h: a cluster in virtual time. Numbering, rings, datagrams, gaps, questions and repeats are the agents' own
 * code (broadcast_sender, broadcast_receiver), and so is the placement; no socket is opened and nothing is sealed: what
 * that costs is computed from its measured price (broadcast_cost.h).
 *
 * All agents send. A sample of them, the watched ones, also receive, with all that is behind it; as agents are alike,
 * what the others get is what the watched get. Clients come back to watched agents. Of what a watched one has not,
 * others are asked in the order in which pulls.c asks them; one that is not watched has what it holds after as long a
 * time as the watched ones needed for theirs. */
#ifndef CSSL_BENCH_SIMULATION_SIMULATION_H
#define CSSL_BENCH_SIMULATION_SIMULATION_H

#include <stddef.h>
#include <stdint.h>

#include "bench/measure/histogram.h"

#define SIMULATION_AGENTS_MAX   1000u
#define SIMULATION_SESSIONS_MAX 8000000u
#define SIMULATION_RETURNS      4u /* after 1, 10, 100 and 1000 ms */

/* Which objects a handshake makes beside its session. */
enum simulation_live {
	SIMULATION_SESSIONS_ONLY,
	SIMULATION_BROADCAST, /* a live part, to all agents */
	SIMULATION_CARRIED,   /* a word that the connection exists, to all agents */
};

struct simulation_conf {
	unsigned agents, watched;
	double handshakes_per_s; /* of the cluster */
	unsigned replicas;       /* 0: all */
	unsigned run_ms;
	double loss;
	unsigned delay_ms, jitter_ms;
	double leaves_per_min; /* agents that die; each is back after away_ms with nothing */
	unsigned away_ms, left_ms;
	unsigned turn_ms, heartbeat_ms;
	size_t object_len;
	enum simulation_live live;
	size_t live_len; /* of a live part */
	unsigned words;  /* for each handshake, by other agents: a connection was adopted, or ended */
	uint64_t seed;
};

struct simulation_returns {
	uint64_t returned, at_once, pulled, missed;
};

struct simulation_result {
	uint64_t sessions;
	struct simulation_returns returns[SIMULATION_RETURNS];
	uint64_t seals;                               /* datagrams sealed, all agents */
	uint64_t datagrams, bytes, objects;           /* that came to the watched; objects: sessions */
	uint64_t live_parts, words;                   /* as well */
	uint64_t sent_objects, made_words;            /* sessions to the watched, lost ones as well; by all agents */
	uint64_t numbers_missed, repeated, duplicate; /* counted by them and for them */
	uint64_t questions, forgotten, snapshot_objects;
	double standing;             /* part of all sessions that stands on a watched agent at the end */
	double agents_up;            /* mean */
	struct histogram *staleness; /* ns from made to heard, of those told to watched agents */
};

/* 0; negative: out of memory. @out->staleness is the caller's to free. */
int simulation_run(const struct simulation_conf *conf, struct simulation_result *out);

unsigned simulation_return_ms(unsigned row);

#endif
