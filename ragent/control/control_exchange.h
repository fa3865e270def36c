/* control_exchange.h: one HTTP request on the control socket and its answer, between libmicrohttpd and the routes.
 *
 *     RECEIVING --whole--> ASKING --no answer yet--> WAITING
 *         |                  |                          |
 *         | refused          | answered                 | answered, too late, or the socket closes
 *         +------------------+----> ANSWERED <----------+
 *                                      |
 *                                      +--> SENDING
 *
 * An exchange belongs to libmicrohttpd (it ends when that has sent the answer or lost the client); what the provider
 * holds is a struct control_request, which knows its exchange as long as that wants an answer. Either may end first.
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

/* A connection of a client. While it has something to say or to read, it has limited time for that. */
struct control_client {
	struct control *control;
	struct deadline due;
	struct newcomers *among;
	struct newcomer place; /* PROVEN: it uses the UNIX socket, or has shown a token or a certificate */
	int fd;
	struct sockaddr_storage address;      /* AF_UNIX: by the socket, others by control_address */
	char common_name[CONTROL_CN_MAX + 1]; /* of its verified certificate; "": none */
};
void control_client_hurry(struct control_client *client);
void control_client_rest(struct control_client *client);
/* It may do what it asks for. */
void control_client_proven(struct control_client *client);

/* libmicrohttpd's calls: the request again and again as it comes, and its end. @control is the closure. */
enum MHD_Result exchange_on_request(void *control, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len, void **exchange);
void exchange_on_completed(
	void *control, struct MHD_Connection *connection, void **exchange, enum MHD_RequestTerminationCode why);

/* The socket closes: whoever waits is told so. */
void exchanges_end(struct control *c);

/* For routes. */
const char *exchange_method(const struct exchange *e);
const char *exchange_path(const struct exchange *e);
struct MHD_Connection *exchange_connection(const struct exchange *e);
struct control_client *exchange_client(const struct exchange *e);
const struct control_provider *exchange_provider(const struct exchange *e, void **ctx);

/* The body as a JSON object, which the caller owns; an empty body is an empty object. NULL: the client was told what is
 * wrong. */
json_t *exchange_body(struct exchange *e);

/* What the provider is to answer to. NULL: out of memory, the client was told. */
enum request_form {
	REQUEST_PLAIN,
	REQUEST_OF_ONE,    /* a list will be answered, and its only element is wanted */
	REQUEST_TO_BEGIN,  /* the same, of something that then goes on: 202 */
	REQUEST_TO_CHANGE, /* something, of several: an error unless all did */
};
struct control_request *exchange_ask(struct exchange *e, enum request_form form);
enum request_form request_form(const struct control_request *r);

/* One more header of the answer; copied, and cut at 511 bytes. */
void exchange_header(struct exchange *e, const char *name, const char *value);

/* The one answer; @body is taken over, NULL means that there was no memory for it. */
void exchange_answer(struct exchange *e, unsigned status, json_t *body);
/* The same with something else than JSON; @text, allocated, is taken over, @type is a literal. */
void exchange_answer_text(struct exchange *e, const char *type, char *text);
void exchange_fail(struct exchange *e, unsigned status, const char *reason, ...) __attribute__((format(printf, 3, 4)));
/* 405 */
void exchange_refuse_method(struct exchange *e, const char *allow);

/* A string as JSON, whatever bytes it has (a client may offer any server name): what is no UTF-8 becomes '?'. NULL is
 * null. */
json_t *text_json(const char *text);

/* From the provider's side: as exchange_answer(), or into nothing. @r is used up. */
void request_answer(struct control_request *r, unsigned status, json_t *body);
void request_answer_text(struct control_request *r, const char *type, char *text);

#endif
