/* requests.h: RAgent's requests to the agent as a whole (REQUEST on stream 0): counters, revocation, rotation,
 * reload, sessions. Work for the cluster runs on the main loop. Each request gets exactly one RESPONSE on its link,
 * unless that link is gone.
 */
#ifndef CSSL_SSLAGENT_REQUESTS_H
#define CSSL_SSLAGENT_REQUESTS_H

#include "proto/link.pb-c.h"
#include "sslagent/process/agent_worker.h"

/* Takes over @request. */
void agent_request(struct agent_worker *home, uint64_t link_number, Cssl__LinkRequest *request);

/* On the worker's thread: answer on the link of the request, if it is still open. */
void agent_respond(struct agent_worker *home, uint64_t link_number, Cssl__LinkResponse *response);

/* From the main loop; that worker may have ended. Like worker_post(), or CSSL_E_STATE. */
int agent_post_home(struct agent_worker *home, void (*fn)(struct worker *w, void *arg), void *arg);

#endif
