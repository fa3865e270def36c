/* control_exchange.h: one HTTP request on the control socket and its answer, between libmicrohttpd and the routes.
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
#ifndef CSSL_RAGENT_CONTROL_EXCHANGE_H
#define CSSL_RAGENT_CONTROL_EXCHANGE_H

#include <jansson.h>
#include <microhttpd.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "net/timer.h"
#include "net/newcomers.h"
#include "ragent/control/control_tokens.h"

#define CONTROL_BODY_MAX         (64u * 1024u)
#define CONTROL_HEADER_VALUE_MAX 512u

struct control;
struct control_request; /* one call of an operation that waits for its answer */

/* A connection of a client. It has limited time for each request and each answer. */
struct control_client {
	struct control *control;
	struct deadline due;
	struct newcomers *among;
	struct newcomer place; /* PROVEN: it uses the UNIX socket, or has shown a token or a certificate */
	int fd;
	struct sockaddr_storage address;      /* AF_UNIX: a client of the UNIX socket; else of control_address */
	char common_name[CONTROL_CN_MAX + 1]; /* of its verified certificate; "": none */
};
void control_client_hurry(struct control_client *client);

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
	LIST_ENTRY(exchange) waiting; /* WAITING: in the control's list */
	unsigned status;
	char *answer;            /* NULL: out of memory */
	const char *type;        /* of the answer */
	const char *header_name; /* one more header of the answer; NULL: none */
	char header_value[CONTROL_HEADER_VALUE_MAX];
};

/* libmicrohttpd's calls: they come for each piece of a request, and for its end. @control is the closure. */
enum MHD_Result exchange_on_request(void *control, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len, void **exchange);
void exchange_on_completed(
	void *control, struct MHD_Connection *connection, void **exchange, enum MHD_RequestTerminationCode why);

/* The socket closes: answer all waiting clients with an error. */
void exchanges_end(struct control *c);

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
/* Returns 0, as those who read a request do when they have told the client that it is wrong. */
int exchange_fail(struct exchange *e, unsigned status, const char *reason, ...) __attribute__((format(printf, 3, 4)));

/* For operations: like exchange_answer(); dropped if the exchange has ended. They free @r. */
void request_answer(struct control_request *r, unsigned status, json_t *body);
void request_answer_text(struct control_request *r, const char *type, char *text);
void request_fail(struct control_request *r, unsigned status, const char *reason, ...)
	__attribute__((format(printf, 3, 4)));

#endif
