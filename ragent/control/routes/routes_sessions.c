/* routes_sessions.c: what can be asked about sessions, and which are meant: a query lists those that meet all its
 * criteria, and a body revokes them, or has one member that stands alone. */
#include <stdio.h>
#include <string.h>

#include "proto/cipher_suite.h"
#include "proto/sess_obj.h"
#include "ragent/control/routes/control_input.h"
#include "ragent/control/routes/control_route.h"

/* Each reads the text of one criterion; false: it is wrong. */

static bool criterion_family(const char *text, struct control_input *in)
{
	in->filter.family_id = (ProtobufCBinaryData){ FAMILY_ID_LEN, in->family_id };
	return input_hex(text, in->family_id, FAMILY_ID_LEN);
}

static bool criterion_server_name(const char *text, struct control_input *in)
{
	in->filter.server_name = (char *)text;
	return *text != '\0' && strlen(text) <= NAME_MAX_LEN;
}

/* Two members could contradict each other, so only one names the client. */
static bool criterion_client(const char *text, struct control_input *in)
{
	if (in->filter.client_address.len > 0 || !input_net(text, &in->net))
		return false;
	in->filter.client_address = (ProtobufCBinaryData){ in->net.len, in->net.bytes };
	in->filter.client_prefix = in->net.prefix;
	return true;
}

static bool criterion_client_address(const char *text, struct control_input *in)
{
	struct sockaddr_storage address;
	return address_parse_host(text, &address) == 0 && criterion_client(text, in);
}

static bool criterion_version(const char *text, struct control_input *in)
{
	in->filter.protocol_version = strcmp(text, "1.2") == 0 ? 0x0303 : strcmp(text, "1.3") == 0 ? 0x0304 : 0;
	return in->filter.protocol_version != 0;
}

static bool criterion_cipher(const char *text, struct control_input *in)
{
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);
	for (unsigned i = 0; i < count; i++)
		if (strcmp(suites[i].name, text) == 0)
			in->filter.cipher_suite = suites[i].id;
	return in->filter.cipher_suite != 0;
}

static bool criterion_min_age(const char *text, struct control_input *in)
{
	return input_seconds(text, SESSION_LIFETIME_MAX_S, &in->filter.min_age_s);
}

static bool criterion_max_age(const char *text, struct control_input *in)
{
	return input_seconds(text, SESSION_LIFETIME_MAX_S, &in->filter.max_age_s);
}

static bool criterion_certificate(const char *text, struct control_input *in)
{
	in->filter.client_certificate = (ProtobufCBinaryData){ CONTROL_CERTIFICATE_LEN, in->client_certificate };
	return input_hex(text, in->client_certificate, CONTROL_CERTIFICATE_LEN);
}

#define REVOKE(by) CSSL__LINK_REQUEST__REVOKE__WHICH_##by
#define AGE        "seconds, at most 604800", "1 to 604800 seconds"
#define SUITE      "the name of a suite such as TLS_AES_128_GCM_SHA256"
#define NET        "an address or a network such as 10.0.0.0/8"
#define IS_CLIENT  "an IP address or network, and no member 'client_address'"

/* In the order in which a query is read. */
static const struct criterion {
	const char *name;
	bool (*read)(const char *text, struct control_input *in);
	enum { FOUND_NOT_TOLD, FOUND_TOLD } found; /* in the error for a query */
	const char *expected;                      /* as argument of a query; NULL: queries have none */
	const char *expected_member;               /* as member of a body */
	Cssl__LinkRequest__Revoke__WhichCase by;   /* of a revocation whose only member it is */
} criteria[] = {
	{ "server_name", criterion_server_name, FOUND_NOT_TOLD, "a name of 1 to 255 bytes", "a name of 1 to 255 bytes",
		REVOKE(SERVER_NAME) },
	{ "version", criterion_version, FOUND_TOLD, "1.2 or 1.3", "1.2 or 1.3", REVOKE(MATCHING) },
	{ "cipher", criterion_cipher, FOUND_TOLD, SUITE, SUITE, REVOKE(MATCHING) },
	{ "min_age_s", criterion_min_age, FOUND_TOLD, AGE, REVOKE(MATCHING) },
	{ "max_age_s", criterion_max_age, FOUND_TOLD, AGE, REVOKE(MATCHING) },
	{ "family_id", criterion_family, FOUND_NOT_TOLD, "32 hexadecimal digits", "32 hexadecimal digits",
		REVOKE(FAMILY_ID) },
	{ "client_certificate", criterion_certificate, FOUND_NOT_TOLD, "64 hexadecimal digits",
		"64 hexadecimal digits, its SHA-256", REVOKE(MATCHING) },
	{ "client", criterion_client, FOUND_TOLD, NET, IS_CLIENT, REVOKE(CLIENT_ADDRESS) },
	{ "client_address", criterion_client_address, FOUND_TOLD, NULL, "an IP address, and no member 'client'",
		REVOKE(CLIENT_ADDRESS) },
};
#define CRITERIA (sizeof criteria / sizeof criteria[0])

/* --- queries --- */

static bool read_session_id(struct exchange *e, const char *what, const char *text, struct control_input *in)
{
	in->session = SESSION_GIVEN;
	return input_hex(text, in->session_id, SESSION_ID_LEN) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: found '%.80s', expected a session id: %u hexadecimal digits",
		       what, text, 2 * SESSION_ID_LEN);
}

static bool read_session(struct exchange *e, const char *segment, struct control_input *in)
{
	return read_session_id(e, "ID", segment, in);
}

static bool read_session_count(struct exchange *e, const char *segment, struct control_input *in)
{
	for (const struct criterion *c = criteria; c < criteria + CRITERIA; c++) {
		const char *text = input_argument(e, c->name);
		if (!text || c->read(text, in))
			continue;
		if (c->found == FOUND_TOLD)
			return exchange_fail(
				e, MHD_HTTP_BAD_REQUEST, "%s: found '%.80s', expected %s", c->name, text, c->expected);
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: expected %s", c->name, c->expected);
	}
	return true;
}

static bool read_sessions(struct exchange *e, const char *segment, struct control_input *in)
{
	const char *after = input_argument(e, "after");
	return read_session_count(e, segment, in) && input_limit(e, &in->limit) &&
	       (!after || read_session_id(e, "after", after, in));
}

/* --- bodies --- */

/* An age is a number, and all others are strings. NULL: the value is wrong. */
static const char *text_of(const struct criterion *c, const json_t *value, char room[static 16])
{
	const double seconds = json_number_value(value); /* 0 if it is no number; 60.0 is an integer, too */
	if (c->read != criterion_min_age && c->read != criterion_max_age)
		return json_string_value(value);
	if (!(seconds >= 1 && seconds <= SESSION_LIFETIME_MAX_S) || seconds != (uint32_t)seconds)
		return NULL;
	snprintf(room, 16, "%u", (uint32_t)seconds);
	return room;
}

static bool read_criterion(struct exchange *e, const char *name, const json_t *value, struct control_input *in)
{
	const struct criterion *c = criteria;
	char room[16];
	while (c < criteria + CRITERIA && strcmp(c->name, name) != 0)
		c++;
	if (c == criteria + CRITERIA)
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "unknown member '%.80s'", name);
	const char *text = text_of(c, value, room);
	in->revoke_by = json_object_size(in->body) > 1 ? REVOKE(MATCHING) : c->by;
	return (text && c->read(text, in)) ||
	       exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: expected %s", name, c->expected_member);
}

static bool read_alone(struct exchange *e, const char *name, const json_t *value, struct control_input *in)
{
	const bool is_all = strcmp(name, "all") == 0;
	const char *id = json_string_value(value);
	in->revoke_by = is_all ? REVOKE(ALL) : REVOKE(SESSION_ID);
	if (json_object_size(in->body) > 1)
		return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: expected no other member", name);
	return (is_all ? json_is_true(value) : id && input_hex(id, in->session_id, SESSION_ID_LEN)) ||
	       exchange_fail(
		       e, MHD_HTTP_BAD_REQUEST, "%s: expected %s", name, is_all ? "true" : "64 hexadecimal digits");
}

static bool read_revoke(struct exchange *e, const char *segment, struct control_input *in)
{
	const char *name;
	json_t *value;
	in->body = exchange_body(e);
	if (in->body && json_object_size(in->body) == 0)
		exchange_fail(e, MHD_HTTP_BAD_REQUEST,
			"expected session_id, all, or criteria: family_id, server_name, client, version, cipher, "
			"min_age_s, max_age_s, client_certificate");
	json_object_foreach(in->body, name, value)
	{
		const bool is_alone = strcmp(name, "all") == 0 || strcmp(name, "session_id") == 0;
		if (!(is_alone ? read_alone : read_criterion)(e, name, value, in))
			return false;
	}
	return json_object_size(in->body) > 0;
}

const struct route session_routes[] = {
	{ "GET", "/v1/sessions", operations_sessions,
		{ "limit", "after", "server_name", "client", "version", "cipher", "min_age_s", "max_age_s", "family_id",
			"client_certificate" },
		.read = read_sessions,
		.help = "sessions that the agents can resume, a page at a time: at most `limit` of them after the id "
			"`after`, with a server name, of a client address or network, of a TLS version, a cipher "
			"suite, an age, a family, a client certificate" },
	{ "GET", "/v1/sessions/count", operations_session_count,
		{ "server_name", "client", "version", "cipher", "min_age_s", "max_age_s", "family_id",
			"client_certificate" },
		.read = read_session_count, .help = "how many sessions there are, and on each agent" },
	{ "GET", "/v1/sessions/" ROUTE_ID, operations_session, .read = read_session,
		.help = "one session, and which agents hold it" },
	{ "POST", "/v1/sessions/revoke", operations_revoke, .read = read_revoke,
		.body = "{\"session_id\": HEX} or {\"all\": true} or criteria: {\"family_id\": HEX, \"server_name\": "
			"NAME, \"client\": ADDRESS or NETWORK, \"version\": VERSION, \"cipher\": SUITE, \"min_age_s\": "
			"N, \"max_age_s\": N, \"client_certificate\": HEX}",
		.help = "no agent resumes these sessions any more: a session with its whole family, or all sessions "
			"that meet every criterion; answers when every agent that is up has confirmed or was given up "
			"on" },
	{ .method = NULL },
};
