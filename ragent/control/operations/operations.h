/* operations.h: what the control API can do: RAgent's state, its connections, commands to connections and agents,
 * questions to agents. It is a part of its own because an operation does not know how it was asked. The table of routes
 * (routes/control_routes.c) calls them. Each operation answers its request exactly once, during the call or later
 * (request_answer(), request_fail()). No answer contains key material. They run on the main loop, and ask the workers
 * from there.
 */
#pragma once

#include <jansson.h>

#include "net/socket/address.h"
#include "ragent/worker/ragent_worker.h"

struct control_request;

#define CONTROL_LIMIT_DEFAULT   100u
#define CONTROL_LIMIT_MAX       1000u
#define CONTROL_BLOCK_MAX_S     2592000u
#define CONTROL_CERTIFICATE_LEN 32u /* SHA-256 of a client certificate */

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

/* Selects connections. */
struct control_query {
	enum { QUERY_ALL, QUERY_ONE, QUERY_BEHIND } ids;
	struct connection_id id; /* QUERY_ONE: only this one; QUERY_BEHIND: only ids above this one (bytes compared) */
	unsigned limit;          /* 1 to CONTROL_LIMIT_MAX */
	const char *agent, *listener; /* NULL: any owner, any listener */
	struct address_net client;    /* len 0: any */
};

/* What a request says, as far as its route takes it (control_input.h). Strings are the request's own, so they are valid
 * during the call only. */
struct control_input {
	struct control_query query;
	const char *agent;
	uint32_t timeout_ms; /* of a drain; 0: as configured */
	double weight;
	const char *node, *level;                       /* NULL: all processes; change nothing */
	struct address_net net;                         /* to block, or of @filter */
	uint32_t for_s;                                 /* UINT32_MAX: for good; 0: not any more */
	Cssl__SessionFilter filter;                     /* of sessions; its pointers point into this struct */
	unsigned limit;                                 /* of sessions: 1 to CONTROL_LIMIT_MAX */
	enum { SESSION_NONE, SESSION_GIVEN } session;   /* one session, or the sessions after this one */
	Cssl__LinkRequest__Revoke__WhichCase revoke_by; /* for MATCHING, those that pass @filter */
	uint8_t session_id[SESSION_ID_LEN], family_id[FAMILY_ID_LEN], client_certificate[CONTROL_CERTIFICATE_LEN];
	json_t *body; /* owned; NULL: none was read */
};

/* --- operations --- */

typedef void operation(struct operations *o, const struct control_input *in, struct control_request *r);

/* operations.c */
operation operations_status, operations_listeners, operations_ready;
/* The sum of all workers. */
uint64_t operations_count_listener(const struct operations *o, size_t listener, size_t row);

/* operations_connections.c: asks the workers. */
operation operations_connections, operations_move, operations_rest, operations_end, operations_block, operations_blocks;

/* operations_drain.c */
operation operations_agents, operations_agent, operations_drain, operations_undrain, operations_weight;

/* operations_agents.c: asks agents. */
operation operations_counters, operations_metrics, operations_certificates, operations_revoke, operations_rotate,
	operations_reload, operations_log_level;

/* operations_mail.c: asks smtpproxy. */
operation operations_mail;

/* operations_sessions.c: asks agents for their sessions. */
operation operations_sessions, operations_session_count, operations_session;
