/* agent_worker.h: one worker thread of an agent: its connections (connection_home.h), its links and direct listeners
 * (carrier_home.h). Use it only on its own thread, except where a comment says otherwise.
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
	char failing_backends[BACKENDS_TEXT_MAX];                     /* as it was told last */
	_Atomic uint32_t connection_count;                            /* other threads read it */
	_Atomic uint32_t link_count, lingering_count, preamble_count; /* while the agent leaves */
};

/* On its own thread. 0 or negative (logged). In both cases agent_worker_close() has to follow. */
int agent_worker_open(struct agent_worker *home);
/* Close links, listeners, connections and idle backend connections. The loop ends when their handles are closed. */
void agent_worker_close(struct agent_worker *home);
/* Call it after the thread ended. */
void agent_worker_release(struct agent_worker *home);

#endif
