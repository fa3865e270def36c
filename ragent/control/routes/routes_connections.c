/* routes_connections.c: what can be asked about connections and blocked networks, and how its words are read. */
#include <string.h>

#include "ragent/control/routes/control_input.h"
#include "ragent/control/routes/control_route.h"

#define AGENT_NAME_MAX 63u

static bool read_net(struct exchange *e, const char *what, const char *text, struct address_net *out)
{
	return input_net(text, out) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST,
		       "%s: found '%.80s', expected an address or a network such as 10.0.0.0/8", what, text);
}

static bool read_connection_id(struct exchange *e, const char *what, const char *text, struct connection_id *out)
{
	return input_hex(text, out->bytes, sizeof out->bytes) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST,
		       "%s: found '%.80s', expected a connection id: %u hexadecimal digits", what, text,
		       2 * CONNECTION_ID_LEN);
}

static bool read_connection(struct exchange *e, const char *segment, struct control_input *in)
{
	in->query = (struct control_query){ .ids = QUERY_ONE, .limit = 1 };
	return read_connection_id(e, "ID", segment, &in->query.id);
}

static bool read_connections(struct exchange *e, const char *segment, struct control_input *in)
{
	const char *id = input_argument(e, "id"), *after = input_argument(e, "after"),
		   *client = input_argument(e, "client");
	struct control_query *q = &in->query;
	q->ids = id ? QUERY_ONE : after ? QUERY_BEHIND : QUERY_ALL;
	q->agent = input_argument(e, "agent");
	q->listener = input_argument(e, "listener");
	return input_limit(e, &q->limit) && (!id || read_connection_id(e, "id", id, &q->id)) &&
	       (!after || read_connection_id(e, "after", after, &q->id)) &&
	       (!client || read_net(e, "client", client, &q->client));
}

static bool read_end(struct exchange *e, const char *segment, struct control_input *in)
{
	const struct control_query *q = &in->query;
	if (!read_connections(e, segment, in))
		return false;
	if (q->ids == QUERY_ALL && !q->agent && !q->listener && q->client.len == 0)
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "say which: id, agent, listener or client");
	return input_nothing(e, segment, in);
}

static bool read_move(struct exchange *e, const char *segment, struct control_input *in)
{
	if (!read_connection(e, segment, in) || !INPUT_BODY(e, in, "agent"))
		return false;
	in->agent = json_string_value(json_object_get(in->body, "agent"));
	return (in->agent && *in->agent && strlen(in->agent) <= AGENT_NAME_MAX) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'agent', the name of an agent");
}

static bool read_rest(struct exchange *e, const char *segment, struct control_input *in)
{
	return read_connection(e, segment, in) && input_nothing(e, segment, in);
}

static bool read_block(struct exchange *e, const char *segment, struct control_input *in)
{
	const char *network = input_argument(e, "network"), *seconds = input_argument(e, "seconds");
	in->for_s = UINT32_MAX;
	if (!read_net(e, "network", network ? network : "", &in->net))
		return false;
	if (seconds && !input_seconds(seconds, CONTROL_BLOCK_MAX_S, &in->for_s))
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "seconds: found '%.80s', expected seconds, at most %u",
			seconds, CONTROL_BLOCK_MAX_S);
	return input_nothing(e, segment, in);
}

const struct route connection_routes[] = {
	{ "GET", "/v1/connections", operations_connections, { "limit", "after", "agent", "listener", "client" },
		.read = read_connections,
		.help = "connections by id, a page at a time: `limit` of them after the id `after`; of one agent, one "
			"listener, one client address or network" },
	{ "GET", "/v1/connections/" ROUTE_ID, operations_connections, .read = read_connection,
		.help = "one connection" },
	{ "POST", "/v1/connections/" ROUTE_ID "/move", operations_move, .read = read_move, .body = "{\"agent\": NAME}",
		.help = "give the connection to that agent; answers when the move ended" },
	{ "POST", "/v1/connections/" ROUTE_ID "/rest", operations_rest, .read = read_rest, .body = "{}",
		.help = "let no agent have the connection until its next record; answers when that is so" },
	{ "POST", "/v1/connections/end", operations_end, { "id", "agent", "listener", "client" }, .read = read_end,
		.body = "{}",
		.help = "end these connections: in order where that cuts nothing off; answers when the end is "
			"ordered" },
	{ "GET", "/v1/blocks", operations_blocks, .help = "the blocked networks, and how long each block lasts" },
	{ "POST", "/v1/blocks", operations_block, { "network", "seconds" }, .read = read_block, .body = "{}",
		.help = "reset the clients of this network, and keep these clients out, for `seconds` or for good; 0: "
			"let them in again. Also at agents' own listeners" },
	{ .method = NULL },
};
