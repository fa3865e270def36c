/* control_input.c: every error names the piece, the found value and the expected one. */
#include "ragent/control/control_input.h"

#include <sodium.h>
#include <string.h>

#include "net/log.h"

#define AGENT_NAME_MAX       63u
#define DRAIN_TIMEOUT_MAX_MS (24u * 3600u * 1000u)
#define WEIGHT_MIN           0.01 /* as in the cluster file */
#define WEIGHT_MAX           1000.0

/* --- pieces --- */

const char *input_argument(const struct exchange *e, const char *name)
{
	return MHD_lookup_connection_value(e->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool input_hex(const char *text, uint8_t *out, size_t len)
{
	size_t got;
	return strlen(text) == 2 * len && sodium_hex2bin(out, len, text, 2 * len, NULL, &got, NULL) == 0 && got == len;
}

bool input_seconds(const char *text, uint32_t max, uint32_t *out)
{
	const size_t len = strlen(text);
	uint64_t n = 0;
	for (size_t i = 0; i < len && len <= 9; i++)
		n = text[i] >= '0' && text[i] <= '9' ? n * 10 + (uint64_t)(text[i] - '0') : UINT32_MAX;
	*out = (uint32_t)n;
	return len <= 9 && n <= max;
}

int input_limit(struct exchange *e, unsigned *out)
{
	const char *text = input_argument(e, "limit");
	*out = CONTROL_LIMIT_DEFAULT;
	if (!text || (input_seconds(text, CONTROL_LIMIT_MAX, out) && *out >= 1))
		return 1;
	return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "limit: found '%.80s', expected a number from 1 to %u", text,
		CONTROL_LIMIT_MAX);
}

bool input_net(const char *text, struct address_net *out)
{
	struct sockaddr_storage address;
	memset(out, 0, sizeof *out);
	if (address_net_parse(text, out) == 0)
		return true;
	if (address_parse_host(text, &address) != 0)
		return false;
	out->len = (uint8_t)address_bytes((const struct sockaddr *)&address, out->bytes);
	out->prefix = (uint8_t)(8 * out->len);
	return true;
}

static bool read_net(struct exchange *e, const char *what, const char *text, struct address_net *out)
{
	return input_net(text, out) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST,
		       "%s: found '%.80s', expected an address or a network such as 10.0.0.0/8", what, text);
}

static bool read_id(struct exchange *e, const char *what, const char *text, struct connection_id *out)
{
	return input_hex(text, out->bytes, sizeof out->bytes) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST,
		       "%s: found '%.80s', expected a connection id: %u hexadecimal digits", what, text,
		       2 * CONNECTION_ID_LEN);
}

/* Only these members, of which NULL is the end (the parser refuses a member twice). */
static int read_body(struct exchange *e, struct control_input *in, const char *const *names)
{
	const char *key;
	json_t *value;
	in->body = exchange_body(e);
	json_object_foreach(in->body, key, value)
	{
		const char *const *name = names;
		while (*name && strcmp(*name, key) != 0)
			name++;
		if (!*name)
			return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "unknown member '%.80s'", key);
	}
	return in->body != NULL;
}
#define READ_BODY(e, in, ...) read_body(e, in, (const char *const[]){ __VA_ARGS__, NULL })

int input_nothing(struct exchange *e, const char *segment, struct control_input *in)
{
	return READ_BODY(e, in, NULL);
}

/* --- connections --- */

int input_connection(struct exchange *e, const char *segment, struct control_input *in)
{
	in->query = (struct control_query){ .ids = QUERY_ONE, .limit = 1 };
	return read_id(e, "ID", segment, &in->query.id);
}

int input_connections(struct exchange *e, const char *segment, struct control_input *in)
{
	const char *id = input_argument(e, "id"), *after = input_argument(e, "after"),
		   *client = input_argument(e, "client");
	struct control_query *q = &in->query;
	q->ids = id ? QUERY_ONE : after ? QUERY_BEHIND : QUERY_ALL;
	q->agent = input_argument(e, "agent");
	q->listener = input_argument(e, "listener");
	return input_limit(e, &q->limit) && (!id || read_id(e, "id", id, &q->id)) &&
	       (!after || read_id(e, "after", after, &q->id)) && (!client || read_net(e, "client", client, &q->client));
}

int input_end(struct exchange *e, const char *segment, struct control_input *in)
{
	const struct control_query *q = &in->query;
	if (!input_connections(e, segment, in))
		return 0;
	if (q->ids == QUERY_ALL && !q->agent && !q->listener && q->client.len == 0)
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "say which: id, agent, listener or client");
	return input_nothing(e, segment, in);
}

int input_move(struct exchange *e, const char *segment, struct control_input *in)
{
	if (!input_connection(e, segment, in) || !READ_BODY(e, in, "agent"))
		return 0;
	in->agent = json_string_value(json_object_get(in->body, "agent"));
	return (in->agent && *in->agent && strlen(in->agent) <= AGENT_NAME_MAX) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'agent', the name of an agent");
}

int input_rest(struct exchange *e, const char *segment, struct control_input *in)
{
	return input_connection(e, segment, in) && input_nothing(e, segment, in);
}

int input_block(struct exchange *e, const char *segment, struct control_input *in)
{
	const char *network = input_argument(e, "network"), *seconds = input_argument(e, "seconds");
	in->for_s = UINT32_MAX;
	if (!read_net(e, "network", network ? network : "", &in->net))
		return 0;
	if (seconds && !input_seconds(seconds, CONTROL_BLOCK_MAX_S, &in->for_s))
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "seconds: found '%.80s', expected seconds, at most %u",
			seconds, CONTROL_BLOCK_MAX_S);
	return input_nothing(e, segment, in);
}

/* --- agents and processes --- */

int input_drain(struct exchange *e, const char *segment, struct control_input *in)
{
	if (!READ_BODY(e, in, "timeout_ms"))
		return 0;
	const json_t *value = json_object_get(in->body, "timeout_ms");
	const double ms = json_number_value(value); /* JSON has one kind of number: 5.0 is 5 */
	if (value && !(ms >= 1 && ms <= DRAIN_TIMEOUT_MAX_MS && ms == (uint32_t)ms))
		return exchange_fail(
			e, MHD_HTTP_BAD_REQUEST, "timeout_ms: expected a number from 1 to %u", DRAIN_TIMEOUT_MAX_MS);
	in->timeout_ms = (uint32_t)ms;
	return 1;
}

int input_weight(struct exchange *e, const char *segment, struct control_input *in)
{
	if (!READ_BODY(e, in, "weight"))
		return 0;
	const json_t *value = json_object_get(in->body, "weight");
	in->weight = json_number_value(value);
	return (json_is_number(value) && in->weight >= WEIGHT_MIN && in->weight <= WEIGHT_MAX) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'weight', a number from %g to %g",
		       WEIGHT_MIN, WEIGHT_MAX);
}

int input_log_level(struct exchange *e, const char *segment, struct control_input *in)
{
	if (!READ_BODY(e, in, "level", "node"))
		return 0;
	const json_t *node = json_object_get(in->body, "node");
	in->node = json_string_value(node);
	in->level = json_string_value(json_object_get(in->body, "level"));
	if (!in->level || !log_level_takes(in->level))
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST,
			"expected the member 'level': debug, info, warning, error or configured");
	return !node || (in->node && *in->node) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST, "node: expected the name of RAgent or of an agent");
}
