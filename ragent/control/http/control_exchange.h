/* control_exchange.h: one HTTP request on the control socket and its answer. It is a part of its own because it knows
 * neither routes nor tokens: two functions of its owner decide whether a client may ask, and find who answers.
 *
 *     RECEIVING --whole--> ASKING --no answer yet--> WAITING
 *         |                  |                          |
 *         | refused          | answered                 | answered, too late, or the socket closes
 *         +------------------+----> ANSWERED <----------+
 *                                      |
 *                                      +--> SENDING
 *
 * libmicrohttpd owns an exchange: it ends when libmicrohttpd has sent the answer or lost the client. An operation holds
 * a struct control_request, which points to its exchange while that waits for an answer. Either may end first.
 */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "net/limits/newcomers.h"
#include "net/loop/wheel.h"
#include "net/loop/worker.h"
#include "ragent/control/access/control_tokens.h"

#define CONTROL_BODY_MAX         (64u * 1024u)
#define CONTROL_HEADER_VALUE_MAX 512u

/* Limits of time and number. */
struct control_limits {
	uint32_t client_ms;  /* to receive a request, to send its answer, and for an idle connection */
	uint32_t answer_ms;  /* for the operation; after it the client gets 504 */
	uint32_t arrival_ms; /* to receive a PROXY header */
	/* Numbers at a time; control_clients.h says who makes room. */
	unsigned local;     /* of the UNIX socket */
	unsigned remote;    /* of the address */
	unsigned of_source; /* of them, for one client address */
	unsigned arrivals;  /* that wait for their PROXY header */
};

struct control_request; /* one call of an operation that waits for its answer */
struct exchange;

/* What all exchanges of a socket have. Embedded in control_clients.h, which sets it. */
struct exchanges {
	struct worker *worker;
	struct turn_end soon; /* an answer came, and libmicrohttpd does not notice it by itself: its fn runs it */
	struct control_limits limits;
	enum { EXCHANGES_OPEN, EXCHANGES_ENDING } state;
	LIST_HEAD(, exchange) waiting; /* for an operation */
	/* The headers came. False: the client may not ask that, and @e is answered. */
	bool (*may_ask)(void *owner, struct exchange *e);
	/* The request is whole. When it returns, @e is answered, or an operation holds its request. */
	void (*follow)(void *owner, struct exchange *e);
	void *owner;
};

/* A connection of a client (control_clients.c makes it). It has limited time for each request and each answer. */
struct control_client {
	struct exchanges *exchanges;
	struct deadline due;
	struct newcomers *among;
	struct newcomer place; /* PROVEN: it uses the UNIX socket, or has shown a token or a certificate */
	int fd;
	struct sockaddr_storage address;      /* AF_UNIX: a client of the UNIX socket; else of control_address */
	char common_name[CONTROL_CN_MAX + 1]; /* of its verified certificate; "": none */
};

enum exchange_state {
	EXCHANGE_RECEIVING, /* the body comes in */
	EXCHANGE_ASKING,    /* during the call of the operation */
	EXCHANGE_WAITING,   /* suspended; the operation will answer */
	EXCHANGE_ANSWERED,  /* the answer is here */
	EXCHANGE_SENDING,   /* libmicrohttpd has the answer */
	EXCHANGE_STATE_COUNT,
};

struct exchange {
	struct control_client *client;
	struct MHD_Connection *connection;
	const char *method, *path; /* libmicrohttpd's, until the exchange ends */
	enum exchange_state state;
	enum { BODY_IN_BOUNDS, BODY_TOO_LONG } body_size;
	char *body;
	size_t body_len;
	struct control_request *request; /* the operation's, while it owes an answer */
	struct deadline answer_due;
	LIST_ENTRY(exchange) waiting; /* WAITING: in the list of @exchanges */
	unsigned status;
	char *answer;            /* NULL: out of memory */
	const char *type;        /* of the answer */
	const char *header_name; /* one more header of the answer; NULL: none */
	char header_value[CONTROL_HEADER_VALUE_MAX];
};

/* libmicrohttpd's calls: they come for each piece of a request, and for its end. */
enum MHD_Result exchange_on_request(void *closure, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len, void **exchange);
void exchange_on_completed(
	void *closure, struct MHD_Connection *connection, void **exchange, enum MHD_RequestTerminationCode why);

/* The socket closes: answer all waiting clients with an error, and whoever asks from now on. */
void exchanges_end(struct exchanges *x);

/* --- for routes --- */

/* The body as a JSON object, which the caller owns; an empty body is an empty object. NULL: the client got the error.
 */
json_t *exchange_body(struct exchange *e);

/* The request that an operation has to answer. NULL: out of memory; the client got the error. */
struct control_request *exchange_ask(struct exchange *e);

/* One more header of the answer; copied, and cut at 511 bytes. */
void exchange_header(struct exchange *e, const char *name, const char *value);

/* Send the one answer; takes @body over. NULL: there was no memory for it. */
void exchange_answer(struct exchange *e, unsigned status, json_t *body);
/* The same with a text that is no JSON. Takes over @text, which is allocated; @type is a literal. */
void exchange_answer_text(struct exchange *e, const char *type, char *text);
/* Returns false, as those who read a request do when they have told the client that it is wrong. */
bool exchange_fail(struct exchange *e, unsigned status, const char *reason, ...) __attribute__((format(printf, 3, 4)));

/* --- for operations: like exchange_answer(); dropped if the exchange has ended. They free @r. --- */

void request_answer(struct control_request *r, unsigned status, json_t *body);
void request_answer_text(struct control_request *r, const char *type, char *text);
void request_fail(struct control_request *r, unsigned status, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));
