/* control_exchange.c: libmicrohttpd calls on_request once with the headers, then with pieces of the body, then with
 * none, then, after a suspension, once more. Each call ends in one step of the exchange's state. */
#include "ragent/control/http/control_exchange.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "net/memory/container_of.h"
#include "ragent/control/http/control_json.h"

#define REASON_MAX 512u
#define JSON_TYPE  "application/json"

#define TO(state) (1u << EXCHANGE_##state)
static const unsigned may_become[EXCHANGE_STATE_COUNT] = {
	[EXCHANGE_RECEIVING] = TO(ASKING) | TO(ANSWERED),
	[EXCHANGE_ASKING] = TO(WAITING) | TO(ANSWERED),
	[EXCHANGE_WAITING] = TO(ANSWERED),
	[EXCHANGE_ANSWERED] = TO(SENDING),
};

struct control_request {
	struct exchange *exchange; /* NULL: the answer will be dropped */
};

/* It has that long for its next request, or to take its answer. */
static void exchange_hurry(struct control_client *client)
{
	deadline_set(client->exchanges->worker, &client->due, client->exchanges->limits.client_ms);
}

/* States */

static void exchange_move(struct exchange *e, enum exchange_state to)
{
	assert(may_become[e->state] & 1u << to);
	e->state = to;
}

static void exchange_let_go(struct exchange *e)
{
	deadline_cancel(&e->answer_due);
	if (e->request)
		e->request->exchange = NULL;
	e->request = NULL;
	if (e->state == EXCHANGE_WAITING)
		LIST_REMOVE(e, waiting);
}

/* With a newline at its end, for terminals. */
static char *exchange_dump(const json_t *body)
{
	char *text = json_dumps(body, JSON_INDENT(2)), *line = NULL;
	if (text && asprintf(&line, "%s\n", text) < 0)
		line = NULL;
	free(text);
	return line;
}

static void exchange_answer_with(struct exchange *e, unsigned status, const char *type, char *text)
{
	const enum exchange_state before = e->state;
	e->status = text ? status : MHD_HTTP_INTERNAL_SERVER_ERROR;
	e->type = text ? type : JSON_TYPE;
	e->answer = text;
	exchange_let_go(e);
	exchange_move(e, EXCHANGE_ANSWERED);
	if (before != EXCHANGE_WAITING)
		return;
	MHD_resume_connection(e->connection);
	worker_at_turn_end(e->client->exchanges->worker, &e->client->exchanges->soon);
}

static void on_answer_late(struct deadline *d)
{
	struct exchange *e = container_of(d, struct exchange, answer_due);
	exchange_fail(e, MHD_HTTP_GATEWAY_TIMEOUT, "no answer after %u ms; what was asked may still happen",
		e->client->exchanges->limits.answer_ms);
}

/* For routes */

json_t *exchange_body(struct exchange *e)
{
	json_error_t error;
	json_t *body =
		e->body_len > 0 ? json_loadb(e->body, e->body_len, JSON_REJECT_DUPLICATES, &error) : json_object();
	if (!body && e->body_len > 0)
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "the body is not JSON: line %d column %d: %s", error.line,
			error.column, error.text);
	else if (!body)
		exchange_answer(e, MHD_HTTP_INTERNAL_SERVER_ERROR, NULL);
	else if (!json_is_object(body))
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "the body is not a JSON object");
	else
		return body;
	json_decref(body);
	return NULL;
}

struct control_request *exchange_ask(struct exchange *e)
{
	struct control_request *r = calloc(1, sizeof *r);
	if (!r) {
		exchange_answer(e, MHD_HTTP_INTERNAL_SERVER_ERROR, NULL);
		return NULL;
	}
	r->exchange = e;
	e->request = r;
	return r;
}

void exchange_header(struct exchange *e, const char *name, const char *value)
{
	e->header_name = name;
	snprintf(e->header_value, sizeof e->header_value, "%s", value);
}

void exchange_answer(struct exchange *e, unsigned status, json_t *body)
{
	exchange_answer_with(e, status, JSON_TYPE, body ? exchange_dump(body) : NULL);
	json_decref(body);
}

void exchange_answer_text(struct exchange *e, const char *type, char *text)
{
	exchange_answer_with(e, MHD_HTTP_OK, type, text);
}

static void exchange_fail_with(struct exchange *e, unsigned status, const char *reason, va_list args)
{
	char text[REASON_MAX];
	vsnprintf(text, sizeof text, reason, args);
	exchange_answer(e, status, json_pack("{s:o}", "error", text_json(text)));
}

bool exchange_fail(struct exchange *e, unsigned status, const char *reason, ...)
{
	va_list args;
	va_start(args, reason);
	exchange_fail_with(e, status, reason, args);
	va_end(args);
	return false;
}

/* For the answers of operations */

void request_answer(struct control_request *r, unsigned status, json_t *body)
{
	if (r->exchange)
		exchange_answer(r->exchange, status, body);
	else
		json_decref(body);
	free(r);
}

void request_answer_text(struct control_request *r, const char *type, char *text)
{
	if (r->exchange)
		exchange_answer_text(r->exchange, type, text);
	else
		free(text);
	free(r);
}

void request_fail(struct control_request *r, unsigned status, const char *reason, ...)
{
	va_list args;
	va_start(args, reason);
	if (r->exchange)
		exchange_fail_with(r->exchange, status, reason, args);
	va_end(args);
	free(r);
}

/* For libmicrohttpd */

static enum MHD_Result exchange_send(struct exchange *e)
{
	static char no_memory[] = "{\"error\": \"out of memory\"}";
	struct MHD_Response *response =
		e->answer ? MHD_create_response_from_buffer(strlen(e->answer), e->answer, MHD_RESPMEM_MUST_FREE)
			  : MHD_create_response_from_buffer(strlen(no_memory), no_memory, MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO; /* the connection is closed; @answer goes with the exchange */
	e->answer = NULL;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, e->type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (e->header_name)
		MHD_add_response_header(response, e->header_name, e->header_value);
	const enum MHD_Result r = MHD_queue_response(e->connection, e->status, response);
	MHD_destroy_response(response);
	exchange_move(e, EXCHANGE_SENDING);
	exchange_hurry(e->client);
	return r;
}

static void exchange_fail_too_long(struct exchange *e)
{
	exchange_fail(e, MHD_HTTP_CONTENT_TOO_LARGE, "the body is longer than %u bytes", CONTROL_BODY_MAX);
}

/* Refuse an announced body that is too long before it is sent. */
static enum MHD_Result exchange_begin(
	struct MHD_Connection *connection, const char *url, const char *method, void **closure)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	struct exchange *e = info->socket_context ? calloc(1, sizeof *e) : NULL;
	if (!e)
		return MHD_NO;
	e->client = info->socket_context;
	e->connection = connection;
	e->path = url;
	e->method = method;
	e->answer_due.fn = on_answer_late;
	*closure = e;
	if (!e->client->exchanges->may_ask(e->client->exchanges->owner, e))
		return exchange_send(e);
	if (!length || strtoull(length, NULL, 10) <= CONTROL_BODY_MAX)
		return MHD_YES;
	exchange_fail_too_long(e);
	return exchange_send(e);
}

static enum MHD_Result exchange_take_body(struct exchange *e, const char *upload, size_t *len)
{
	if (e->body_len + *len > CONTROL_BODY_MAX) {
		e->body_size = BODY_TOO_LONG; /* read the rest within the client's time, and drop it */
		*len = 0;
		return MHD_YES;
	}
	char *body = realloc(e->body, e->body_len + *len);
	if (!body)
		return MHD_NO;
	memcpy(body + e->body_len, upload, *len);
	e->body = body;
	e->body_len += *len;
	*len = 0;
	return MHD_YES;
}

static void exchange_fail_stopping(struct exchange *e)
{
	exchange_fail(e, MHD_HTTP_SERVICE_UNAVAILABLE, "stopping");
}

static enum MHD_Result exchange_follow(struct exchange *e)
{
	struct exchanges *x = e->client->exchanges;
	deadline_cancel(&e->client->due);
	if (e->body_size == BODY_TOO_LONG)
		exchange_fail_too_long(e);
	else if (x->state == EXCHANGES_ENDING)
		exchange_fail_stopping(e);
	if (e->state == EXCHANGE_ANSWERED)
		return exchange_send(e);
	exchange_move(e, EXCHANGE_ASKING);
	x->follow(x->owner, e);
	if (e->state == EXCHANGE_ANSWERED)
		return exchange_send(e);
	exchange_move(e, EXCHANGE_WAITING);
	LIST_INSERT_HEAD(&x->waiting, e, waiting);
	deadline_set(x->worker, &e->answer_due, x->limits.answer_ms);
	MHD_suspend_connection(e->connection);
	return MHD_YES;
}

enum MHD_Result exchange_on_request(void *closure, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *upload, size_t *upload_len, void **exchange)
{
	struct exchange *e = *exchange;
	if (!e)
		return exchange_begin(connection, url, method, exchange);
	if (e->state == EXCHANGE_RECEIVING)
		return *upload_len > 0 ? exchange_take_body(e, upload, upload_len) : exchange_follow(e);
	if (e->state == EXCHANGE_ANSWERED)
		return exchange_send(e);
	*upload_len = 0; /* SENDING: a refused body still comes */
	return MHD_YES;
}

void exchange_on_completed(
	void *closure, struct MHD_Connection *connection, void **exchange, enum MHD_RequestTerminationCode why)
{
	struct exchange *e = *exchange;
	if (!e)
		return;
	*exchange = NULL;
	exchange_let_go(e);
	exchange_hurry(e->client);
	free(e->body);
	free(e->answer);
	free(e);
}

void exchanges_end(struct exchanges *x)
{
	x->state = EXCHANGES_ENDING;
	while (!LIST_EMPTY(&x->waiting))
		exchange_fail_stopping(LIST_FIRST(&x->waiting));
}
