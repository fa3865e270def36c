/* agents_here.h: agents as threads of this process, for measuring what their membership of the cluster costs: each with
 * its main loop and one worker, joined over loopback by real sockets, with no TLS. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "conf/conf.h"
#include "sslagent/counters.h"

#define AGENTS_HERE_MAX 32u

struct agents_here;

/* @count agents, started and ready, and each hears each other. If that fails, this complains and ends the process. */
struct agents_here *agents_here_start(unsigned count, enum conf_live live);
void agents_here_stop(struct agents_here *a);

enum agents_here_kind {
	HERE_SESSION, /* of a handshake */
	HERE_LIVE,    /* of its connection: with live: broadcast its live part, else only that it exists */
	HERE_KINDS,
};

/* The worker of agent @by shares @count objects of a kind in each of @turns turns of its loop; returns when it has said
 * them. */
void agents_here_share(struct agents_here *a, unsigned by, enum agents_here_kind kind, unsigned turns, unsigned count);

uint64_t agents_here_counted(struct agents_here *a, unsigned agent, enum agent_counter which);

/* CPU time that a thread of an agent has had. */
enum agent_thread { THREAD_WORKER, THREAD_MAIN };
uint64_t agents_here_cpu_ns(struct agents_here *a, unsigned agent, enum agent_thread thread);

/* Bytes of an encoded session, or of a live part with its facts, as they were made here last. */
size_t agents_here_object_len(const struct agents_here *a, enum agents_here_kind kind);
