/* operations.h: answers the control API for RAgent (struct control_provider): its state, its connections, commands to
 * connections and agents. It runs on the main loop, and asks the workers from there.
 */
#ifndef CSSL_RAGENT_OPERATIONS_H
#define CSSL_RAGENT_OPERATIONS_H

#include "ragent/control/gather.h"
#include "ragent/control/page.h"
#include "ragent/worker/ragent_worker.h"

/* Embedded; everything outlives it. */
struct operations {
	struct worker *main;
	const struct ragent_shared *shared;
	struct ragent_worker *const *workers;
	unsigned worker_count;
	uint64_t started_ms;
	int (*reload)(void *owner, char *error,
		size_t error_cap); /* reloads RAgent's own files: 0, or negative with the reason */
	void *owner;
	struct ragent_counters counters; /* counters of the main thread */
	enum { OPERATIONS_RUNNING, OPERATIONS_STOPPING } state;
};

/* Its ctx is a struct operations. */
extern const struct control_provider operations_provider;

/* operations_ends.c: asks each worker about the connections that match. */
struct selection {
	const struct operations *operations;
	struct control_request *request;
	struct page_query query;
	void (*ask)(struct gather_part *p);
	void (*answer)(struct gather *g);             /* ends with selection_free() */
	int target;                                   /* for operations_moves.c; NO_AGENT: to rest */
	enum { ENDS_ORDERLY, BLOCKS, UNBLOCKS } what; /* for operations_ends.c */
	_Atomic uint64_t ended;
};
void selection_free(struct selection *s);
/* @selection: all but the first three. */
void operations_select(const struct operations *o, struct control_request *r, const struct control_query *q,
	struct selection selection);

/* operations_moves.c */
void operations_move(void *ctx, const struct connection_id *id, const char *agent, struct control_request *r);
void operations_rest(void *ctx, const struct connection_id *id, struct control_request *r);

/* operations_ends.c */
void operations_end(void *ctx, const struct control_query *q, struct control_request *r);
void operations_block(void *ctx, const struct address_net *net, uint32_t for_s, struct control_request *r);
void operations_blocks(void *ctx, struct control_request *r);

/* operations_drain.c */
/* operations.c: makes the status and lets @tell answer @r with it. */
typedef void status_teller(struct control_request *r, const struct control_status *s, void *ctx);
void operations_tell_status(const struct operations *o, struct control_request *r, status_teller *tell, void *ctx);

void operations_describe_agent(const struct operations *o, int agent, struct control_agent *out);
void operations_list_agents(void *ctx, const char *name, struct control_request *r);
void operations_drain(void *ctx, const char *agent, uint32_t timeout_ms, struct control_request *r);
void operations_undrain(void *ctx, const char *agent, struct control_request *r);
void operations_weight(void *ctx, const char *agent, double weight, struct control_request *r);

/* operations_agents.c: the part that asks agents. */
void operations_counters(void *ctx, struct control_request *r);
void operations_metrics(void *ctx, struct control_request *r);
void operations_certificates(void *ctx, struct control_request *r);
void operations_revoke(void *ctx, const struct control_revocation *what, struct control_request *r);
void operations_rotate(void *ctx, struct control_request *r);
void operations_reload(void *ctx, struct control_request *r);

/* operations_log_level.c */
void operations_log_level(void *ctx, const struct control_log_change *change, struct control_request *r);

/* operations_mail.c: asks smtpproxy. */
void operations_mail(void *ctx, struct control_request *r);

/* operations_sessions.c: the part that asks agents for their sessions. */
void operations_sessions(void *ctx, const struct control_session_query *q, struct control_request *r);
void operations_session_count(void *ctx, const struct control_session_query *q, struct control_request *r);
void operations_session(void *ctx, const uint8_t id[static SESSION_ID_LEN], struct control_request *r);

#endif
