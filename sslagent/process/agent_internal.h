/* agent_internal.h: shared by the process's own files only: agent.c (start, reload, stop), agent_worker.c (a worker,
 * and what its links ask of the process) and requests.c (RAgent's requests). Call the functions on the main loop's
 * thread unless their comment says otherwise.
 */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdatomic.h>

#include "net/memory/heap_tide.h"
#include "sslagent/carrier/carrier_home.h"

struct agent;
struct timer;
struct link_arrival;
struct link_hello;

enum agent_state { AGENT_STARTING, AGENT_SERVING, AGENT_LEAVING, AGENT_STOPPING };

/* One worker thread: its connections (connection_home.h), its links and direct listeners (carrier_home.h). Only its own
 * thread uses it, except where a comment says otherwise. */
struct agent_worker {
	struct agent *agent;
	struct worker *worker; /* NULL: its thread has ended */
	struct connection_home connections;
	struct carrier_home carriers;
	char failing_backends[BACKENDS_TEXT_MAX]; /* as it was told last */
	_Atomic(struct tls_contexts *) reloaded;  /* from the main loop, in place of those of its connections */
	_Atomic uint32_t connection_count;        /* other threads read it */
	_Atomic uint32_t link_count, lingering_count, preamble_count; /* while the agent leaves */
};

struct agent {
	struct conf *conf;
	const struct conf_agent *self;
	struct key_ring *link_key, *agents_key;
	struct worker *main;
	struct signals *signals;
	struct timer *watch, *gauges;
	struct heap_tide tide; /* of handshakes */
	struct cluster *cluster;
	struct listings *listings;
	struct tls_contexts *contexts;
	struct link_acceptor *acceptor;
	struct admission *admission;
	struct agent_counters *counters;
	struct backend_state *backend_states;
	struct blocked *blocked; /* of each RAgent */
	struct agent_worker *workers;
	unsigned worker_count; /* of running workers */
	uint64_t leaving_since_ms;
	_Atomic int state; /* enum agent_state */
};

/* agent.c */
/* Open the log again, and read certificates and keys again, from the same cluster file. 0, or negative for
 * error_text(): what could not be read again stays (logged). */
int agent_reload(struct agent *a);
/* @ragent keeps these networks (net/limits/blocked.h) out, and no others. 0; CSSL_E_NOT_FOUND: no RAgent of that name;
 * CSSL_E_RANGE: nothing changed. */
int agent_block(struct agent *a, const char *ragent, uint64_t boot_id, const ProtobufCBinaryData *packed);

/* agent_worker.c */
/* For link_acceptor.h; @process is the agent. */
void agent_fill_hello(const void *process, struct link_hello *out);
void agent_give_link(void *process, struct link_arrival *arrival);
/* Worker @i of @a, before its thread starts. */
void agent_worker_init(struct agent *a, unsigned i);
/* On its own thread. 0 or negative (logged). In both cases agent_worker_close() has to follow. */
int agent_worker_open(struct agent_worker *home);
/* Close links, listeners, connections and idle backend connections. The loop ends when their handles are closed. */
void agent_worker_close(struct agent_worker *home);
/* Call it after the thread ended. */
void agent_worker_release(struct agent_worker *home);

/* requests.c */
/* On the worker's thread. Takes over @request: RAgent's request to the agent as a whole (REQUEST on stream 0). It gets
 * exactly one RESPONSE on its link, unless that link is gone. */
void agent_request(void *home, uint64_t link_number, Cssl__LinkRequest *request);
