/* control_handlers.c: from path, query and body to one call of the provider. Everything a client can get wrong is told
 * here, before the provider is asked. */
#include "ragent/control_handlers.h"

#include <sodium.h>
#include <string.h>

#include "ragent/dashboard/dashboard.h"

#define DRAIN_TIMEOUT_MAX_MS (24u * 3600u * 1000u)
#define WEIGHT_MIN           0.01 /* as in the cluster file */
#define WEIGHT_MAX           1000.0

/* Pieces of input. Each returns 0, or -1 after it told the client. */

static int hex_parse(const char *text, uint8_t *out, size_t len)
{
	size_t got;
	return strlen(text) == 2 * len && sodium_hex2bin(out, len, text, 2 * len, NULL, &got, NULL) == 0 && got == len
		       ? 0
		       : -1;
}

static int id_parse(struct exchange *e, const char *what, const char *text, struct connection_id *out)
{
	if (hex_parse(text, out->bytes, sizeof out->bytes) == 0)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: found '%.80s', expected a connection id: %u hexadecimal digits",
		what, text, 2 * CONNECTION_ID_LEN);
	return -1;
}

const char *query_value(const struct query *q, const char *name)
{
	for (unsigned i = 0; i < q->count; i++) {
		if (strcmp(q->name[i], name) == 0)
			return q->value[i];
	}
	return NULL;
}

static int limit_parse(struct exchange *e, const char *text, unsigned *out)
{
	*out = CONTROL_LIMIT_DEFAULT;
	if (!text)
		return 0;
	const size_t len = strlen(text);
	unsigned n = 0;
	for (size_t i = 0; i < len && len <= 4; i++)
		n = text[i] >= '0' && text[i] <= '9' ? n * 10 + (unsigned)(text[i] - '0') : CONTROL_LIMIT_MAX + 1;
	*out = n;
	if (n >= 1 && n <= CONTROL_LIMIT_MAX)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "limit: found '%.80s', expected a number from 1 to %u", text,
		CONTROL_LIMIT_MAX);
	return -1;
}

/* An address alone is a network of one. */
static int net_parse(struct exchange *e, const char *text, struct address_net *out)
{
	struct sockaddr_storage address;
	memset(out, 0, sizeof *out);
	if (address_net_parse(text, out) == 0)
		return 0;
	if (address_parse_host(text, &address) == 0) {
		out->len = (uint8_t)address_bytes((const struct sockaddr *)&address, out->bytes);
		out->prefix = (uint8_t)(8 * out->len);
		return 0;
	}
	exchange_fail(e, MHD_HTTP_BAD_REQUEST,
		"client: found '%.80s', expected an address or a network such as 10.0.0.0/8", text);
	return -1;
}

/* GET */

void handle_page(struct exchange *e, const struct query *q, const char *id)
{
	exchange_header(e, "Content-Security-Policy", dashboard_policy);
	exchange_answer_text(e, "text/html; charset=utf-8", strdup(dashboard_page));
}

void handle_status(struct exchange *e, const struct query *q, const char *id)
{
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->status(ctx, r);
}

void handle_counters(struct exchange *e, const struct query *q, const char *id)
{
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->counters(ctx, r);
}

void handle_metrics(struct exchange *e, const struct query *q, const char *id)
{
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->metrics(ctx, r);
}

void handle_connections(struct exchange *e, const struct query *q, const char *id)
{
	struct control_query query = { .agent = query_value(q, "agent"), .listener = query_value(q, "listener") };
	struct connection_id after;
	struct address_net client;
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	const char *after_text = query_value(q, "after"), *client_text = query_value(q, "client");
	if (limit_parse(e, query_value(q, "limit"), &query.limit))
		return;
	if (after_text && id_parse(e, "after", after_text, &after))
		return;
	if (client_text && net_parse(e, client_text, &client))
		return;
	query.after = after_text ? &after : NULL;
	query.client = client_text ? &client : NULL;
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->connections(ctx, &query, r);
}

void handle_connection(struct exchange *e, const struct query *q, const char *id)
{
	struct connection_id connection;
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	if (id_parse(e, "path", id, &connection))
		return;
	struct control_request *r = exchange_ask(e, REQUEST_OF_ONE);
	if (r)
		p->connection(ctx, &connection, r);
}

/* POST */

/* Only these members, each at most once (the parser refuses twice). */
static int members_are(struct exchange *e, const json_t *body, const char *const *names, unsigned count)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)body, key, value)
	{
		unsigned i = 0;
		while (i < count && strcmp(names[i], key) != 0)
			i++;
		if (i < count)
			continue;
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "unknown member '%.80s'", key);
		return 0;
	}
	return 1;
}

void handle_move(struct exchange *e, const struct query *q, const char *id)
{
	static const char *const members[] = { "agent" };
	struct connection_id connection;
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	if (id_parse(e, "path", id, &connection))
		return;
	json_t *body = exchange_body(e);
	if (!body)
		return;
	const char *agent = json_string_value(json_object_get(body, "agent"));
	struct control_request *r = NULL;
	if (!members_are(e, body, members, 1))
		;
	else if (!agent || *agent == '\0' || strlen(agent) > NAME_LEN_MAX)
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'agent', the name of an agent");
	else if ((r = exchange_ask(e, REQUEST_PLAIN)))
		p->move(ctx, &connection, agent, r);
	json_decref(body);
}

static int body_is_empty(struct exchange *e)
{
	json_t *body = exchange_body(e);
	const int empty = body && members_are(e, body, NULL, 0);
	json_decref(body);
	return empty;
}

void handle_rest(struct exchange *e, const struct query *q, const char *id)
{
	struct connection_id connection;
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	if (id_parse(e, "path", id, &connection) || !body_is_empty(e))
		return;
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->rest(ctx, &connection, r);
}

/* Agents. Whether there is one of that name the provider knows. */

void handle_agents(struct exchange *e, const struct query *q, const char *id)
{
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->agents(ctx, NULL, r);
}

void handle_agent(struct exchange *e, const struct query *q, const char *id)
{
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = exchange_ask(e, REQUEST_OF_ONE);
	if (r)
		p->agents(ctx, id, r);
}

/* *timeout_ms 0: the body says none. */
static int timeout_parse(struct exchange *e, const json_t *body, uint32_t *timeout_ms)
{
	const json_t *value = json_object_get(body, "timeout_ms");
	const json_int_t ms = json_integer_value(value);
	*timeout_ms = (uint32_t)ms;
	if (!value || (ms >= 1 && ms <= DRAIN_TIMEOUT_MAX_MS))
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "timeout_ms: expected a number from 1 to %u", DRAIN_TIMEOUT_MAX_MS);
	return -1;
}

void handle_drain(struct exchange *e, const struct query *q, const char *id)
{
	static const char *const members[] = { "timeout_ms" };
	uint32_t timeout_ms;
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	json_t *body = exchange_body(e);
	const int good = body && members_are(e, body, members, 1) && timeout_parse(e, body, &timeout_ms) == 0;
	json_decref(body);
	struct control_request *r = good ? exchange_ask(e, REQUEST_TO_BEGIN) : NULL;
	if (r)
		p->drain(ctx, id, timeout_ms, r);
}

void handle_undrain(struct exchange *e, const struct query *q, const char *id)
{
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = body_is_empty(e) ? exchange_ask(e, REQUEST_OF_ONE) : NULL;
	if (r)
		p->undrain(ctx, id, r);
}

static int weight_parse(struct exchange *e, const json_t *body, double *weight)
{
	const json_t *value = json_object_get(body, "weight");
	*weight = json_number_value(value);
	if (json_is_number(value) && *weight >= WEIGHT_MIN && *weight <= WEIGHT_MAX)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "expected the member 'weight', a number from %g to %g", WEIGHT_MIN,
		WEIGHT_MAX);
	return -1;
}

void handle_weight(struct exchange *e, const struct query *q, const char *id)
{
	static const char *const members[] = { "weight" };
	double weight;
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	json_t *body = exchange_body(e);
	const int good = body && members_are(e, body, members, 1) && weight_parse(e, body, &weight) == 0;
	json_decref(body);
	struct control_request *r = good ? exchange_ask(e, REQUEST_OF_ONE) : NULL;
	if (r)
		p->weight(ctx, id, weight, r);
}

static int revoke_id(const json_t *value, uint8_t *out, size_t len)
{
	const char *text = json_string_value(value);
	return text ? hex_parse(text, out, len) : -1;
}

static int revoke_session(const json_t *value, struct control_revocation *out)
{
	out->which = CONTROL_REVOKE_SESSION;
	out->id_len = SESSION_ID_LEN;
	return revoke_id(value, out->id, SESSION_ID_LEN);
}

static int revoke_family(const json_t *value, struct control_revocation *out)
{
	out->which = CONTROL_REVOKE_FAMILY;
	out->id_len = FAMILY_ID_LEN;
	return revoke_id(value, out->id, FAMILY_ID_LEN);
}

static int revoke_server_name(const json_t *value, struct control_revocation *out)
{
	out->which = CONTROL_REVOKE_SERVER_NAME;
	out->server_name = json_string_value(value);
	return out->server_name && *out->server_name != '\0' && strlen(out->server_name) <= NAME_MAX_LEN ? 0 : -1;
}

static int revoke_client(const json_t *value, struct control_revocation *out)
{
	const char *text = json_string_value(value);
	struct sockaddr_storage address;
	out->which = CONTROL_REVOKE_CLIENT;
	if (!text || address_parse_host(text, &address))
		return -1;
	out->client.len = (uint8_t)address_bytes((const struct sockaddr *)&address, out->client.bytes);
	return 0;
}

static int revoke_all(const json_t *value, struct control_revocation *out)
{
	out->which = CONTROL_REVOKE_ALL;
	return json_is_true(value) ? 0 : -1;
}

static const struct revocation {
	const char *member;
	int (*parse)(const json_t *value, struct control_revocation *out);
	const char *expected;
} revocations[] = {
	{ "session_id", revoke_session, "64 hexadecimal digits" },
	{ "family_id", revoke_family, "32 hexadecimal digits" },
	{ "server_name", revoke_server_name, "a name of 1 to 255 bytes" },
	{ "client_address", revoke_client, "an IP address" },
	{ "all", revoke_all, "true" },
};

static const struct revocation *revocation_find(const char *member)
{
	for (size_t i = 0; i < sizeof revocations / sizeof revocations[0]; i++) {
		if (strcmp(revocations[i].member, member) == 0)
			return &revocations[i];
	}
	return NULL;
}

static int revocation_parse(struct exchange *e, json_t *body, struct control_revocation *out)
{
	void *only = json_object_iter(body);
	if (json_object_size(body) != 1) {
		exchange_fail(e, MHD_HTTP_BAD_REQUEST,
			"expected one member: session_id, family_id, server_name, client_address or all");
		return -1;
	}
	const struct revocation *row = revocation_find(json_object_iter_key(only));
	if (!row) {
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "unknown member '%.80s'", json_object_iter_key(only));
		return -1;
	}
	if (row->parse(json_object_iter_value(only), out) == 0)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: expected %s", row->member, row->expected);
	return -1;
}

void handle_revoke(struct exchange *e, const struct query *q, const char *id)
{
	struct control_revocation what = { .id_len = 0 };
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	json_t *body = exchange_body(e);
	if (!body)
		return;
	struct control_request *r = revocation_parse(e, body, &what) == 0 ? exchange_ask(e, REQUEST_PLAIN) : NULL;
	if (r)
		p->revoke(ctx, &what, r);
	json_decref(body);
}

void handle_rotate(struct exchange *e, const struct query *q, const char *id)
{
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = body_is_empty(e) ? exchange_ask(e, REQUEST_PLAIN) : NULL;
	if (r)
		p->rotate(ctx, r);
}

void handle_reload(struct exchange *e, const struct query *q, const char *id)
{
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = body_is_empty(e) ? exchange_ask(e, REQUEST_PLAIN) : NULL;
	if (r)
		p->reload(ctx, r);
}
