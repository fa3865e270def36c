/* test_control_routes.c: facts of the requests that the control socket accepts, its calls to the provider, and its
 * answers. */
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "net/address.h"
#include "tests/unit/ragent/control/control_fixture.h"

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

/* Everything the provider is asked is left unanswered: the end of the control answers. */
static void ask(const char *method, const char *path, const char *body, const char *what)
{
	int fd = client_ask(method, path, body);
	ck_assert_str_eq(asked.what, what);
	control_fail(asked.request, CONTROL_CONFLICT, "enough");
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
	ask("GET", "/v1/connections", NULL, "connections");
	ask("GET", ID_PATH, NULL, "connection");
	ask("POST", MOVE_PATH, "{\"agent\": \"a2\"}", "move");
	ask("POST", REST_PATH, NULL, "rest");
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
	ck_assert_uint_eq(asked.query.limit, CONTROL_LIMIT_DEFAULT);
	ck_assert_ptr_null(asked.query.after);
	ck_assert_ptr_null(asked.query.agent);
	ck_assert_ptr_null(asked.query.listener);
	ck_assert_ptr_null(asked.query.client);
}
END_TEST

START_TEST(a_listings_query_arrives)
{
	ask("GET", "/v1/connections?limit=7&after=" ID_TEXT "&agent=a%32&listener=sf&client=10.0.0.0/8", NULL,
		"connections");
	ck_assert_uint_eq(asked.query.limit, 7);
	ck_assert_uint_eq(asked.after.bytes[15], 0x0f);
	ck_assert_str_eq(asked.query.agent, "a2");
	ck_assert_str_eq(asked.query.listener, "sf");
	ck_assert_uint_eq(asked.client.prefix, 8);
}
END_TEST

START_TEST(one_address_is_a_network_of_one)
{
	struct sockaddr_storage same, other;
	ck_assert_int_eq(address_parse_host("2001:db8::1", &same), 0);
	ck_assert_int_eq(address_parse_host("2001:db8::2", &other), 0);
	ask("GET", "/v1/connections?client=2001:db8::1", NULL, "connections");
	ck_assert_uint_eq(asked.client.prefix, 128);
	ck_assert_int_eq(address_net_has(&asked.client, (struct sockaddr *)&same), 1);
	ck_assert_int_eq(address_net_has(&asked.client, (struct sockaddr *)&other), 0);
}
END_TEST

START_TEST(a_move_arrives)
{
	ask("POST", MOVE_PATH, "{\"agent\": \"a2\"}", "move");
	ck_assert_uint_eq(asked.id.bytes[1], 0x01);
	ck_assert_str_eq(asked.agent, "a2");
}
END_TEST

START_TEST(what_is_done_to_an_agent_arrives)
{
	ask("POST", REST_PATH, "{}", "rest");
	ck_assert_uint_eq(asked.id.bytes[1], 0x01);
	ask("GET", AGENT, NULL, "agent");
	ck_assert_str_eq(asked.agent, "a2");
	ask("POST", AGENT "/drain", "{\"timeout_ms\": 1500}", "drain");
	ck_assert_str_eq(asked.agent, "a2");
	ck_assert_uint_eq(asked.timeout_ms, 1500);
	ask("POST", AGENT "/drain", "{}", "drain");
	ck_assert_uint_eq(asked.timeout_ms, 0);
	ask("POST", "/v1/agents/a-name.of_63-bytes-" HEX_16 "-45678901234/undrain", "{}", "undrain");
	ck_assert_uint_eq(strlen(asked.agent), 63);
	ask("POST", AGENT "/weight", "{\"weight\": 2.5}", "weight");
	ck_assert_double_eq(asked.weight, 2.5);
	ask("POST", AGENT "/weight", "{\"weight\": 3}", "weight");
	ck_assert_double_eq(asked.weight, 3);
}
END_TEST

START_TEST(revocations_arrive)
{
	ask("POST", REVOKE, "{\"session_id\": \"" HEX_16 HEX_16 "\"}", "revoke");
	ck_assert_int_eq(asked.revocation.which, CONTROL_REVOKE_SESSION);
	ck_assert_uint_eq(asked.revocation.id_len, 32);
	ck_assert_uint_eq(asked.revocation.id[31], 0xff);
	ask("POST", REVOKE, "{\"family_id\": \"" HEX_16 "\"}", "revoke");
	ck_assert_int_eq(asked.revocation.which, CONTROL_REVOKE_FAMILY);
	ck_assert_uint_eq(asked.revocation.id_len, 16);
	ask("POST", REVOKE, "{\"server_name\": \"shop.example\"}", "revoke");
	ck_assert_int_eq(asked.revocation.which, CONTROL_REVOKE_SERVER_NAME);
	ck_assert_str_eq(asked.revocation.server_name, "shop.example");
	ask("POST", REVOKE, "{\"client_address\": \"::ffff:10.1.2.3\"}", "revoke");
	ck_assert_int_eq(asked.revocation.which, CONTROL_REVOKE_CLIENT);
	ck_assert_uint_eq(asked.revocation.client.len, 4);
	ck_assert_uint_eq(asked.revocation.client.bytes[3], 3);
	ask("POST", REVOKE, "{\"all\": true}", "revoke");
	ck_assert_int_eq(asked.revocation.which, CONTROL_REVOKE_ALL);
}
END_TEST

START_TEST(criteria_of_a_revocation_arrive_together)
{
	const struct control_session_query *q = &asked.revocation.matching;

	ask("POST", REVOKE, "{\"client\": \"10.1.0.0/16\"}", "revoke");
	ck_assert_int_eq(asked.revocation.which, CONTROL_REVOKE_MATCHING);
	ck_assert_uint_eq(q->client.prefix, 16);
	ask("POST", REVOKE, "{\"client\": \"10.1.2.3\"}", "revoke"); /* as the release before understands it */
	ck_assert_int_eq(asked.revocation.which, CONTROL_REVOKE_CLIENT);
	ask("POST", REVOKE,
		"{\"server_name\": \"shop.example\", \"client\": \"10.1.2.3\", \"version\": \"1.2\", \"cipher\": "
		"\"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\", \"min_age_s\": 60.0, \"max_age_s\": 604800, "
		"\"client_certificate\": \"" HEX_16 HEX_16 "\", \"family_id\": \"" HEX_16 "\"}",
		"revoke");
	ck_assert_int_eq(asked.revocation.which, CONTROL_REVOKE_MATCHING);
	ck_assert_str_eq(q->server_name, "shop.example");
	ck_assert_uint_eq(q->client.prefix, 32);
	ck_assert_uint_eq(q->protocol_version, 0x0303);
	ck_assert_uint_eq(q->cipher_suite, 0xc02f);
	ck_assert_uint_eq(q->min_age_s, 60);
	ck_assert_uint_eq(q->max_age_s, 604800);
	ck_assert_uint_eq(q->client_certificate[31], 0xff);
	ck_assert_ptr_nonnull(q->family_id);
	ck_assert_uint_eq(asked.revocation.id[1], 0x11);
}
END_TEST

/* Answers. Send the request, answer with @answer, compare the body. */
static void check_body(const char *method, const char *path, const char *body,
	void (*answer)(struct control_request *r), unsigned status, const char *expected)
{
	json_error_t error;
	int fd = client_ask(method, path, body);
	answer(asked.request);
	struct reply r = client_read(fd);
	json_t *wanted = json_loads(expected, 0, &error);
	ck_assert_msg(wanted != NULL, "%s", error.text);
	char *got = json_dumps(r.body, JSON_INDENT(1));
	ck_assert_msg(json_equal(r.body, wanted), "%s", got);
	ck_assert_uint_eq(r.status, status);
	free(got);
	json_decref(wanted);
	reply_free(&r);
	close(fd);
}

static void answer_status(struct control_request *r)
{
	static const char *const addresses[] = { "127.0.0.1:443", "[::1]:443" };
	const struct control_listener listener = { "sf", "sf", "on", "round-robin", "local", addresses, 2, 5 };
	const struct control_agent agent = { "a1", "up", 2, 4, 5, 1, 1ull << 40, 250, 900 };
	control_answer_status(r, &(struct control_status){ "r1", "0.1.0", "serving", 60, 2, 5, &listener, 1, &agent, 1,
					 0, { 3, 2, 1 }, { 40, 2, 5, 1, 90000, 30000 } });
}

START_TEST(the_status_is_told)
{
	check_body("GET", "/v1/status", NULL, answer_status, 200,
		"{\"name\": \"r1\", \"version\": \"0.1.0\", \"state\": \"serving\", \"uptime_s\": 60,"
		" \"deaths\": {\"killed\": 3, \"crashed\": 2, \"hung\": 1},"
		" \"at_deaths\": {\"went_on\": 40, \"began_anew\": 2, \"reset\": 5, \"given_up\": 1,"
		" \"pause_us\": 90000, \"last_pause_us\": 30000}, \"workers\": 2,"
		" \"connections\": 5, \"listeners\": [{\"name\": \"sf\", \"mode\": \"sf\", \"migration\": \"on\","
		" \"handshake\": \"round-robin\", \"resumption\": \"local\", \"addresses\": [\"127.0.0.1:443\", "
		"\"[::1]:443\"],"
		" \"connections\": 5}], \"agents\": [{\"name\": \"a1\", \"state\": \"up\", \"links_up\": 2, \"links\": "
		"4,"
		" \"connections\": 5, \"handshakes\": 1, \"sessions\": 1099511627776, \"busy_permille\": 250,"
		" \"handshake_us\": 900}]}");
}
END_TEST

static void answer_listeners(struct control_request *r)
{
	static const char *const addresses[] = { "127.0.0.1:443" };
	static const struct control_counter counters[] = { { "accepted", .value = 7 }, { "refused", .value = 2 } };
	const struct control_listener all[] = {
		{ "sf", "sf", "on", "round-robin", "local", addresses, 1, 5, "http", "web", "open", counters, 2 },
	};
	control_answer_listeners(r, all, 1);
}

START_TEST(listeners_are_told_with_their_counters)
{
	check_body("GET", "/v1/listeners", NULL, answer_listeners, 200,
		"{\"listeners\": [{\"name\": \"sf\", \"mode\": \"sf\", \"migration\": \"on\", \"handshake\": "
		"\"round-robin\", \"resumption\": \"local\", \"addresses\": [\"127.0.0.1:443\"], \"connections\": 5, "
		"\"service\": \"http\", \"backend\": \"web\", \"state\": \"open\", \"accepted\": 7, \"refused\": 2}]}");
}
END_TEST

static void answer_counters(struct control_request *r)
{
	static const struct control_counter own[] = { { "accepted", .value = 7 }, { "moves_done", .value = 0 } },
					    of_a1[] = { { "sealed", .value = 9 } },
					    seen[] = { { "latency_move_1ms", .value = 4 } };
	const struct control_counters sets[] = { { NULL, NULL, own, 2 }, { "a1", NULL, of_a1, 1, seen, 1 },
		{ "a2", "no answer", NULL, 0, seen, 1 } };
	control_answer_counters(r, sets, 3);
}

START_TEST(log_levels_are_told_of_all_who_answered)
{
	static const struct control_log_level levels[] = { { "r1", "info", "info", NULL },
		{ "a1", "debug", "info", NULL }, { "a2", NULL, NULL, "not up" } };
	int fd = client_ask("GET", "/v1/log-level", NULL);
	ck_assert_str_eq(asked.what, "log level");
	ck_assert_str_eq(asked.level, "");
	control_answer_log_levels(asked.request, levels, 3);
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 200);
	ck_assert_str_eq(
		json_string_value(json_object_get(json_object_get(json_object_get(r.body, "levels"), "a1"), "level")),
		"debug");
	reply_free(&r);
}
END_TEST

START_TEST(a_log_level_that_somebody_did_not_take_is_an_error)
{
	static const struct control_log_level levels[] = { { "a2", NULL, NULL, "not up" } };
	int fd = client_ask("PUT", "/v1/log-level", "{\"level\": \"debug\", \"node\": \"a2\"}");
	ck_assert_str_eq(asked.agent, "a2");
	ck_assert_str_eq(asked.level, "debug");
	control_answer_log_levels(asked.request, levels, 1);
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 503);
	ck_assert_str_eq(r.error, "not done by a2");
	reply_free(&r);
}
END_TEST

START_TEST(counters_of_both_tiers_are_told)
{
	check_body("GET", "/v1/counters", NULL, answer_counters, 200,
		"{\"ragent\": {\"accepted\": 7, \"moves_done\": 0},"
		" \"agents\": {\"a1\": {\"sealed\": 9}, \"a2\": {\"error\": \"no answer\"}},"
		" \"of_agents\": {\"a1\": {\"latency_move_1ms\": 4}, \"a2\": {\"latency_move_1ms\": 4}}}");
}
END_TEST

static struct connection_description example(void)
{
	struct connection_description c = { .listener = "sf",
		.state = "owned",
		.owner = "a2",
		.handshake_agent = "a1",
		.affinity_agent = "a2",
		.epoch = 2,
		.moves = 1,
		.age_ms = 1000,
		.idle_ms = 10,
		.client_records = 3,
		.client_bytes = 600,
		.server_records = 4,
		.server_bytes = 70000,
		.read_generation = 1,
		.protocol_version = 0x0304,
		.cipher_suite = 0x1301,
		.handshake = HANDSHAKE_RESUMED,
		.server_name = "shop.example",
		.alpn = "h2",
		.session_id_len = 32,
		.family_id = { 1 } };
	ck_assert_int_eq(address_parse("10.1.2.3:5000", &c.client), 0);
	ck_assert_int_eq(address_parse("127.0.0.1:443", &c.server), 0);
	for (uint8_t i = 0; i < 16; i++)
		c.id.bytes[i] = i;
	return c;
}

#define EXAMPLE_JSON                                                                                                   \
	"{\"id\": \"" ID_TEXT                                                                                          \
	"\", \"client\": \"10.1.2.3:5000\", \"server\": \"127.0.0.1:443\", \"listener\": \"sf\","                      \
	" \"state\": \"owned\", \"owner\": \"a2\", \"handshake_agent\": \"a1\", \"affinity_agent\": \"a2\", "          \
	"\"preamble_agent\": null, \"epoch\": 2,"                                                                      \
	" \"moves\": 1, \"age_ms\": 1000, \"idle_ms\": 10, \"client_records\": 3, \"client_bytes\": 600,"              \
	" \"server_records\": 4, \"server_bytes\": 70000, \"read_generation\": 1, \"write_generation\": 0,"            \
	" \"tls\": {\"version\": \"1.3\", \"cipher_suite\": \"TLS_AES_128_GCM_SHA256\", \"resumed\": true,"            \
	" \"server_name\": \"shop.example\", \"alpn\": \"h2\","                                                        \
	" \"session_id\": \"0000000000000000000000000000000000000000000000000000000000000000\","                       \
	" \"family_id\": \"01000000000000000000000000000000\"}}"

static void answer_page(struct control_request *r)
{
	struct connection_description c = example();
	control_answer_connections(r, &c, 1, CONTROL_MORE);
}

static void answer_last_page(struct control_request *r)
{
	struct connection_description c = example();
	control_answer_connections(r, &c, 1, CONTROL_LAST_PAGE);
}

static void answer_nothing(struct control_request *r)
{
	control_answer_connections(r, NULL, 0, CONTROL_LAST_PAGE);
}

START_TEST(a_page_says_where_the_next_begins)
{
	check_body("GET", "/v1/connections", NULL, answer_page, 200,
		"{\"connections\": [" EXAMPLE_JSON "], \"next\": \"" ID_TEXT "\"}");
	check_body("GET", "/v1/connections", NULL, answer_last_page, 200,
		"{\"connections\": [" EXAMPLE_JSON "], \"next\": null}");
	check_body("GET", "/v1/connections", NULL, answer_nothing, 200, "{\"connections\": [], \"next\": null}");
}
END_TEST

static void answer_with_history(struct control_request *r)
{
	static const struct ownership_description history[] = { { "a1", "handshake", 1, 900, 0 },
		{ NULL, "rest", 1, 500, 40 } };
	struct connection_description c = example();
	c.history = history;
	c.history_count = 2;
	control_answer_connections(r, &c, 1, CONTROL_LAST_PAGE);
}

START_TEST(one_connection_is_told_without_a_list_but_with_its_owners)
{
	static const char history[] =
		", \"history\": [{\"agent\": \"a1\", \"cause\": \"handshake\", \"epoch\": 1, \"ago_ms\": 900, "
		"\"pause_us\": 0},"
		" {\"agent\": null, \"cause\": \"rest\", \"epoch\": 1, \"ago_ms\": 500, \"pause_us\": 40}]}";
	char expected[4096];
	snprintf(expected, sizeof expected, "%.*s%s", (int)strlen(EXAMPLE_JSON) - 1, EXAMPLE_JSON, history);
	check_body("GET", ID_PATH, NULL, answer_with_history, 200, expected);
}
END_TEST

static void answer_unfinished(struct control_request *r)
{
	control_answer_connections(r, &(struct connection_description){ .state = "hello" }, 1, CONTROL_LAST_PAGE);
}

START_TEST(what_is_not_known_yet_is_null)
{
	check_body("GET", ID_PATH, NULL, answer_unfinished, 200,
		"{\"id\": \"00000000000000000000000000000000\", \"client\": null, \"server\": null, \"listener\": null,"
		" \"state\": \"hello\", \"owner\": null, \"handshake_agent\": null, \"affinity_agent\": null, "
		"\"preamble_agent\": null, \"epoch\": 0,"
		" \"moves\": 0, \"age_ms\": 0, \"idle_ms\": 0, \"client_records\": 0, \"client_bytes\": 0,"
		" \"server_records\": 0, \"server_bytes\": 0, \"read_generation\": 0, \"write_generation\": 0, "
		"\"tls\": null, \"history\": []}");
}
END_TEST

static void answer_odd_name(struct control_request *r)
{
	struct connection_description c = example();
	c.server_name = "sh\xff\xfe.example";
	control_answer_connections(r, &c, 1, CONTROL_LAST_PAGE);
}

/* One client with such a name must not hide all others. */
START_TEST(a_server_name_that_is_no_utf8_is_told_all_the_same)
{
	int fd = client_ask("GET", ID_PATH, NULL);
	answer_odd_name(asked.request);
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 200);
	ck_assert_str_eq(
		json_string_value(json_object_get(json_object_get(r.body, "tls"), "server_name")), "sh??.example");
	reply_free(&r);
	close(fd);
}
END_TEST

static void answer_move(struct control_request *r)
{
	control_answer_move(r, &(struct control_moved){ "a1", "a2", 3, 1500 });
}

START_TEST(a_move_is_told)
{
	check_body("POST", MOVE_PATH, "{\"agent\": \"a2\"}", answer_move, 200,
		"{\"from\": \"a1\", \"to\": \"a2\", \"epoch\": 3, \"pause_us\": 1500}");
}
END_TEST

static void answer_rest(struct control_request *r)
{
	control_answer_rest(r, &(struct control_rested){ "a1", 3 });
}

START_TEST(a_rest_is_told)
{
	check_body("POST", REST_PATH, "{}", answer_rest, 200, "{\"from\": \"a1\", \"epoch\": 3}");
}
END_TEST

#define AGENT_JSON                                                                                                     \
	"{\"name\": \"a2\", \"state\": \"draining\", \"version\": \"1.2\", \"clock_offset_ms\": -3, \"weight\": 1.5, " \
	"\"links\": {\"up\": 2, \"suspect\": 1, "                                                                      \
	"\"total\": 4}, \"connections\": 5, \"handshakes\": 1, \"sessions\": 1099511627776, \"busy_permille\": 250, "  \
	"\"handshake_us\": 900, \"drain\": {\"state\": \"draining\", \"reason\": \"operator\", \"elapsed_ms\": 1200, " \
	"\"total\": 9, \"left\": 2, \"moved\": 3, \"rested\": 4, \"ended\": 1, \"longest_pause_us\": 1700, "           \
	"\"summed_pause_us\": 2500}}"

static const struct control_agent agent_example = {
	.name = "a2",
	.state = "draining",
	.links_up = 2,
	.links = 4,
	.connections = 5,
	.handshakes = 1,
	.sessions = 1ull << 40,
	.busy_permille = 250,
	.handshake_us = 900,
	.weight = 1.5,
	.links_suspect = 1,
	.version = "1.2",
	.clock = CONTROL_CLOCK_KNOWN,
	.clock_offset_ms = -3,
	.drain = { "draining", "operator", 1200, 9, 2, 3, 4, 1, 1700, 2500 },
};

static void answer_agents(struct control_request *r)
{
	control_answer_agents(r, &agent_example, 1);
}

START_TEST(agents_are_told_with_their_drains)
{
	check_body("GET", "/v1/agents", NULL, answer_agents, 200, "{\"agents\": [" AGENT_JSON "]}");
	check_body("GET", AGENT, NULL, answer_agents, 200, AGENT_JSON);
	check_body("POST", AGENT "/undrain", NULL, answer_agents, 200, AGENT_JSON);
	check_body("POST", AGENT "/weight", "{\"weight\": 1.5}", answer_agents, 200, AGENT_JSON);
}
END_TEST

START_TEST(a_drain_that_began_is_accepted)
{
	check_body("POST", AGENT "/drain", NULL, answer_agents, 202, AGENT_JSON);
}
END_TEST

static void answer_without_drain(struct control_request *r)
{
	control_answer_agents(r, &(struct control_agent){ .name = "a2", .state = "up", .drain.state = "none" }, 1);
}

START_TEST(without_a_drain_there_is_no_reason)
{
	check_body("GET", AGENT, NULL, answer_without_drain, 200,
		"{\"name\": \"a2\", \"state\": \"up\", \"version\": null, \"clock_offset_ms\": null, \"weight\": 0.0, "
		"\"links\": {\"up\": 0, \"suspect\": 0, "
		"\"total\": 0}, "
		"\"connections\": 0, \"handshakes\": 0, \"sessions\": 0, \"busy_permille\": 0, \"handshake_us\": 0, "
		"\"drain\": {\"state\": \"none\", \"reason\": null, \"elapsed_ms\": 0, \"total\": 0, \"left\": 0, "
		"\"moved\": 0, \"rested\": 0, \"ended\": 0, \"longest_pause_us\": 0, \"summed_pause_us\": 0}}");
}
END_TEST

static void answer_revoke(struct control_request *r)
{
	static const char *const confirmed[] = { "a1", "a2" }, *const unconfirmed[] = { "a3" };
	control_answer_revoke(r, &(struct control_revoked){ 12, confirmed, unconfirmed, 2, 1 });
}

START_TEST(a_revocation_names_who_confirmed)
{
	check_body("POST", REVOKE, "{\"all\": true}", answer_revoke, 200,
		"{\"sessions\": 12, \"confirmed\": [\"a1\", \"a2\"], \"unconfirmed\": [\"a3\"]}");
}
END_TEST

static void answer_nodes(struct control_request *r)
{
	static const struct control_node_result nodes[] = { { "a1", NULL }, { "a2", "no answer" },
		{ "a3", "leaving" } };
	control_answer_nodes(r, nodes, 3);
}

START_TEST(who_did_not_reload_is_named)
{
	check_body("POST", "/v1/reload", NULL, answer_nodes, 503,
		"{\"error\": \"not done by a2\", \"done\": [\"a1\"], \"failed\": {\"a2\": \"no answer\", \"a3\": "
		"\"leaving\"}}");
}
END_TEST

static const struct {
	enum control_failure kind;
	unsigned status;
} failures[] = {
	{ CONTROL_NOT_FOUND, 404 },
	{ CONTROL_CONFLICT, 409 },
	{ CONTROL_UNAVAILABLE, 503 },
	{ CONTROL_INTERNAL, 500 },
};

START_TEST(failures_have_their_status_and_reason)
{
	for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
		int fd = client_ask("GET", "/v1/status", NULL);
		control_fail(asked.request, failures[i].kind, "because of %d", 7);
		struct reply r = client_read(fd);
		ck_assert_uint_eq(r.status, failures[i].status);
		ck_assert_str_eq(r.error, "because of 7");
		reply_free(&r);
		close(fd);
	}
}
END_TEST

/* The manual, in memory. */
static const char *help_text(void)
{
	static char text[8192];
	FILE *f = fmemopen(text, sizeof text, "w");
	control_help_print(f);
	fclose(f);
	return text;
}

START_TEST(the_index_has_every_route_of_the_manual)
{
	const char *manual = help_text();
	struct reply r = client_get("GET", "/v1", NULL);
	json_t *routes = json_object_get(r.body, "routes"), *route;
	size_t i, lines = 0;
	ck_assert_uint_eq(json_array_size(routes), 24);
	json_array_foreach(routes, i, route)
	{
		ck_assert_ptr_nonnull(strstr(manual, json_string_value(json_object_get(route, "path"))));
		ck_assert_ptr_nonnull(strstr(manual, json_string_value(json_object_get(route, "help"))));
	}
	for (const char *at = manual; (at = strchr(at, '\n')); at++)
		lines++;
	ck_assert_uint_eq(lines, 2 * json_array_size(routes));
	reply_free(&r);
}
END_TEST

int main(void)
{
	const TTest *const facts[] = {
		wrong_input_is_told_and_nobody_is_asked,
		a_wrong_method_is_answered_with_the_right_one,
		each_route_asks_its_question,
		a_listing_without_query_is_the_first_page,
		a_listings_query_arrives,
		one_address_is_a_network_of_one,
		a_move_arrives,
		what_is_done_to_an_agent_arrives,
		revocations_arrive,
		criteria_of_a_revocation_arrive_together,
		the_status_is_told,
		listeners_are_told_with_their_counters,
		log_levels_are_told_of_all_who_answered,
		a_log_level_that_somebody_did_not_take_is_an_error,
		counters_of_both_tiers_are_told,
		a_page_says_where_the_next_begins,
		one_connection_is_told_without_a_list_but_with_its_owners,
		what_is_not_known_yet_is_null,
		a_server_name_that_is_no_utf8_is_told_all_the_same,
		a_move_is_told,
		a_rest_is_told,
		agents_are_told_with_their_drains,
		a_drain_that_began_is_accepted,
		without_a_drain_there_is_no_reason,
		a_revocation_names_who_confirmed,
		who_did_not_reload_is_named,
		failures_have_their_status_and_reason,
		the_index_has_every_route_of_the_manual,
	};

	return control_facts_run("control routes", setup_control, facts, sizeof facts / sizeof facts[0]);
}
