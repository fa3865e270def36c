/* agents_here.h: agents as threads of this process, for measuring what their membership of the cluster costs: each with
 * its main loop and one worker, joined over loopback by real sockets, with no TLS. */
#ifndef CSSL_BENCH_SIMULATION_AGENTS_HERE_H
#define CSSL_BENCH_SIMULATION_AGENTS_HERE_H

#include <stddef.h>
#include <stdint.h>

#include "sslagent/counters.h"

#define AGENTS_HERE_MAX 32u

struct agents_here;

struct agents_here_conf {
	unsigned agents;
	unsigned replicas; /* 0: all */
	uint64_t store_bytes;
};

/* Started, ready, and each hears each other. NULL with a message on standard error. */
struct agents_here *agents_here_start(const struct agents_here_conf *conf);
void agents_here_stop(struct agents_here *a);

/* The worker of agent @by makes @count sessions in each of @turns turns of its loop; returns when it has said them. */
void agents_here_share(struct agents_here *a, unsigned by, unsigned turns, unsigned count);

uint64_t agents_here_counted(struct agents_here *a, unsigned agent, enum agent_counter which);

/* CPU time that a thread of an agent has had. */
enum agent_thread { THREAD_WORKER, THREAD_MAIN };
uint64_t agents_here_cpu_ns(struct agents_here *a, unsigned agent, enum agent_thread thread);

/* Bytes of an encoded session as they are made here. */
size_t agents_here_object_len(const struct agents_here *a);

#endif
