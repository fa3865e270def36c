/* test_control_routes.c: facts of the requests that the control socket accepts, and the operations that it asks. */
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "net/socket/address.h"
#include "tests/unit/ragent/control/control_fixture.h"
#include "tests/unit/unit.h"

#define ID_PATH   "/v1/connections/" ID_TEXT
#define MOVE_PATH ID_PATH "/move"
#define REST_PATH ID_PATH "/rest"
#define AGENT     "/v1/agents/a2"
#define REVOKE    "/v1/sessions/revoke"
#define HEX_16    "00112233445566778899aabbccddeeff"

#define LEVEL_EXPECTED "expected the member 'level': debug, info, warning, error or configured"

/* Input that is wrong: nobody is asked. */
static const struct {
	const char *method, *path, *body;
	unsigned status;
	const char *error;
} refused[] = {
	{ "GET", "/v1/status%00x", NULL, 404, "no such path: /v1/status\x1ax; GET /v1 lists them" },
	{ "GET", "/v2", NULL, 404, "no such path: /v2; GET /v1 lists them" },
	{ "GET", "/v1/", NULL, 404, "no such path: /v1/; GET /v1 lists them" },
	{ "GET", "/v1/connections/", NULL, 404, "no such path: /v1/connections/; GET /v1 lists them" },
	{ "POST", ID_PATH "/move/x", "{}", 404, "no such path: " ID_PATH "/move/x; GET /v1 lists them" },
	{ "POST", "/v1/status", "{}", 405, "POST is not for /v1/status, but GET is" },
	{ "DELETE", ID_PATH, NULL, 405, "DELETE is not for " ID_PATH ", but GET is" },
	{ "GET", MOVE_PATH, NULL, 405, "GET is not for " MOVE_PATH ", but POST is" },
	{ "GET", REVOKE, NULL, 405, "GET is not for " REVOKE ", but POST is" },
	{ "POST", "/v1/sessions/count", "{}", 405, "POST is not for /v1/sessions/count, but GET is" },
	{ "GET", "/v1/keys/rotate", NULL, 405, "GET is not for /v1/keys/rotate, but POST is" },
	{ "GET", "/v1/status?limit=1", NULL, 400, "'limit': unknown in the query" },
	{ "GET", "/v1/connections?colour=red", NULL, 400, "'colour': unknown in the query" },
	{ "GET", "/v1/connections?limit=1&limit=2", NULL, 400, "'limit': twice in the query" },
	{ "GET", "/v1/connections?limit", NULL, 400, "'limit': has no value" },
	{ "GET", "/v1/connections?limit=", NULL, 400, "'limit': has no value" },
	{ "GET", "/v1/connections?limit=0", NULL, 400, "limit: found '0', expected a number from 1 to 1000" },
	{ "GET", "/v1/connections?limit=1001", NULL, 400, "limit: found '1001', expected a number from 1 to 1000" },
	{ "GET", "/v1/connections?limit=-1", NULL, 400, "limit: found '-1', expected a number from 1 to 1000" },
	{ "GET", "/v1/connections?limit=1x", NULL, 400, "limit: found '1x', expected a number from 1 to 1000" },
	{ "GET", "/v1/connections?limit=1%000", NULL, 400,
		"limit: found '1\x1a"
		"0', expected a number from 1 to 1000" },
	{ "GET", "/v1/connections?limit=4294967297", NULL, 400,
		"limit: found '4294967297', expected a number from 1 to 1000" },
	{ "GET", "/v1/connections?after=12", NULL, 400,
		"after: found '12', expected a connection id: 32 hexadecimal digits" },
	{ "GET", "/v1/connections?client=me", NULL, 400,
		"client: found 'me', expected an address or a network such as 10.0.0.0/8" },
	{ "POST", "/v1/connections/end", "{}", 400, "say which: id, agent, listener or client" },
	{ "POST", "/v1/connections/end?id=12", "{}", 400,
		"id: found '12', expected a connection id: 32 hexadecimal digits" },
	{ "POST", "/v1/connections/end?limit=1", "{}", 400, "'limit': unknown in the query" },
	{ "POST", "/v1/connections/end?agent=a1", "{\"agent\": \"a2\"}", 400, "unknown member 'agent'" },
	{ "GET", "/v1/connections/end", NULL, 405, "GET is not for /v1/connections/end, but POST is" },
	{ "POST", "/v1/blocks", "{}", 400, "network: found '', expected an address or a network such as 10.0.0.0/8" },
	{ "POST", "/v1/blocks?network=10.0.0.1/8", "{}", 400,
		"network: found '10.0.0.1/8', expected an address or a network such as 10.0.0.0/8" },
	{ "POST", "/v1/blocks?network=10.0.0.0/8&seconds=-1", "{}", 400,
		"seconds: found '-1', expected seconds, at most 2592000" },
	{ "GET", "/v1/connections/xyz", NULL, 400, "ID: found 'xyz', expected a connection id: 32 hexadecimal digits" },
	{ "GET", ID_PATH "0", NULL, 400, "ID: found '" ID_TEXT "0', expected a connection id: 32 hexadecimal digits" },
	{ "POST", "/v1/connections/xyz/move", "{\"agent\": \"a2\"}", 400,
		"ID: found 'xyz', expected a connection id: 32 hexadecimal digits" },
	{ "POST", MOVE_PATH, NULL, 400, "expected the member 'agent', the name of an agent" },
	{ "POST", MOVE_PATH, "{}", 400, "expected the member 'agent', the name of an agent" },
	{ "POST", MOVE_PATH, "{\"agent\": 2}", 400, "expected the member 'agent', the name of an agent" },
	{ "POST", MOVE_PATH, "{\"agent\": \"\"}", 400, "expected the member 'agent', the name of an agent" },
	{ "POST", MOVE_PATH, "{\"agent\": \"a2\", \"now\": true}", 400, "unknown member 'now'" },
	{ "POST", MOVE_PATH, "[]", 400, "the body is not a JSON object" },
	{ "POST", MOVE_PATH, "{\"agent\": \"a2\"", 400,
		"the body is not JSON: line 1 column 14: '}' expected near end of file" },
	{ "POST", MOVE_PATH, "{\"agent\": \"a1\", \"agent\": \"a2\"}", 400,
		"the body is not JSON: line 1 column 23: duplicate object key near '\"agent\"'" },
	{ "POST", REST_PATH, "{\"agent\": \"a2\"}", 400, "unknown member 'agent'" },
	{ "POST", "/v1/connections/xyz/rest", NULL, 400,
		"ID: found 'xyz', expected a connection id: 32 hexadecimal digits" },
	{ "GET", "/v1/agents/", NULL, 404, "no such path: /v1/agents/; GET /v1 lists them" },
	{ "GET", AGENT "/drain", NULL, 405, "GET is not for " AGENT "/drain, but POST is" },
	{ "POST", AGENT, "{}", 405, "POST is not for " AGENT ", but GET is" },
	{ "POST", AGENT "/drain", "{\"timeout\": 1}", 400, "unknown member 'timeout'" },
	{ "POST", AGENT "/drain", "{\"timeout_ms\": 0}", 400, "timeout_ms: expected a number from 1 to 86400000" },
	{ "POST", AGENT "/drain", "{\"timeout_ms\": 86400001}", 400,
		"timeout_ms: expected a number from 1 to 86400000" },
	{ "POST", AGENT "/drain", "{\"timeout_ms\": 1.5}", 400, "timeout_ms: expected a number from 1 to 86400000" },
	{ "POST", AGENT "/drain", "{\"timeout_ms\": \"1s\"}", 400, "timeout_ms: expected a number from 1 to 86400000" },
	{ "POST", AGENT "/undrain", "{\"timeout_ms\": 1}", 400, "unknown member 'timeout_ms'" },
	{ "POST", AGENT "/weight", "{}", 400, "expected the member 'weight', a number from 0.01 to 1000" },
	{ "POST", AGENT "/weight", "{\"weight\": 0}", 400, "expected the member 'weight', a number from 0.01 to 1000" },
	{ "POST", AGENT "/weight", "{\"weight\": 1000.5}", 400,
		"expected the member 'weight', a number from 0.01 to 1000" },
	{ "POST", REVOKE, NULL, 400,
		"expected session_id, all, or criteria: family_id, server_name, client, version, cipher, min_age_s, "
		"max_age_s, client_certificate" },
	{ "POST", REVOKE, "{\"all\": true, \"server_name\": \"x\"}", 400, "all: expected no other member" },
	{ "POST", REVOKE, "{\"server_name\": \"x\", \"session_id\": \"" HEX_16 HEX_16 "\"}", 400,
		"session_id: expected no other member" },
	{ "POST", REVOKE, "{\"version\": \"1.1\"}", 400, "version: expected 1.2 or 1.3" },
	{ "POST", REVOKE, "{\"cipher\": \"RC4\"}", 400,
		"cipher: expected the name of a suite such as TLS_AES_128_GCM_SHA256" },
	{ "POST", REVOKE, "{\"min_age_s\": 0}", 400, "min_age_s: expected 1 to 604800 seconds" },
	{ "POST", REVOKE, "{\"max_age_s\": 7.5}", 400, "max_age_s: expected 1 to 604800 seconds" },
	{ "POST", REVOKE, "{\"max_age_s\": \"7\"}", 400, "max_age_s: expected 1 to 604800 seconds" },
	{ "POST", REVOKE, "{\"client_certificate\": \"" HEX_16 "\"}", 400,
		"client_certificate: expected 64 hexadecimal digits, its SHA-256" },
	{ "POST", REVOKE, "{\"client\": \"10.0.0.0/8\", \"client_address\": \"10.1.2.3\"}", 400,
		"client_address: expected an IP address, and no member 'client'" },
	{ "POST", REVOKE, "{\"everything\": true}", 400, "unknown member 'everything'" },
	{ "POST", REVOKE, "{\"all\": false}", 400, "all: expected true" },
	{ "POST", REVOKE, "{\"session_id\": \"" HEX_16 "\"}", 400, "session_id: expected 64 hexadecimal digits" },
	{ "POST", REVOKE, "{\"session_id\": \"" HEX_16 HEX_16 "00\"}", 400,
		"session_id: expected 64 hexadecimal digits" },
	{ "POST", REVOKE, "{\"family_id\": \"x0112233445566778899aabbccddeeff\"}", 400,
		"family_id: expected 32 hexadecimal digits" },
	{ "POST", REVOKE, "{\"family_id\": 7}", 400, "family_id: expected 32 hexadecimal digits" },
	{ "POST", REVOKE, "{\"server_name\": \"\"}", 400, "server_name: expected a name of 1 to 255 bytes" },
	{ "POST", REVOKE, "{\"client_address\": \"10.0.0.0/8\"}", 400,
		"client_address: expected an IP address, and no member 'client'" },
	{ "POST", "/v1/keys/rotate", "{\"agent\": \"a1\"}", 400, "unknown member 'agent'" },
	{ "PUT", "/v1/log-level", NULL, 400, LEVEL_EXPECTED },
	{ "PUT", "/v1/log-level", "{\"level\": \"loud\"}", 400, LEVEL_EXPECTED },
	{ "PUT", "/v1/log-level", "{\"level\": 7}", 400, LEVEL_EXPECTED },
	{ "PUT", "/v1/log-level", "{\"level\": \"info\", \"agent\": \"a1\"}", 400, "unknown member 'agent'" },
	{ "PUT", "/v1/log-level", "{\"level\": \"info\", \"node\": 1}", 400,
		"node: expected the name of RAgent or of an agent" },
	{ "POST", "/v1/log-level", "{}", 405, "POST is not for /v1/log-level, but GET, PUT is" },
	{ "POST", "/v1/reload", "nonsense", 400,
		"the body is not JSON: line 1 column 8: '[' or '{' expected near 'nonsense'" },
};

START_TEST(wrong_input_is_told_and_nobody_is_asked)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct reply r = client_get(refused[i].method, refused[i].path, refused[i].body);
		ck_assert_str_eq(r.error, refused[i].error);
		ck_assert_uint_eq(r.status, refused[i].status);
		ck_assert_str_eq(r.type, "application/json");
		ck_assert_uint_eq(asked.calls, 0);
		reply_free(&r);
	}
}
END_TEST

START_TEST(a_wrong_method_is_answered_with_the_right_one)
{
	struct reply r = client_get("PUT", "/v1/reload", "{}");
	ck_assert_uint_eq(r.status, 405);
	ck_assert_str_eq(r.allow, "POST");
	reply_free(&r);
	r = client_get("POST", "/v1/connections", "{}");
	ck_assert_str_eq(r.allow, "GET");
	reply_free(&r);
}
END_TEST

/* Each operation fails. */
static void ask(const char *method, const char *path, const char *body, const char *what)
{
	int fd = client_ask(method, path, body);
	ck_assert_str_eq(asked.what, what);
	request_fail(asked.request, MHD_HTTP_CONFLICT, "enough");
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 409);
	ck_assert_str_eq(r.error, "enough");
	reply_free(&r);
	close(fd);
}

START_TEST(each_route_asks_its_question)
{
	ask("GET", "/v1/status", NULL, "status");
	ask("GET", "/v1/listeners", NULL, "listeners");
	ask("GET", "/v1/counters", NULL, "counters");
	ask("GET", "/v1/mail", NULL, "mail");
	ask("GET", "/v1/connections", NULL, "connections");
	ask("GET", ID_PATH, NULL, "connections");
	ck_assert_int_eq(asked.in.query.ids, QUERY_ONE);
	ask("POST", MOVE_PATH, "{\"agent\": \"a2\"}", "move");
	ask("POST", REST_PATH, NULL, "rest");
	ask("GET", "/readyz", NULL, "ready");
	ask("GET", "/v1/blocks", NULL, "blocks");
	ask("GET", "/v1/agents", NULL, "agents");
	ask("GET", AGENT, NULL, "agent");
	ask("POST", AGENT "/drain", NULL, "drain");
	ask("POST", AGENT "/undrain", NULL, "undrain");
	ask("POST", AGENT "/weight", "{\"weight\": 1}", "weight");
	ask("POST", REVOKE, "{\"all\": true}", "revoke");
	ask("POST", "/v1/reload", NULL, "reload");
	ask("POST", "/v1/reload", "{}", "reload");
}
END_TEST

START_TEST(a_listing_without_query_is_the_first_page)
{
	ask("GET", "/v1/connections", NULL, "connections");
	ck_assert_uint_eq(asked.in.query.limit, CONTROL_LIMIT_DEFAULT);
	ck_assert_int_eq(asked.in.query.ids, QUERY_ALL);
	ck_assert_ptr_null(asked.in.query.agent);
	ck_assert_ptr_null(asked.in.query.listener);
	ck_assert_uint_eq(asked.in.query.client.len, 0);
}
END_TEST

START_TEST(a_listings_query_arrives)
{
	ask("GET", "/v1/connections?limit=7&after=" ID_TEXT "&agent=a%32&listener=sf&client=10.0.0.0/8", NULL,
		"connections");
	ck_assert_uint_eq(asked.in.query.limit, 7);
	ck_assert_int_eq(asked.in.query.ids, QUERY_BEHIND);
	ck_assert_uint_eq(asked.in.query.id.bytes[15], 0x0f);
	ck_assert_str_eq(asked.query_agent, "a2");
	ck_assert_str_eq(asked.listener, "sf");
	ck_assert_uint_eq(asked.in.query.client.prefix, 8);
}
END_TEST

START_TEST(one_address_is_a_network_of_one)
{
	struct sockaddr_storage same, other;
	ck_assert_int_eq(address_parse_host("2001:db8::1", &same), 0);
	ck_assert_int_eq(address_parse_host("2001:db8::2", &other), 0);
	ask("GET", "/v1/connections?client=2001:db8::1", NULL, "connections");
	ck_assert_uint_eq(asked.in.query.client.prefix, 128);
	ck_assert_int_eq(address_net_has(&asked.in.query.client, (struct sockaddr *)&same), 1);
	ck_assert_int_eq(address_net_has(&asked.in.query.client, (struct sockaddr *)&other), 0);
}
END_TEST

START_TEST(who_ends_connections_says_which)
{
	ask("POST", "/v1/connections/end?id=" ID_TEXT, "{}", "end");
	ck_assert_int_eq(asked.in.query.ids, QUERY_ONE);
	ck_assert_uint_eq(asked.in.query.id.bytes[15], 0x0f);
	ask("POST", "/v1/connections/end?agent=a1&listener=sf&client=10.0.0.0/8", NULL, "end");
	ask("POST", "/v1/connections/end?agent=a1&client=10.0.0.0/8", "{}", "end");
	ck_assert_str_eq(asked.query_agent, "a1");
	ck_assert_ptr_null(asked.in.query.listener);
	ck_assert_int_eq(asked.in.query.ids, QUERY_ALL);
	ck_assert_uint_eq(asked.in.query.client.prefix, 8);
}
END_TEST

START_TEST(a_block_has_an_end_or_none)
{
	static const struct {
		const char *path;
		unsigned prefix;
		uint32_t for_s;
	} orders[] = { { "/v1/blocks?network=192.0.2.7&seconds=60", 32, 60 },
		{ "/v1/blocks?network=2001:db8::/32&seconds=0", 32, 0 },
		{ "/v1/blocks?network=192.0.2.0/24", 24, UINT32_MAX } };

	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		ask("POST", orders[i].path, "{}", "block");
		ck_assert_uint_eq(asked.in.net.prefix, orders[i].prefix);
		ck_assert_uint_eq(asked.in.for_s, orders[i].for_s);
	}
}
END_TEST

START_TEST(a_process_that_answers_lives)
{
	struct reply r = client_get("GET", "/healthz", NULL);
	ck_assert_uint_eq(r.status, 200);
	ck_assert_uint_eq(asked.calls, 0);
	reply_free(&r);
}
END_TEST

START_TEST(a_move_arrives)
{
	ask("POST", MOVE_PATH, "{\"agent\": \"a2\"}", "move");
	ck_assert_uint_eq(asked.in.query.id.bytes[1], 0x01);
	ck_assert_str_eq(asked.agent, "a2");
}
END_TEST

START_TEST(orders_for_an_agent_arrive)
{
	ask("POST", REST_PATH, "{}", "rest");
	ck_assert_uint_eq(asked.in.query.id.bytes[1], 0x01);
	ask("GET", AGENT, NULL, "agent");
	ck_assert_str_eq(asked.agent, "a2");
	ask("POST", AGENT "/drain", "{\"timeout_ms\": 1500}", "drain");
	ck_assert_str_eq(asked.agent, "a2");
	ck_assert_uint_eq(asked.in.timeout_ms, 1500);
	ask("POST", AGENT "/drain", "{}", "drain");
	ck_assert_uint_eq(asked.in.timeout_ms, 0);
	ask("POST", "/v1/agents/a-name.of_63-bytes-" HEX_16 "-45678901234/undrain", "{}", "undrain");
	ck_assert_uint_eq(strlen(asked.agent), 63);
	ask("POST", AGENT "/weight", "{\"weight\": 2.5}", "weight");
	ck_assert_double_eq(asked.in.weight, 2.5);
	ask("POST", AGENT "/weight", "{\"weight\": 3}", "weight");
	ck_assert_double_eq(asked.in.weight, 3);
}
END_TEST

#define REVOKES_BY(by) ck_assert_int_eq(asked.in.revoke_by, CSSL__LINK_REQUEST__REVOKE__WHICH_##by)

START_TEST(revocations_arrive)
{
	ask("POST", REVOKE, "{\"session_id\": \"" HEX_16 HEX_16 "\"}", "revoke");
	REVOKES_BY(SESSION_ID);
	ck_assert_uint_eq(asked.in.session_id[31], 0xff);
	ask("POST", REVOKE, "{\"family_id\": \"" HEX_16 "\"}", "revoke");
	REVOKES_BY(FAMILY_ID);
	ck_assert_uint_eq(asked.in.filter.family_id.len, FAMILY_ID_LEN);
	ck_assert_uint_eq(asked.in.filter.family_id.data[15], 0xff);
	ask("POST", REVOKE, "{\"server_name\": \"shop.example\"}", "revoke");
	REVOKES_BY(SERVER_NAME);
	ck_assert_str_eq(asked.server_name, "shop.example");
	ask("POST", REVOKE, "{\"client_address\": \"::ffff:10.1.2.3\"}", "revoke");
	REVOKES_BY(CLIENT_ADDRESS);
	ck_assert_uint_eq(asked.in.filter.client_address.len, 4);
	ck_assert_uint_eq(asked.in.filter.client_address.data[3], 3);
	ask("POST", REVOKE, "{\"all\": true}", "revoke");
	REVOKES_BY(ALL);
}
END_TEST

START_TEST(criteria_of_a_revocation_arrive_together)
{
	const Cssl__SessionFilter *q = &asked.in.filter;

	ask("POST", REVOKE, "{\"client\": \"10.1.0.0/16\"}", "revoke");
	ck_assert_uint_eq(q->client_prefix, 16);
	ask("POST", REVOKE, "{\"client\": \"10.1.2.3\"}", "revoke");
	REVOKES_BY(CLIENT_ADDRESS);
	ask("POST", REVOKE,
		"{\"server_name\": \"shop.example\", \"client\": \"10.1.2.3\", \"version\": \"1.2\", \"cipher\": "
		"\"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\", \"min_age_s\": 60.0, \"max_age_s\": 604800, "
		"\"client_certificate\": \"" HEX_16 HEX_16 "\", \"family_id\": \"" HEX_16 "\"}",
		"revoke");
	REVOKES_BY(MATCHING);
	ck_assert_str_eq(asked.server_name, "shop.example");
	ck_assert_uint_eq(q->client_prefix, 32);
	ck_assert_uint_eq(q->protocol_version, 0x0303);
	ck_assert_uint_eq(q->cipher_suite, 0xc02f);
	ck_assert_uint_eq(q->min_age_s, 60);
	ck_assert_uint_eq(q->max_age_s, 604800);
	ck_assert_uint_eq(q->client_certificate.data[31], 0xff);
	ck_assert_uint_eq(q->family_id.data[1], 0x11);
}
END_TEST

START_TEST(the_index_has_every_route_and_its_meaning)
{
	struct reply r = client_get("GET", "/v1", NULL);
	json_t *routes = json_object_get(r.body, "routes"), *route;
	size_t i;
	ck_assert_uint_eq(json_array_size(routes), 31);
	json_array_foreach(routes, i, route)
	{
		ck_assert_int_eq(json_string_value(json_object_get(route, "path"))[0], '/');
		ck_assert_uint_gt(json_string_length(json_object_get(route, "help")), 0);
	}
	reply_free(&r);
}
END_TEST

UNIT(control_routes)
{
	const TTest *const facts[] = {
		wrong_input_is_told_and_nobody_is_asked,
		a_wrong_method_is_answered_with_the_right_one,
		each_route_asks_its_question,
		a_listing_without_query_is_the_first_page,
		a_listings_query_arrives,
		one_address_is_a_network_of_one,
		who_ends_connections_says_which,
		a_block_has_an_end_or_none,
		a_process_that_answers_lives,
		a_move_arrives,
		orders_for_an_agent_arrive,
		revocations_arrive,
		criteria_of_a_revocation_arrive_together,
		the_index_has_every_route_and_its_meaning,
	};

	return control_facts_run("control routes", setup_control, facts, sizeof facts / sizeof facts[0]);
}
