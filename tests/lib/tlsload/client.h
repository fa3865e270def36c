/* client.h: one TLS client with one connection at a time, on a non-blocking socket: connects, asks, checks the answer,
 * asks again, and says how it ended. It never connects again silently: each end is counted.
 *
 *     APART -> CONNECTING -> SHAKING -> READY <-> ASKED -> MIDWAY -> READY
 *        ^________|_____________|_________|_________|________|  (lost, or done; OVER where the group wants no more)
 */
#pragma once

#include <openssl/ssl.h>

#include "tests/lib/tlsload/exchange.h"
#include "tests/lib/tlsload/tally.h"
#include "tests/lib/tlsload/wheel.h"

struct group;

enum client_state {
	CLIENT_APART,
	CLIENT_CONNECTING,
	CLIENT_SHAKING,
	CLIENT_READY,
	CLIENT_ASKED,  /* not a byte of the answer came */
	CLIENT_MIDWAY, /* in the answer */
	CLIENT_OVER,
	CLIENT_STATES
};

/* All clients share these. */
struct load {
	int epoll;
	struct wheel wheel;
	SSL_CTX *tls12, *tls13;
	uint64_t now_us, started_us;
	struct { /* the last one */
		uint64_t at_us;
		char agent[AGENT_NAME_MAX];
	} mark;
	struct group *groups;
};

struct client {
	struct group *group;
	unsigned number;
	enum client_state state;
	enum { CLIENT_NEWCOMER, CLIENT_KNOWN } standing; /* known: it has shaken hands once, or given up */
	int fd;
	SSL *ssl;
	SSL_SESSION *session; /* the newest */
	uint32_t interest;    /* of epoll */
	uint16_t port;
	int write_error; /* errno of the write that the kernel told of a reset: it tells once, and reading says end then
			  */
	struct wheel_timer timer;
	uint64_t next_ms;     /* APART, READY: when it goes on; UINT64_MAX: not by itself */
	uint64_t progress_ms; /* the last byte either way */
	uint64_t stalled_ms;  /* it does not read before that */
	uint64_t came_us;     /* it began to connect */
	uint64_t shaking_us;  /* how long it took to connect and to shake hands */
	unsigned asked;       /* requests on this connection */
	uint64_t requests;    /* and on all */
	uint64_t apart_us;    /* since then; 0: never lost */
	uint64_t pause_us;    /* when it began to wait for the first byte of an answer after a mark; 0: it does not */
	uint64_t mark_us;     /* the last mark that it had a pause for */
	enum { PAUSE_OTHER, PAUSE_HIT } pause_kind;
	char agent[AGENT_NAME_MAX]; /* that answered last */
	struct exchange exchange;
};

void client_start(struct client *c, struct group *g, unsigned number);
void client_come(struct client *c); /* APART: connects */
void client_ask(struct client *c);  /* READY: asks now */
/* Ends its connection, close_notify first, and is over. */
void client_leave(struct client *c);
void client_on_event(struct client *c, uint32_t events);
void client_on_timer(struct client *c);
/* A mark was made: is an answer owed? */
void client_on_mark(struct client *c);
void client_destroy(struct client *c);

/* The newest session of a connection (SSL_CTX_sess_set_new_cb). */
int client_on_session(SSL *ssl, SSL_SESSION *session);
