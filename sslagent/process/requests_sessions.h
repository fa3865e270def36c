/* requests_sessions.h: RAgent's questions about the session store: how many sessions there are, a page of them, or
 * one of them. */
#ifndef CSSL_SSLAGENT_REQUESTS_SESSIONS_H
#define CSSL_SSLAGENT_REQUESTS_SESSIONS_H

#include "proto/link.pb-c.h"
#include "sslagent/process/agent_worker.h"

/* On the worker's thread. Takes over @request (SESSION_COUNT or SESSIONS). The main loop walks the store in steps,
 * and does its other work between them. */
void agent_request_sessions(struct agent_worker *home, uint64_t link_number, Cssl__LinkRequest *request);

#endif
