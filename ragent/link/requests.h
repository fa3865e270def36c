/* requests.h: what RAgent asks an agent process (REQUEST), and its answer (RESPONSE), over the links of one worker.
 * Used only from that worker's thread.
 */
#ifndef CSSL_RAGENT_REQUESTS_H
#define CSSL_RAGENT_REQUESTS_H

#include "ragent/link/link.h"

#define REQUEST_TIMEOUT_MS 5000u

struct request;

/* Embedded; zero, but for the worker, has none under way. */
struct requests {
	struct worker *worker;
	struct request *pending;
	uint64_t next_token;
};

/* @response: owned by the callee from now on (cssl__link_response__free_unpacked), NULL when @error says why there is
 * none. */
typedef void request_done(void *ctx, int agent, Cssl__LinkResponse *response, const char *error);

/* Send @message (its token is filled in) on @l, which is open. @done comes exactly once, possibly from within. */
void requests_send(struct requests *r, struct link *l, Cssl__LinkRequest *message, request_done *done, void *ctx);

/* A RESPONSE came (owned from now on); unknown tokens (too late) are dropped. */
void requests_answered(struct requests *r, struct link *l, Cssl__LinkResponse *response);
/* All of them fail. */
void requests_end(struct requests *r, const char *error);
/* The link is lost: its requests fail. */
void requests_link_lost(struct requests *r, const struct link *l);

#endif
