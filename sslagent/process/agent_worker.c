/* agent_worker.c: builds a worker's objects and takes them down; and answers what its links ask of the process. */
#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/connection.h"
#include "sslagent/counters.h"
#include "sslagent/process/agent_internal.h"
#include "sslagent/tls/tls_contexts.h"

/* --- links --- */

void agent_fill_hello(const void *process, struct link_hello *out)
{
	const struct agent *a = process;

	*out = (struct link_hello){ .version_min = LINK_VERSION,
		.version_max = LINK_VERSION,
		.role = LINK_ROLE_AGENT,
		.protection = a->self->link_protection,
		.aead = aead_preferred(),
		.bytes = a->self->link.ss_family == AF_UNIX ? a->self->link_bytes : LINK_BYTES_ON_SOCKET,
		.boot_id = cluster_identity(a->cluster)->boot_id,
		.workers = (uint16_t)a->worker_count };
	strncpy(out->name, a->self->name, sizeof out->name - 1);
	memcpy(out->id_check_key, cluster_identity(a->cluster)->id_check_key, sizeof out->id_check_key);
}

static void on_given_link(struct worker *w, void *arg)
{
	carrier_link_begin(arg);
}

void agent_give_link(void *process, struct link_arrival *arrival)
{
	struct agent *a = process;
	struct agent_worker *home = &a->workers[arrival->peer.target_worker]; /* proto/opening.h checked it */

	arrival->home = &home->carriers;
	if (worker_post(home->worker, on_given_link, arrival) < 0)
		link_arrival_destroy(arrival);
}

static bool is_leaving(const void *process)
{
	const struct agent_worker *asking = process;

	return atomic_load_explicit(&asking->agent->state, memory_order_relaxed) >= AGENT_LEAVING;
}

static void fill_load(void *process, Cssl__LinkLoad *out)
{
	struct agent_worker *asking = process;
	const struct connection_home *connections = &asking->connections;
	const struct agent *a = asking->agent;

	atomic_store_explicit(&asking->connection_count, (uint32_t)connections->table.count, memory_order_relaxed);
	for (unsigned i = 0; i < a->worker_count; i++) {
		out->connections += atomic_load_explicit(&a->workers[i].connection_count, memory_order_relaxed);
		out->handshakes +=
			atomic_load_explicit(&a->workers[i].connections.handshake_count, memory_order_relaxed);
	}
	count_gauge(COUNT_LINK_QUEUED_BYTES, carrier_home_queued(&asking->carriers));
	count_gauge(COUNT_KEPT_BYTES, connections->holdings.len + connections->held.len);
	count_gauge(COUNT_HANDSHAKES_UNDER_WAY, connections->handshakes);
	out->busy_permille = worker_busy_permille(asking->worker);
	out->handshake_us = connections->handshake_us;
	cluster_count_sessions(a->cluster, &out->sessions, NULL);
	out->version = (char *)CSSL_VERSION;
	out->wall_ms = worker_wall_ms();
	out->cut_off =
		backends_failing(a->backend_states, a->conf, worker_now_ms(asking->worker), asking->failing_backends);
	out->failing_backends = asking->failing_backends;
	out->ready = cluster_state(a->cluster) == CLUSTER_READY && !is_leaving(asking);
}

static const struct carrier_process_ops carrier_ops = {
	.is_leaving = is_leaving, .load = fill_load, .request = agent_request
};

/* --- life --- */

void agent_worker_init(struct agent *a, unsigned i)
{
	struct agent_worker *home = &a->workers[i];
	char name[24];

	snprintf(name, sizeof name, "worker%u", i);
	*home = (struct agent_worker){ .agent = a, .worker = worker_create(i, name) };
	home->connections = (struct connection_home){ .worker = home->worker,
		.conf = a->conf,
		.self = a->self,
		.agents_key = a->agents_key,
		.cluster = a->cluster,
		.contexts = tls_contexts_ref(a->contexts),
		.backend_states = a->backend_states };
	home->carriers = (struct carrier_home){ .connections = &home->connections,
		.admission = a->admission,
		.blocked = a->blocked,
		.ops = &carrier_ops,
		.process = home };
}

int agent_worker_open(struct agent_worker *home)
{
	const struct conf_agent *self = home->connections.self;
	int r = connection_home_open(&home->connections);

	if (r == 0)
		r = carrier_home_open(&home->carriers);
	if (r == 0)
		r = cluster_join_worker(
			home->connections.cluster, home->worker, connection_superseded, &home->connections);
	for (size_t i = 0; r == 0 && i < self->direct_count; i++) {
		if (!direct_listen(&home->carriers, &self->direct[i]))
			r = CSSL_E_SYSTEM;
	}
	return r;
}

void agent_worker_close(struct agent_worker *home)
{
	carrier_home_close(&home->carriers);
	connection_home_close(&home->connections);
	cluster_leave_worker(home->connections.cluster, home->worker);
}

void agent_worker_release(struct agent_worker *home)
{
	carrier_home_release(&home->carriers);
	connection_home_release(&home->connections);
	tls_contexts_unref(home->reloaded);
}
