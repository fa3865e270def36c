/* operations.h: what the control API can ask of RAgent (struct control_provider): its state, its connections, commands
 * to connections and agents. Runs on the main loop; asks the workers there and answers there.
 */
#ifndef CSSL_RAGENT_OPERATIONS_H
#define CSSL_RAGENT_OPERATIONS_H

#include "ragent/control.h"
#include "ragent/ragent_worker.h"

/* Embedded; everything outlives it. */
struct operations {
	struct worker *main;
	const struct ragent_shared *shared;
	struct ragent_worker *const *workers;
	unsigned worker_count;
	uint64_t started_ms;
	enum { OPERATIONS_RUNNING, OPERATIONS_STOPPING } state;
};

/* Its ctx is a struct operations. */
extern const struct control_provider operations_provider;

/* operations_agents.c: the part that asks agents. */
void operations_counters(void *ctx, struct control_request *r);
void operations_revoke(void *ctx, const struct control_revocation *what, struct control_request *r);
void operations_rotate(void *ctx, struct control_request *r);
void operations_reload(void *ctx, struct control_request *r);

#endif
