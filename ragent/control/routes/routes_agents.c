/* routes_agents.c: what can be asked about agents, and of every process, and how its words are read. */
#include "ragent/control/routes/control_input.h"
#include "ragent/control/routes/control_route.h"

#define DRAIN_TIMEOUT_MAX_MS (24u * 3600u * 1000u)
#define WEIGHT_MIN           0.01 /* as in the cluster file */
#define WEIGHT_MAX           1000.0

static bool read_drain(struct exchange *e, const char *segment, struct control_input *in)
{
	if (!INPUT_BODY(e, in, "timeout_ms"))
		return false;
	const json_t *value = json_object_get(in->body, "timeout_ms");
	const double ms = json_number_value(value); /* JSON has one kind of number: 5.0 is 5 */
	if (value && !(ms >= 1 && ms <= DRAIN_TIMEOUT_MAX_MS && ms == (uint32_t)ms))
		return exchange_fail(
			e, MHD_HTTP_BAD_REQUEST, "timeout_ms: expected a number from 1 to %u", DRAIN_TIMEOUT_MAX_MS);
	in->timeout_ms = (uint32_t)ms;
	return true;
}

static bool read_weight(struct exchange *e, const char *segment, struct control_input *in)
{
	if (!INPUT_BODY(e, in, "weight"))
		return false;
	const json_t *value = json_object_get(in->body, "weight");
	in->weight = json_number_value(value);
	return (json_is_number(value) && in->weight >= WEIGHT_MIN && in->weight <= WEIGHT_MAX) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'weight', a number from %g to %g",
		       WEIGHT_MIN, WEIGHT_MAX);
}

const struct route agent_routes[] = {
	{ "GET", "/v1/agents", operations_agents, .help = "every agent: state, weight, links, load, drain" },
	{ "GET", "/v1/agents/" ROUTE_NAME, operations_agent, .help = "one agent" },
	{ "POST", "/v1/agents/" ROUTE_NAME "/drain", operations_drain, .read = read_drain,
		.body = "{\"timeout_ms\": N}",
		.help = "drain the agent: it gets no new connections, and its connections move to other agents; "
			"answers at once, GET tells the progress; connections that could not leave in time end" },
	{ "POST", "/v1/agents/" ROUTE_NAME "/undrain", operations_undrain, .read = input_nothing, .body = "{}",
		.help = "let a drained agent take connections again" },
	{ "POST", "/v1/agents/" ROUTE_NAME "/weight", operations_weight, .read = read_weight, .body = "{\"weight\": X}",
		.help = "the agent's share of handshakes by weight, and of client addresses, until this process ends" },
	{ .method = NULL },
};

static bool read_log_level(struct exchange *e, const char *segment, struct control_input *in)
{
	if (!INPUT_BODY(e, in, "level", "node"))
		return false;
	const json_t *node = json_object_get(in->body, "node");
	in->node = json_string_value(node);
	in->level = json_string_value(json_object_get(in->body, "level"));
	if (!in->level || !log_level_takes(in->level))
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST,
			"expected the member 'level': debug, info, warning, error or configured");
	return !node || (in->node && *in->node) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST, "node: expected the name of RAgent or of an agent");
}

const struct route process_routes[] = {
	{ "POST", "/v1/keys/rotate", operations_rotate, .read = input_nothing, .body = "{}",
		.help = "every agent makes a new sending key and a new ticket key" },
	{ "POST", "/v1/reload", operations_reload, .read = input_nothing, .body = "{}",
		.help = "every process reads its certificates again and reopens its log" },
	{ "GET", "/v1/log-level", operations_log_level, .help = "from which level on each process logs" },
	{ "PUT", "/v1/log-level", operations_log_level, .read = read_log_level,
		.body = "{\"level\": LEVEL} or {\"level\": LEVEL, \"node\": NAME}",
		.help = "debug, info, warning, error, or configured for the level of the cluster file; of every "
			"process or one, until its next start" },
	{ .method = NULL },
};
