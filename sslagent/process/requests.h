/* requests.h: what RAgent asks of an agent as a whole (REQUEST on stream 0): counters, revocation, rotation, reload,
 * sessions.
 * Work of the cluster runs on the main loop; every request gets exactly one RESPONSE on the link it came by, unless
 * that link is gone.
 */
#ifndef CSSL_SSLAGENT_REQUESTS_H
#define CSSL_SSLAGENT_REQUESTS_H

#include "proto/link.pb-c.h"
#include "sslagent/process/agent_worker.h"

/* @request is owned from now on. */
void agent_request(struct agent_worker *home, uint64_t link_number, Cssl__LinkRequest *request);

/* On the worker's thread: to where the request came from, if that link is still there. */
void agent_respond(struct agent_worker *home, uint64_t link_number, Cssl__LinkResponse *response);

/* From the main loop, which may have ended that worker: as worker_post(), or CSSL_E_STATE. */
int agent_post_home(struct agent_worker *home, void (*fn)(struct worker *w, void *arg), void *arg);

#endif
