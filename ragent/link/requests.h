/* requests.h: questions of RAgent to an agent process (REQUEST) and their answers (RESPONSE), over the links of one
 * worker. Used only from that worker's thread.
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "proto/link.pb-c.h"

struct link;
struct worker;

#define REQUEST_TIMEOUT_MS 5000u

struct request;

/* Embedded; all zero except the worker: no request is under way. */
struct requests {
	struct worker *worker;
	LIST_HEAD(, request) pending;
	uint64_t next_token;
};

/* @response: owned by the callee from now on (cssl__link_response__free_unpacked), NULL when there is none; then @error
 * gives the reason. */
typedef void request_done(void *ctx, int agent, Cssl__LinkResponse *response, const char *error);

/* Send @message (its token is filled in) on @l, which is open. @done comes exactly once, possibly during the call. */
void requests_send(struct requests *r, struct link *l, Cssl__LinkRequest *message, request_done *done, void *ctx);

/* A RESPONSE came (owned from now on); answers with unknown tokens came too late and are dropped. */
void requests_answered(struct requests *r, struct link *l, Cssl__LinkResponse *response);
/* All requests fail with @error. */
void requests_end(struct requests *r, const char *error);
/* The link is lost: its requests fail. */
void requests_link_lost(struct requests *r, const struct link *l);
