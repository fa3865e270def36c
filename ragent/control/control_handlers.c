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

void handle_health(struct exchange *e, const struct query *q, const char *id)
{
	exchange_answer(e, MHD_HTTP_OK, json_pack("{s:b}", "lives", 1));
}

/* What a request says besides its path. The functions that read it return 1, or 0 after they told the client. */
struct input {
	struct control_query query;
	struct connection_id id, after;
	struct address_net client;
	uint32_t for_s, timeout_ms;
	double weight;
	const char *agent;
	struct control_log_change change;
	json_t *body; /* owned; the strings above may be its own */
};

static int read_id(struct exchange *e, const char *id, struct input *in)
{
	return input_id(e, "ID", id, &in->id) == 0;
}

/* Which connections, for those who list or end them. */
static int read_selection(struct exchange *e, const struct query *q, struct input *in)
{
	const char *id = query_value(q, "id"), *after = query_value(q, "after"), *client = query_value(q, "client");
	in->query = (struct control_query){ .agent = query_value(q, "agent"),
		.listener = query_value(q, "listener"),
		.id = id ? &in->id : NULL,
		.after = after ? &in->after : NULL,
		.client = client ? &in->client : NULL };
	return !input_limit(e, query_value(q, "limit"), &in->query.limit) && (!id || !input_id(e, "id", id, &in->id)) &&
	       (!after || !input_id(e, "after", after, &in->after)) &&
	       (!client || !input_net(e, "client", client, &in->client));
}

static int read_end(struct exchange *e, const struct query *q, struct input *in)
{
	if (q->count > 0)
		return read_selection(e, q, in) && input_body_empty(e);
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "say which: id, agent, listener or client");
	return 0;
}

static int read_block(struct exchange *e, const struct query *q, struct input *in)
{
	const char *network = query_value(q, "network"), *seconds = query_value(q, "seconds");
	in->for_s = UINT32_MAX;
	return !input_net(e, "network", network ? network : "", &in->client) &&
	       (!seconds || !input_seconds(e, "seconds", seconds, CONTROL_BLOCK_MAX_S, &in->for_s)) &&
	       input_body_empty(e);
}

/* The members of a body, and the function that reads them. */
struct body_shape {
	const char *members[2];
	unsigned count;
	int (*parse)(struct exchange *e, const json_t *body, struct input *in);
};

static int read_body(struct exchange *e, const struct body_shape *shape, struct input *in)
{
	in->body = exchange_body(e);
	return in->body && input_members(e, in->body, shape->members, shape->count) && shape->parse(e, in->body, in);
}

static int agent_parse(struct exchange *e, const json_t *body, struct input *in)
{
	in->agent = json_string_value(json_object_get(body, "agent"));
	if (in->agent && *in->agent && strlen(in->agent) <= NAME_LEN_MAX)
		return 1;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'agent', the name of an agent");
	return 0;
}

/* 0 ms: the body has no timeout. */
static int timeout_parse(struct exchange *e, const json_t *body, struct input *in)
{
	const json_t *value = json_object_get(body, "timeout_ms");
	const double ms = json_number_value(value); /* JSON has one kind of number: 5.0 is 5 */
	if (!value)
		return 1;
	if (ms >= 1 && ms <= DRAIN_TIMEOUT_MAX_MS && ms == (uint32_t)ms) {
		in->timeout_ms = (uint32_t)ms;
		return 1;
	}
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "timeout_ms: expected a number from 1 to %u", DRAIN_TIMEOUT_MAX_MS);
	return 0;
}

static int weight_parse(struct exchange *e, const json_t *body, struct input *in)
{
	const json_t *value = json_object_get(body, "weight");
	in->weight = json_number_value(value);
	if (json_is_number(value) && in->weight >= WEIGHT_MIN && in->weight <= WEIGHT_MAX)
		return 1;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'weight', a number from %g to %g", WEIGHT_MIN,
		WEIGHT_MAX);
	return 0;
}

static int log_change_parse(struct exchange *e, const json_t *body, struct input *in)
{
	const json_t *node = json_object_get(body, "node");
	struct control_log_change *change = &in->change;
	change->node = json_string_value(node);
	change->level = json_string_value(json_object_get(body, "level"));
	if (!change->level || !log_level_takes(change->level))
		exchange_fail(e, MHD_HTTP_BAD_REQUEST,
			"expected the member 'level': debug, info, warning, error or configured");
	else if (node && (!change->node || *change->node == '\0'))
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "node: expected the name of RAgent or of an agent");
	else
		return 1;
	return 0;
}

static const struct body_shape of_move = { { "agent" }, 1, agent_parse };
static const struct body_shape of_drain = { { "timeout_ms" }, 1, timeout_parse };
static const struct body_shape of_weight = { { "weight" }, 1, weight_parse };
static const struct body_shape of_log_level = { { "level", "node" }, 2, log_change_parse };

HANDLE(certificates, 1, REQUEST_PLAIN, certificates(ctx, r))
HANDLE(counters, 1, REQUEST_PLAIN, counters(ctx, r))
HANDLE(listeners, 1, REQUEST_PLAIN, listeners(ctx, r))
HANDLE(mail, 1, REQUEST_PLAIN, mail(ctx, r))
HANDLE(metrics, 1, REQUEST_PLAIN, metrics(ctx, r))
HANDLE(ready, 1, REQUEST_PLAIN, ready(ctx, r))
HANDLE(status, 1, REQUEST_PLAIN, status(ctx, r))
HANDLE(rotate, input_body_empty(e), REQUEST_PLAIN, rotate(ctx, r))
HANDLE(reload, input_body_empty(e), REQUEST_PLAIN, reload(ctx, r))
HANDLE(log_levels, 1, REQUEST_PLAIN, log_level(ctx, &in.change, r))
HANDLE(log_level_change, read_body(e, &of_log_level, &in), REQUEST_TO_CHANGE, log_level(ctx, &in.change, r))

HANDLE(connections, read_selection(e, q, &in), REQUEST_PLAIN, connections(ctx, &in.query, r))
HANDLE(connection, read_id(e, id, &in), REQUEST_OF_ONE, connection(ctx, &in.id, r))
HANDLE(end, read_end(e, q, &in), REQUEST_PLAIN, end(ctx, &in.query, r))
HANDLE(blocks, 1, REQUEST_PLAIN, blocks(ctx, r))
HANDLE(block, read_block(e, q, &in), REQUEST_PLAIN, block(ctx, &in.client, in.for_s, r))
HANDLE(move, read_id(e, id, &in) && read_body(e, &of_move, &in), REQUEST_PLAIN, move(ctx, &in.id, in.agent, r))
HANDLE(rest, read_id(e, id, &in) && input_body_empty(e), REQUEST_PLAIN, rest(ctx, &in.id, r))

/* The provider checks that an agent of that name exists. */
HANDLE(agents, 1, REQUEST_PLAIN, agents(ctx, NULL, r))
HANDLE(agent, 1, REQUEST_OF_ONE, agents(ctx, id, r))
HANDLE(drain, read_body(e, &of_drain, &in), REQUEST_TO_BEGIN, drain(ctx, id, in.timeout_ms, r))
HANDLE(undrain, input_body_empty(e), REQUEST_OF_ONE, undrain(ctx, id, r))
HANDLE(weight, read_body(e, &of_weight, &in), REQUEST_OF_ONE, weight(ctx, id, in.weight, r))
