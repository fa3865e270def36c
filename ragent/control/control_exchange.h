/* control_exchange.h: one HTTP request on the control socket and its answer, between libmicrohttpd and the routes.
 *
 *     RECEIVING --whole--> ASKING --no answer yet--> WAITING
 *         |                  |                          |
 *         | refused          | answered                 | answered, too late, or the socket closes
 *         +------------------+----> ANSWERED <----------+
 *                                      |
 *                                      +--> SENDING
 *
 * libmicrohttpd owns an exchange: it ends when libmicrohttpd has sent the answer or lost the client. The provider holds
 * a struct control_request, which points to its exchange while that waits for an answer. Either may end first.
 */
#ifndef CSSL_RAGENT_CONTROL_EXCHANGE_H
#define CSSL_RAGENT_CONTROL_EXCHANGE_H

#include <jansson.h>
#include <microhttpd.h>

#include "net/timer.h"
#include "net/newcomers.h"
#include "ragent/control/control.h"
#include "ragent/control/control_tokens.h"

#define CONTROL_BODY_MAX (64u * 1024u)

struct route;
struct exchange;

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
void control_client_rest(struct control_client *client);
/* The client has proven its permission. */
void control_client_proven(struct control_client *client);

/* libmicrohttpd's calls: they come for each piece of a request, and for its end. @control is the closure. */
enum MHD_Result exchange_on_request(void *control, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len, void **exchange);
void exchange_on_completed(
	void *control, struct MHD_Connection *connection, void **exchange, enum MHD_RequestTerminationCode why);

/* The socket closes: answer all waiting clients with an error. */
void exchanges_end(struct control *c);

/* For routes. */
const char *exchange_method(const struct exchange *e);
const char *exchange_path(const struct exchange *e);
struct MHD_Connection *exchange_connection(const struct exchange *e);
struct control_client *exchange_client(const struct exchange *e);
const struct control_provider *exchange_provider(const struct exchange *e, void **ctx);

/* The body as a JSON object, which the caller owns; an empty body is an empty object. NULL: the client got the error.
 */
json_t *exchange_body(struct exchange *e);

/* The request that the provider has to answer. NULL: out of memory; the client got the error. */
enum request_form {
	REQUEST_PLAIN,
	REQUEST_OF_ONE,    /* the answer is a list; the client gets its only element */
	REQUEST_TO_BEGIN,  /* the same, for a beginning operation: 202 */
	REQUEST_TO_CHANGE, /* a change at several processes: an error unless all succeeded */
};
struct control_request *exchange_ask(struct exchange *e, enum request_form form);
enum request_form request_form(const struct control_request *r);

/* One more header of the answer; copied, and cut at 511 bytes. */
void exchange_header(struct exchange *e, const char *name, const char *value);

/* Send the one answer; takes @body over. NULL: there was no memory for it. */
void exchange_answer(struct exchange *e, unsigned status, json_t *body);
/* The same with a text that is no JSON. Takes over @text, which is allocated; @type is a literal. */
void exchange_answer_text(struct exchange *e, const char *type, char *text);
void exchange_fail(struct exchange *e, unsigned status, const char *reason, ...) __attribute__((format(printf, 3, 4)));
/* 405 */
void exchange_refuse_method(struct exchange *e, const char *allow);

/* A string as JSON, with any bytes (a client may offer any server name): bytes that are no UTF-8 become '?'. NULL is
 * null. */
json_t *text_json(const char *text);

/* For the provider: like exchange_answer(); dropped if the exchange has ended. Frees @r. */
void request_answer(struct control_request *r, unsigned status, json_t *body);
void request_answer_text(struct control_request *r, const char *type, char *text);

#endif
