/* requests_sessions.h: what RAgent asks about the session store: how many there are, a page of them, one of them. */
#ifndef CSSL_SSLAGENT_REQUESTS_SESSIONS_H
#define CSSL_SSLAGENT_REQUESTS_SESSIONS_H

#include "proto/link.pb-c.h"
#include "sslagent/process/agent_worker.h"

/* On the worker's thread. @request (SESSION_COUNT or SESSIONS) is owned from now on. The store is walked on the main
 * loop, in steps between which that does its other work. */
void agent_request_sessions(struct agent_worker *home, uint64_t link_number, Cssl__LinkRequest *request);

#endif
