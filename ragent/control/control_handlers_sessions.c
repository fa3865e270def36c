/* control_handlers_sessions.c: what the routes of sessions do with their requests. */
#include <stdlib.h>
#include <string.h>

#include "proto/cipher_suite.h"
#include "ragent/control/control_input.h"

static int version_parse(struct exchange *e, const char *text, uint16_t *out)
{
	*out = !text ? 0 : strcmp(text, "1.2") == 0 ? 0x0303 : strcmp(text, "1.3") == 0 ? 0x0304 : UINT16_MAX;
	if (*out != UINT16_MAX)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "version: found '%.80s', expected 1.2 or 1.3", text);
	return -1;
}

static int cipher_parse(struct exchange *e, const char *text, uint16_t *out)
{
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);
	*out = 0;
	for (unsigned i = 0; text && i < count; i++)
		if (strcmp(suites[i].name, text) == 0)
			*out = suites[i].id;
	if (!text || *out)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST,
		"cipher: found '%.80s', expected the name of a suite such as TLS_AES_128_GCM_SHA256", text);
	return -1;
}

static int server_name_parse(struct exchange *e, const char *text, const char **out)
{
	*out = text;
	if (!text || strlen(text) <= NAME_MAX_LEN)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "server_name: expected a name of 1 to %u bytes", NAME_MAX_LEN);
	return -1;
}

static int filter_parse(struct exchange *e, const struct query *q, struct control_session_query *out)
{
	const char *client = query_value(q, "client");
	if (server_name_parse(e, query_value(q, "server_name"), &out->server_name) ||
		version_parse(e, query_value(q, "version"), &out->protocol_version) ||
		cipher_parse(e, query_value(q, "cipher"), &out->cipher_suite) ||
		input_seconds(e, "min_age_s", query_value(q, "min_age_s"), &out->min_age_s) ||
		input_seconds(e, "max_age_s", query_value(q, "max_age_s"), &out->max_age_s))
		return -1;
	return client ? input_net(e, client, &out->client) : 0;
}

void handle_sessions(struct exchange *e, const struct query *q, const char *id)
{
	struct control_session_query query = { .limit = CONTROL_LIMIT_DEFAULT };
	uint8_t after[SESSION_ID_LEN];
	const char *after_text = query_value(q, "after");
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	if (filter_parse(e, q, &query) || input_limit(e, query_value(q, "limit"), &query.limit))
		return;
	if (after_text && input_session_id(e, "after", after_text, after))
		return;
	query.after = after_text ? after : NULL;
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->sessions(ctx, &query, r);
}

void handle_session_count(struct exchange *e, const struct query *q, const char *id)
{
	struct control_session_query query = { .limit = 0 };
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	struct control_request *r = filter_parse(e, q, &query) == 0 ? exchange_ask(e, REQUEST_PLAIN) : NULL;
	if (r)
		p->session_count(ctx, &query, r);
}

void handle_session(struct exchange *e, const struct query *q, const char *id)
{
	uint8_t session[SESSION_ID_LEN];
	void *ctx;
	const struct control_provider *p = exchange_provider(e, &ctx);
	if (input_session_id(e, "ID", id, session))
		return;
	struct control_request *r = exchange_ask(e, REQUEST_PLAIN);
	if (r)
		p->session(ctx, session, r);
}

/* Revocation: one member says what, and how it is written. */

static int revoke_id(const json_t *value, uint8_t *out, size_t len)
{
	const char *text = json_string_value(value);
	return text ? input_hex(text, out, len) : -1;
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
