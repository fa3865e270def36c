/* client.h: a pseudo client: at most one connection at a time, one request after the other on it. It counts and times
 * its steps; its host decides what it does next.
 *
 *     AWAY -> CONNECTING -> SHAKING -> ASKING <-> READY        (no requests: SHAKING -> TICKET? -> READY)
 *     READY -> RESTING;  all of these -> CLOSING -> AWAY;  AWAY -> RETIRED
 */
#pragma once

#include <stdint.h>
#include <sys/queue.h>

#include "bench/load/client_tls.h"
#include "bench/load/load_options.h"
#include "bench/load/load_result.h"
#include "bench/load/reply.h"
#include "net/loop/wheel.h"
#include "net/stream/stream.h"

#define CLIENT_SCRATCH_LEN 16384u

struct client;

struct client_host {
	struct worker *worker;
	const struct load_options *options;
	struct client_tls_shared tls;
	struct load_result *result;
	uint8_t scratch[CLIENT_SCRATCH_LEN]; /* plaintext of the current record */
	/* The client has nothing to do: it is AWAY, or READY for its next request. */
	void (*on_free)(struct client_host *host, struct client *c);
	void (*on_pause_end)(struct client_host *host, struct client *c);
};

enum client_state {
	CLIENT_AWAY,       /* no connection */
	CLIENT_CONNECTING, /* TCP */
	CLIENT_SHAKING,    /* TLS */
	CLIENT_TICKET,     /* handshake done; waits for the session that TLS 1.3 sends later */
	CLIENT_ASKING,     /* a request is out */
	CLIENT_READY,      /* connected, no request out */
	CLIENT_RESTING,    /* connected, all requests made (--hold) */
	CLIENT_CLOSING,
	CLIENT_RETIRED, /* has made its last connection */
};

struct client {
	struct stream stream;
	struct client_host *host;
	struct deadline deadline; /* of the state in which it waits */
	struct client_tls tls;
	struct reply reply;
	enum client_state state;
	enum { CLIENT_GOES_ON, CLIENT_PAUSES } after; /* the connection */
	uint64_t number;                              /* among the clients of all processes */
	uint64_t connections;                         /* begun */
	uint64_t requests;                            /* begun on this connection */
	uint64_t asked;                               /* requests on all connections */
	uint64_t quota;                               /* set by the host: connections that it may still begin */
	uint64_t intended_ns; /* when the request should have begun, or, for the first of a connection, its connect */
	uint64_t step_ns;     /* when this step began */
	uint8_t agent_len;
	char agent[REPLY_AGENT_MAX];                    /* the agent of the last answer on this connection */
	enum { CLIENT_UNLISTED, CLIENT_LISTED } listed; /* set by the host, as is the next */
	TAILQ_ENTRY(client) free;
};

void client_init(struct client *c, struct client_host *host, uint64_t number);

/* AWAY: connect, make the handshake and ask. READY: ask. on_free follows when that is done. */
void client_go(struct client *c, uint64_t intended_ns);

/* AWAY or READY: on_pause_end after this time. After a failure to connect it pauses by itself. */
void client_pause(struct client *c, uint64_t ms);

/* READY: end the connection in order. The loop then calls on_free. */
void client_close(struct client *c);
/* End at once, in any state. If there was a connection, the loop calls on_free. */
void client_abort(struct client *c);
void client_retire(struct client *c);

/* After the worker ended. */
void client_wipe(struct client *c);
