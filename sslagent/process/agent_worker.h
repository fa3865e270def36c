/* agent_worker.h: one worker thread of an agent: its connections (connection_home.h), its links and direct listeners
 * (carrier_home.h). Used only from its own thread, but for what says otherwise.
 */
#ifndef CSSL_SSLAGENT_AGENT_WORKER_H
#define CSSL_SSLAGENT_AGENT_WORKER_H

#include "sslagent/carrier/carrier_home.h"

struct agent;

struct agent_worker {
	struct agent *agent;
	struct worker *worker; /* NULL: its thread has ended */
	struct connection_home connections;
	struct carrier_home carriers;
	_Atomic uint32_t connection_count;            /* read by other threads */
	_Atomic uint32_t link_count, lingering_count; /* while the agent leaves */
};

/* On its own thread. 0 or negative (logged); then agent_worker_close() is due all the same. */
int agent_worker_open(struct agent_worker *home);
/* Give up links, listeners, connections, idle backends; the loop ends when their handles closed. */
void agent_worker_close(struct agent_worker *home);
/* After the thread ended. */
void agent_worker_release(struct agent_worker *home);

#endif
