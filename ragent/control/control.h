/* control.h: RAgent's control socket: HTTP/1.1 + JSON over a UNIX socket (mode 0600), served by libmicrohttpd on the
 * main worker's loop, without threads of its own.
 *
 * The HTTP side knows nothing of connections and links: it turns a request into one call of struct control_provider.
 * The provider answers each call exactly once, on the same thread, during the call or later, by the answer function of
 * that call or by control_fail(). If the client is gone, the answer is too late, or the socket is closed, the HTTP side
 * drops the answer. No answer contains key material.
 */
#ifndef CSSL_RAGENT_CONTROL_H
#define CSSL_RAGENT_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "conf/conf.h"
#include "net/address.h"
#include "net/blocked.h"
#include "net/worker.h"
#include "proto/link.pb-c.h"
#include "proto/sess_obj.h"
#include "ragent/connection/connection_description.h"
#include "ragent/dispatch/agents.h"
#include "ragent/dispatch/drain.h"
#include "ragent/keeper/notes.h"

#define CONTROL_LIMIT_DEFAULT 100u
#define CONTROL_LIMIT_MAX     1000u
#define CONTROL_BLOCK_MAX_S   2592000u

struct control;
struct control_request; /* one call that waits for its answer */

/* Selects connections. Unset filters are NULL. Valid during the call only. */
struct control_query {
	const struct connection_id *id;    /* only this one */
	const struct connection_id *after; /* only ids above this one (bytes compared); NULL: from the start */
	unsigned limit;                    /* 1 to CONTROL_LIMIT_MAX */
	const char *agent;                 /* owner */
	const char *listener;
	const struct address_net *client;
};

/* Selects sessions. A field that is NULL or 0 is no filter. Valid during the call only. */
struct control_session_query {
	const uint8_t *after; /* SESSION_ID_LEN; only sessions after this one; NULL: from the start */
	unsigned limit;       /* 1 to CONTROL_LIMIT_MAX; 0 to count */
	const char *server_name;
	struct address_net client;
	uint16_t protocol_version, cipher_suite;
	uint32_t min_age_s, max_age_s;
	const uint8_t *family_id;          /* FAMILY_ID_LEN */
	const uint8_t *client_certificate; /* CONTROL_CERTIFICATE_LEN */
};
#define CONTROL_CERTIFICATE_LEN 32u /* SHA-256 of a client certificate */

struct control_revocation {
	enum {
		CONTROL_REVOKE_SESSION,
		CONTROL_REVOKE_FAMILY,
		CONTROL_REVOKE_SERVER_NAME,
		CONTROL_REVOKE_CLIENT,
		CONTROL_REVOKE_ALL,
		CONTROL_REVOKE_MATCHING /* sessions that pass @matching; its limit and after are ignored */
	} which;
	uint8_t id[SESSION_ID_LEN]; /* SESSION: id_len bytes; FAMILY: FAMILY_ID_LEN */
	size_t id_len;
	const char *server_name;
	struct client_address client;
	struct control_session_query matching;
};

/* For the process @node; NULL: for all. @level NULL: change nothing. */
struct control_log_change {
	const char *node, *level;
};

enum control_turned_away {
	CONTROL_NO_ROOM,   /* it had shown no token and had to make room, or found no room */
	CONTROL_NO_HEADER, /* no PROXY header came in time */
};

/* @ctx is that of control_create(). Arguments are valid during the call only. */
struct control_provider {
	void (*status)(void *ctx, struct control_request *r);
	void (*listeners)(void *ctx, struct control_request *r);
	void (*counters)(void *ctx, struct control_request *r);
	void (*metrics)(void *ctx, struct control_request *r);
	void (*certificates)(void *ctx, struct control_request *r);
	void (*ready)(void *ctx, struct control_request *r);
	void (*blocks)(void *ctx, struct control_request *r);
	/* UINT32_MAX: for good. 0: not any more. */
	void (*block)(void *ctx, const struct address_net *net, uint32_t for_s, struct control_request *r);
	void (*end)(void *ctx, const struct control_query *q, struct control_request *r);
	void (*connections)(void *ctx, const struct control_query *q, struct control_request *r);
	void (*connection)(void *ctx, const struct connection_id *id, struct control_request *r);
	void (*move)(void *ctx, const struct connection_id *id, const char *agent, struct control_request *r);
	void (*rest)(void *ctx, const struct connection_id *id, struct control_request *r);
	void (*agents)(void *ctx, const char *name, struct control_request *r); /* NULL: all of them */
	void (*drain)(
		void *ctx, const char *agent, uint32_t timeout_ms, struct control_request *r); /* 0: as configured */
	void (*undrain)(void *ctx, const char *agent, struct control_request *r);
	void (*weight)(void *ctx, const char *agent, double weight, struct control_request *r);
	void (*sessions)(void *ctx, const struct control_session_query *q, struct control_request *r);
	void (*session_count)(void *ctx, const struct control_session_query *q, struct control_request *r);
	void (*session)(void *ctx, const uint8_t id[static SESSION_ID_LEN], struct control_request *r);
	void (*revoke)(void *ctx, const struct control_revocation *what, struct control_request *r);
	void (*rotate)(void *ctx, struct control_request *r);
	void (*reload)(void *ctx, struct control_request *r);
	void (*log_level)(void *ctx, const struct control_log_change *change, struct control_request *r);
	void (*mail)(void *ctx, struct control_request *r);
	/* A client was refused; for the counters. */
	void (*turned_away)(void *ctx, enum control_turned_away why);
};

/* The answers. Each copies all data before it returns. Strings may be NULL where the value is unknown or does not
 * apply. */

#define CONTROL_VERSION_MAX 32u

struct control_agent {
	const char *name, *state; /* "ready", "suspect", ... the words of the agent table */
	unsigned links_up, links;
	uint64_t connections, handshakes, sessions;
	unsigned busy_permille;
	uint32_t handshake_us;
	double weight;
	unsigned links_suspect;
	struct drain_report drain;
	char version[CONTROL_VERSION_MAX]; /* "": unknown */
	char failing_backends[AGENT_FAILING_MAX];
	enum { CONTROL_CLOCK_UNKNOWN, CONTROL_CLOCK_KNOWN } clock;
	int64_t clock_offset_ms; /* its time of day minus RAgent's */
};

/* For agents(), and for drain(), undrain() and weight(), which answer with one agent. */
void control_answer_agents(struct control_request *r, const struct control_agent *at, size_t count);

struct control_counter {
	const char *name, *help;
	enum { CONTROL_COUNTER, CONTROL_GAUGE } kind;
	uint64_t value;
};

struct control_listener {
	const char *name, *mode, *migration, *handshake, *resumption;
	const char *const *addresses; /* really bound */
	size_t address_count;
	uint64_t connections;
	const char *original_destination;
	const char *service;
	enum service_start start;               /* of @service */
	const char *backend;                    /* NULL: each ALPN protocol has its own */
	const char *state;                      /* "open", "closed" */
	const struct control_counter *counters; /* the sum of all its workers */
	size_t counter_count;
};
/* For listeners(). */
void control_answer_listeners(struct control_request *r, const struct control_listener *at, size_t count);

/* How many client connections went on, began anew or ended at the deaths of earlier processes, since the keeper's
 * start. */
struct control_fates {
	uint64_t went_on, began_anew;     /* began anew: nothing had happened to them before the death */
	uint64_t reset;                   /* all of them, also those of which nothing was saved at that moment */
	uint64_t outdated;                /* of those reset: the kernel had read or written more than was saved */
	uint64_t not_restored;            /* of those reset: the next process could not go on with them */
	uint64_t given_up;                /* of those reset: restoring them had ended a process */
	uint64_t starts_without_restore;  /* processes that restored nothing, because two died while they restored */
	uint64_t pause_us, last_pause_us; /* from a death until the next process served: sum, last */
};

struct control_status {
	const char *name, *version, *state;
	uint64_t uptime_s;
	unsigned workers;
	uint64_t connections;
	const struct control_listener *listeners;
	size_t listener_count;
	const struct control_agent *agents;
	size_t agent_count;
	uint64_t resident_bytes;
	uint64_t deaths[DEATH_CAUSE_COUNT]; /* of earlier processes, since the keeper's start */
	struct control_fates fates;
};
void control_answer_status(struct control_request *r, const struct control_status *s);

/* Counters of one process. @agent NULL: RAgent's own. @error: the reason when there are none ("no answer in 2 s").
 * @seen: RAgent's counters of that agent. */
struct control_counters {
	const char *agent, *error;
	const struct control_counter *at;
	size_t count;
	const struct control_counter *seen;
	size_t seen_count;
	Cssl__LinkResponse__Counters__Certificate *const *certificates; /* that the agent has loaded */
	size_t certificate_count;
};
/* For certificates(): of agents only. */
void control_answer_certificates(struct control_request *r, const struct control_counters *sets, size_t count);
void control_answer_counters(struct control_request *r, const struct control_counters *sets, size_t count);
/* The same for Prometheus, with the state. RAgent's own set is the first. */
void control_answer_metrics(
	struct control_request *r, const struct control_status *s, const struct control_counters *sets, size_t count);

/* For connections(): sorted by id. @more: whether more follow after the last. For connection(): exactly one. */
enum control_more { CONTROL_LAST_PAGE, CONTROL_MORE };
void control_answer_connections(
	struct control_request *r, const struct connection_description *at, size_t count, enum control_more more);

/* The move ended and @to is owner. @pause_us: from the MOVE frame until records can flow again. */
struct control_moved {
	const char *from, *to;
	uint32_t epoch;
	uint64_t pause_us;
};
void control_answer_move(struct control_request *r, const struct control_moved *m);

/* For ready(): "ready", the number of agents that are. For end(): "ended", the number of connections. */
void control_answer_number(struct control_request *r, const char *name, uint64_t number);
/* For block(): the connections that end; the agents with listeners of their own that have not confirmed. */
void control_answer_block(
	struct control_request *r, uint64_t ended, const char *const *unconfirmed, size_t unconfirmed_count);
/* For blocks(): the whole list. */
void control_answer_blocks(struct control_request *r, struct blocked *blocked, uint64_t now_ms);

/* For rest(): no agent owns the connection now, so only @from and @epoch count. */
void control_answer_rest(struct control_request *r, const struct control_moved *m);

struct control_session {
	uint8_t id[SESSION_ID_LEN], family_id[FAMILY_ID_LEN];
	struct sockaddr_storage client; /* port 0; ss_family 0: unknown */
	const char *server_name, *alpn, *listener, *origin;
	uint16_t protocol_version, cipher_suite;
	uint32_t age_s, family_age_s, expires_s, hits;
	uint8_t client_certificate[CONTROL_CERTIFICATE_LEN]; /* zeros: none was shown */
};
/* For sessions(): in the order of all pages. @more: whether more follow after the last. */
void control_answer_sessions(
	struct control_request *r, const struct control_session *at, size_t count, enum control_more more);

/* One agent's answer about a count, or about one session. */
struct control_holder {
	const char *agent, *error; /* @error: the reason when it gave no answer */
	uint64_t sessions;         /* in session(): 1 if it has the session, else 0 */
	uint32_t hits, expires_s;  /* of session() */
};
/* @sessions: the number in the cluster. */
void control_answer_session_count(
	struct control_request *r, uint64_t sessions, const struct control_holder *at, size_t count);
void control_answer_session(
	struct control_request *r, const struct control_session *s, const struct control_holder *at, size_t count);

struct control_revoked {
	uint64_t sessions;
	const char *const *confirmed, *const *unconfirmed; /* agents */
	size_t confirmed_count, unconfirmed_count;
};
void control_answer_revoke(struct control_request *r, const struct control_revoked *v);

/* For rotate() and reload(): the result of each process. */
struct control_node_result {
	const char *node, *error; /* @error NULL: done */
};
void control_answer_nodes(struct control_request *r, const struct control_node_result *at, size_t count);

struct control_log_level {
	const char *node, *level, *configured, *error; /* @error: the reason when level and configured are unknown */
};
void control_answer_log_levels(struct control_request *r, const struct control_log_level *at, size_t count);

/* For mail(): smtpproxy's status, a JSON object of @len bytes at @text. @text NULL: there is no smtpproxy, or @error
 * tells why it gave none. */
void control_answer_mail(struct control_request *r, const char *error, const char *text, size_t len);

/* For any call: it failed. */
enum control_failure {
	CONTROL_NOT_FOUND,   /* 404: no such connection or agent */
	CONTROL_CONFLICT,    /* 409: not possible now (the move was refused, ...) */
	CONTROL_UNAVAILABLE, /* 503: no agent is up, or none answered */
	CONTROL_INTERNAL,    /* 500: out of memory */
};
void control_fail(struct control_request *r, enum control_failure kind, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));

/* Limits of time and number. */
struct control_limits {
	uint32_t client_ms;  /* to receive a request, to send its answer, and for an idle connection */
	uint32_t answer_ms;  /* for the provider; after it the client gets 504 */
	uint32_t arrival_ms; /* to receive a PROXY header */
	/* Numbers at a time. At the limit a client without a token makes room for a new one: the oldest client of the
	 * source that has most. If all have shown a token, the new client is closed. */
	unsigned local;     /* of the UNIX socket */
	unsigned remote;    /* of the address */
	unsigned of_source; /* of them, for one client address */
	unsigned arrivals;  /* that wait for their PROXY header */
};

/* Bind @path and serve. It replaces a stale socket file. A socket that answers, or a file that is no socket, stays and
 * is an error. @provider outlives the control. @limits NULL: the defaults. NULL: @error has the reason. */
struct control *control_create(struct worker *w, const char *path, const struct control_provider *provider, void *ctx,
	const struct control_limits *limits, char *error, size_t error_cap);

/* Create it from a socket that another process passed and that listens at @path already (owned, closed on failure). */
struct control *control_create_fd(struct worker *w, int fd, const char *path, const struct control_provider *provider,
	void *ctx, char *error, size_t error_cap);

/* Serve at @address too, for holders of a token of that file. 0, or negative with the reason in @error. */
struct control_front {
	const struct sockaddr *address;
	enum conf_switch proxy_protocol; /* connections begin with a PROXY header */
	const char *tokens;
	int fd; /* > 0: it listens there already; owned */
};
int control_serve_address(struct control *c, const struct control_front *f, char *error, size_t error_cap);
/* Read the tokens again. On failure the old ones stay. */
int control_reload_tokens(struct control *c, const char *path, char *error, size_t error_cap);

/* The sockets, to pass them to another process; the control still owns them. -1: there is none. */
int control_fd(const struct control *c);
int control_address_fd(const struct control *c);
/* Call it while another process serves on the same sockets: accept no client, and keep the socket file. */
void control_pause(struct control *c);
void control_resume(struct control *c);

/* Stop serving, remove the socket file; the provider may still answer open requests; these answers are dropped. Memory
 * is freed when the handles have closed. May be NULL. */
void control_destroy(struct control *c);

/* Every route with its method and meaning, for the manual. */
void control_help_print(FILE *out);

#endif
