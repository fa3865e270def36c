/* operations.h: what the control API can do: RAgent's state, its connections, commands to connections and agents,
 * questions to agents. Each operation answers its request exactly once, during the call or later (request_answer(),
 * request_fail()). No answer contains key material. They run on the main loop, and ask the workers from there.
 */
#ifndef CSSL_RAGENT_OPERATIONS_H
#define CSSL_RAGENT_OPERATIONS_H

#include "net/address.h"
#include "ragent/control/control_exchange.h"
#include "ragent/worker/ragent_worker.h"

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

/* --- agents_asked.c: asks every worker on its own thread, and continues with all answers on the main loop --- */

struct gather;

/* The part of one worker. */
struct gather_part {
	struct gather *gather;
	struct ragent_worker *rw;
	void *result; /* owned by the asker; NULL: the worker could not be asked */
};

struct gather {
	struct worker *main;
	void (*ask)(struct gather_part *p); /* on the worker's thread: calls gather_answer() once, now or later */
	void (*done)(struct gather *g);     /* on the main loop; afterwards it is freed */
	void *ctx;
	unsigned count, waiting;
	struct gather_part parts[];
};

/* On the main loop. NULL: out of memory, @done will not come. */
struct gather *gather_start(struct worker *main, struct ragent_worker *const *workers, unsigned count,
	void (*ask)(struct gather_part *p), void (*done)(struct gather *g), void *ctx);

/* On the worker's thread. */
void gather_answer(struct gather_part *p);

/* --- operations --- */

typedef void operation(struct operations *o, const struct control_input *in, struct control_request *r);

/* operations.c */
operation operations_status, operations_listeners, operations_ready;
/* The sum of all workers. */
uint64_t operations_count_listener(const struct operations *o, size_t listener, size_t row);

/* operations_connections.c */
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

/* A session in the pages of one or more agents. */
struct merged_session {
	const Cssl__Session *session; /* from one of these pages, which owns it */
	uint32_t hits;                /* the sum of all */
	uint32_t expires_s;           /* the longest */
};

/* Merges the pages of several agents into one. Each page is in the order of ids and tells whether its agent has more.
 * Several agents may hold the same session. The first @limit sessions, each once, in the order of ids, as far as the
 * pages of all agents go. @out has room for
 * @limit. *@more: whether more follow. Returns how many. Sessions without an id are left out. */
enum merged_more { MERGED_ALL, MERGED_GOES_ON };
size_t session_merge(const Cssl__LinkResponse__Sessions *const *pages, size_t page_count, size_t limit,
	struct merged_session *out, enum merged_more *more);

#endif
