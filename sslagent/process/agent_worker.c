/* agent_worker.c: builds a worker's objects and takes them down. */
#include "sslagent/process/agent_worker.h"

#include "proto/error.h"
#include "sslagent/carrier/direct.h"
#include "sslagent/carrier/link.h"
#include "sslagent/cluster/cluster.h"
#include "sslagent/connection/connection.h"

int agent_worker_open(struct agent_worker *home)
{
	const struct conf_agent *self = home->connections.self;
	int r = connection_home_open(&home->connections);

	if (r == 0)
		r = carrier_home_open(&home->carriers);
	if (r == 0)
		r = cluster_join_worker(home->connections.cluster, home->worker);
	if (r == 0)
		cluster_on_superseded(
			home->connections.cluster, home->worker, connection_superseded, &home->connections);
	for (size_t i = 0; r == 0 && i < self->direct_count; i++) {
		if (!direct_listen(&home->carriers, &self->direct[i]))
			r = CSSL_E_SYSTEM;
	}
	return r;
}

void agent_worker_close(struct agent_worker *home)
{
	direct_close_all(&home->carriers);
	for (struct link *l = home->carriers.links; l; l = *link_next(l))
		link_close(l);
	while (home->carriers.parked)
		link_close(home->carriers.parked);
	connection_home_close(&home->connections);
	cluster_leave_worker(home->connections.cluster, home->worker);
}

void agent_worker_release(struct agent_worker *home)
{
	direct_release_all(&home->carriers);
	carrier_home_release(&home->carriers);
	connection_home_release(&home->connections);
}
