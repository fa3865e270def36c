/* control_handlers.c: turn path, query and body into one call of the provider. All errors of the client are answered
 * here, before the call. */
#include "ragent/control/control_handlers.h"
#include "ragent/control/control_input.h"

#include <string.h>

#include "net/log.h"
#include "ragent/control/openapi.h"
#include "ragent/dashboard/dashboard.h"

#define DRAIN_TIMEOUT_MAX_MS (24u * 3600u * 1000u)
#define WEIGHT_MIN           0.01 /* as in the cluster file */
#define WEIGHT_MAX           1000.0

void handle_page(struct exchange *e, const struct query *q, const char *id)
{
	exchange_header(e, "Content-Security-Policy", dashboard_policy);
	exchange_answer_text(e, "text/html; charset=utf-8", strdup(dashboard_page));
}

void handle_openapi(struct exchange *e, const struct query *q, const char *id)
{
	exchange_answer_text(e, "application/yaml", strdup(openapi_text));
}

/* Those that read nothing of the request but the name in its path. @ask: NULL if the client got an error. */
#define HANDLE(what, ask, call)                                                                                        \
	void handle_##what(struct exchange *e, const struct query *q, const char *id)                                  \
	{                                                                                                              \
		void *ctx;                                                                                             \
		struct connection_id of __attribute__((unused));                                                       \
		const struct control_provider *p = exchange_provider(e, &ctx);                                         \
		struct control_request *r = ask;                                                                       \
		if (r)                                                                                                 \
			p->call;                                                                                       \
	}
#define ASK(form)          exchange_ask(e, form)
#define ASK_IF_EMPTY(form) (input_body_empty(e) ? exchange_ask(e, form) : NULL)

static const struct control_log_change no_change;

HANDLE(status, ASK(REQUEST_PLAIN), status(ctx, r))
HANDLE(listeners, ASK(REQUEST_PLAIN), listeners(ctx, r))
HANDLE(counters, ASK(REQUEST_PLAIN), counters(ctx, r))
HANDLE(certificates, ASK(REQUEST_PLAIN), certificates(ctx, r))
HANDLE(mail, ASK(REQUEST_PLAIN), mail(ctx, r))
HANDLE(metrics, ASK(REQUEST_PLAIN), metrics(ctx, r))
HANDLE(log_levels, ASK(REQUEST_PLAIN), log_level(ctx, &no_change, r))
HANDLE(agents, ASK(REQUEST_PLAIN), agents(ctx, NULL, r))
HANDLE(agent, ASK(REQUEST_OF_ONE), agents(ctx, id, r))
HANDLE(undrain, ASK_IF_EMPTY(REQUEST_OF_ONE), undrain(ctx, id, r))
HANDLE(rotate, ASK_IF_EMPTY(REQUEST_PLAIN), rotate(ctx, r))
HANDLE(reload, ASK_IF_EMPTY(REQUEST_PLAIN), reload(ctx, r))
HANDLE(connection, input_id(e, "ID", id, &of) ? NULL : ASK(REQUEST_OF_ONE), connection(ctx, &of, r))
HANDLE(rest, input_id(e, "ID", id, &of) ? NULL : ASK_IF_EMPTY(REQUEST_PLAIN), rest(ctx, &of, r))

void handle_connections(struct exchange *e, const struct query *q, const char *id)
{
	struct control_query query = { .agent = query_value(q, "agent"), .listener = query_value(q, "listener") };
	struct connection_id after;
	struct address_net client;
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	const char *after_text = query_value(q, "after"), *client_text = query_value(q, "client");
	if (input_limit(e, query_value(q, "limit"), &query.limit))
		return;
	if (after_text && input_id(e, "after", after_text, &after))
		return;
	if (client_text && input_net(e, client_text, &client))
		return;
	query.after = after_text ? &after : NULL;
	query.client = client_text ? &client : NULL;
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->connections(ctx, &query, r);
}

/* POST */

/* The members of a body, and the function that reads them: 0, or -1 after it told the client. */
struct body_shape {
	const char *members[2];
	unsigned count;
	int (*parse)(struct exchange *e, const json_t *body, void *out);
};

/* Read the body. *@out may point to its strings. NULL: the client got the error. */
static json_t *body_take(struct exchange *e, const struct body_shape *shape, void *out)
{
	json_t *body = exchange_body(e);
	if (body && input_members(e, body, shape->members, shape->count) && shape->parse(e, body, out) == 0)
		return body;
	json_decref(body);
	return NULL;
}

static int agent_parse(struct exchange *e, const json_t *body, void *out)
{
	const char *agent = json_string_value(json_object_get(body, "agent"));
	*(const char **)out = agent;
	if (agent && *agent && strlen(agent) <= NAME_LEN_MAX)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'agent', the name of an agent");
	return -1;
}

void handle_move(struct exchange *e, const struct query *q, const char *id)
{
	static const struct body_shape shape = { { "agent" }, 1, agent_parse };
	struct connection_id connection;
	const char *agent;
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	if (input_id(e, "ID", id, &connection))
		return;
	json_t *body = body_take(e, &shape, &agent);
	struct control_request *r = body ? exchange_ask(e, REQUEST_PLAIN) : NULL;
	if (r)
		p->move(ctx, &connection, agent, r);
	json_decref(body);
}

/* Agents. The provider checks that an agent of that name exists. */

/* 0: the body has no timeout. */
static int timeout_parse(struct exchange *e, const json_t *body, void *out)
{
	const json_t *value = json_object_get(body, "timeout_ms");
	const double ms = json_number_value(value); /* JSON has one kind of number: 5.0 is 5 */
	uint32_t *timeout_ms = out;
	*timeout_ms = 0;
	if (!value)
		return 0;
	if (ms >= 1 && ms <= DRAIN_TIMEOUT_MAX_MS && ms == (uint32_t)ms) {
		*timeout_ms = (uint32_t)ms;
		return 0;
	}
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "timeout_ms: expected a number from 1 to %u", DRAIN_TIMEOUT_MAX_MS);
	return -1;
}

static int weight_parse(struct exchange *e, const json_t *body, void *out)
{
	const json_t *value = json_object_get(body, "weight");
	double *weight = out;
	*weight = json_number_value(value);
	if (json_is_number(value) && *weight >= WEIGHT_MIN && *weight <= WEIGHT_MAX)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'weight', a number from %g to %g", WEIGHT_MIN,
		WEIGHT_MAX);
	return -1;
}

static int log_change_parse(struct exchange *e, const json_t *body, void *out)
{
	const json_t *node = json_object_get(body, "node");
	struct control_log_change *change = out;
	change->node = json_string_value(node);
	change->level = json_string_value(json_object_get(body, "level"));
	if (!change->level || !log_level_takes(change->level))
		exchange_fail(e, MHD_HTTP_BAD_REQUEST,
			"expected the member 'level': debug, info, warning, error or configured");
	else if (node && (!change->node || *change->node == '\0'))
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "node: expected the name of RAgent or of an agent");
	else
		return 0;
	return -1;
}

/* Those that read a body into @value. */
#define HANDLE_BODY(what, type, parse, form, call, ...)                                                                \
	void handle_##what(struct exchange *e, const struct query *q, const char *id)                                  \
	{                                                                                                              \
		static const struct body_shape shape = { { __VA_ARGS__ },                                              \
			sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), parse };                             \
		type value;                                                                                            \
		void *ctx;                                                                                             \
		const struct control_provider *p = exchange_provider(e, &ctx);                                         \
		json_t *body = body_take(e, &shape, &value);                                                           \
		struct control_request *r = body ? exchange_ask(e, form) : NULL;                                       \
		if (r)                                                                                                 \
			p->call;                                                                                       \
		json_decref(body);                                                                                     \
	}

HANDLE_BODY(drain, uint32_t, timeout_parse, REQUEST_TO_BEGIN, drain(ctx, id, value, r), "timeout_ms")
HANDLE_BODY(weight, double, weight_parse, REQUEST_OF_ONE, weight(ctx, id, value, r), "weight")
HANDLE_BODY(log_level_change, struct control_log_change, log_change_parse, REQUEST_TO_CHANGE, log_level(ctx, &value, r),
	"level", "node")
