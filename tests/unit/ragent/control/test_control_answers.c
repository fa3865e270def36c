/* test_control_answers.c: facts of the answers of the control socket. */
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/control/control_fixture.h"
#include "tests/unit/unit.h"

#define ID_PATH   "/v1/connections/" ID_TEXT
#define MOVE_PATH ID_PATH "/move"
#define REST_PATH ID_PATH "/rest"
#define AGENT     "/v1/agents/a2"
#define REVOKE    "/v1/sessions/revoke"

/* Send the request, answer with @answer, compare the body. */
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
	const struct control_agent agent = { "a1", "ready", 2, 4, 5, 1, 1ull << 40, 250, 900 };
	control_answer_status(r, &(struct control_status){ "r1", "0.1.0", "serving", 60, 2, 5, &listener, 1, &agent, 1,
					 0, { 3, 2, 1 }, { 40, 2, 5, 1, 2, 1, 1, 90000, 30000 } });
}

START_TEST(the_status_is_told)
{
	check_body("GET", "/v1/status", NULL, answer_status, 200,
		"{\"name\": \"r1\", \"version\": \"0.1.0\", \"state\": \"serving\", \"uptime_s\": 60,"
		" \"deaths\": {\"killed\": 3, \"crashed\": 2, \"hung\": 1},"
		" \"at_deaths\": {\"went_on\": 40, \"began_anew\": 2, \"reset\": 5, \"outdated\": 1,"
		" \"not_restored\": 2, \"given_up\": 1,"
		" \"starts_without_restore\": 1,"
		" \"pause_us\": 90000, \"last_pause_us\": 30000}, \"workers\": 2,"
		" \"connections\": 5, \"listeners\": [{\"name\": \"sf\", \"mode\": \"sf\", \"migration\": \"on\","
		" \"handshake\": \"round-robin\", \"resumption\": \"local\", \"addresses\": [\"127.0.0.1:443\", "
		"\"[::1]:443\"],"
		" \"connections\": 5}], \"agents\": [{\"name\": \"a1\", \"state\": \"ready\", \"links_up\": 2, "
		"\"links\": "
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
		{ "sf", "sf", "on", "round-robin", "local", addresses, 1, 5, "tproxy", "http", SERVICE_STARTS_WITH_TLS,
			"web", "open", counters, 2 },
		{ .name = "mail", .service = "smtp", .start = SERVICE_MAY_START_AS_SMTP },
	};
	control_answer_listeners(r, all, 2);
}

START_TEST(listeners_are_told_with_their_counters)
{
	check_body("GET", "/v1/listeners", NULL, answer_listeners, 200,
		"{\"listeners\": [{\"name\": \"sf\", \"mode\": \"sf\", \"migration\": \"on\", \"handshake\": "
		"\"round-robin\", \"resumption\": \"local\", \"addresses\": [\"127.0.0.1:443\"], \"connections\": 5, "
		"\"original_destination\": \"tproxy\", \"service\": \"http\", \"may_start_in_clear\": false, "
		"\"backend\": \"web\", \"state\": \"open\", "
		"\"accepted\": 7, \"refused\": 2}, {\"name\": \"mail\", \"mode\": null, \"migration\": null, "
		"\"handshake\": null, \"resumption\": null, \"addresses\": [], \"connections\": 0, "
		"\"original_destination\": null, \"service\": \"smtp\", \"may_start_in_clear\": true, \"backend\": "
		"null, \"state\": null}]}");
}
END_TEST

static void answer_no_proxy(struct control_request *r)
{
	control_answer_mail(r, NULL, NULL, 0);
}

static void answer_proxy(struct control_request *r)
{
	control_answer_mail(r, NULL, "{\"sessions\": 3} more", 15);
}

static void answer_lost_proxy(struct control_request *r)
{
	control_answer_mail(r, "no answer in time", NULL, 0);
}

static void answer_odd_proxy(struct control_request *r)
{
	control_answer_mail(r, NULL, "[1, 2]", 6);
}

START_TEST(smtpproxys_status_is_told_as_it_is_or_why_not)
{
	check_body("GET", "/v1/mail", NULL, answer_no_proxy, 200, "{\"smtpproxy\": null}");
	check_body("GET", "/v1/mail", NULL, answer_proxy, 200, "{\"smtpproxy\": {\"sessions\": 3}}");
	check_body(
		"GET", "/v1/mail", NULL, answer_lost_proxy, 200, "{\"smtpproxy\": {\"error\": \"no answer in time\"}}");
	check_body("GET", "/v1/mail", NULL, answer_odd_proxy, 200,
		"{\"smtpproxy\": {\"error\": \"its answer is no JSON object\"}}");
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

static time_t certificate_ends_s;

static void answer_certificates(struct control_request *r)
{
	Cssl__LinkResponse__Counters__Certificate web = CSSL__LINK_RESPONSE__COUNTERS__CERTIFICATE__INIT,
						  *rows[] = { &web };
	char *hosts[] = { (char *)"www.example.org", (char *)"example.org" };
	const struct control_counters sets[] = { { .agent = "a1", .certificates = rows, .certificate_count = 1 },
		{ .agent = "a2", .error = "not up" } };
	web.name = (char *)"web";
	web.file = (char *)"/tls/web.pem";
	web.host = hosts;
	web.n_host = 2;
	web.issuer = (char *)"CN=ca";
	web.not_after_s = certificate_ends_s;
	control_answer_certificates(r, sets, 2);
}

START_TEST(certificates_are_told_with_the_days_that_are_left)
{
	static const struct {
		int left_s, days;
	} rows[] = { { 86400 + 3600, 1 }, { 3600, 0 }, { -3600, -1 }, { -86400 - 3600, -2 } };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		certificate_ends_s = time(NULL) + rows[i].left_s;
		char text[400], end[32];
		strftime(end, sizeof(end), "%Y-%m-%dT%H:%M:%SZ", gmtime(&certificate_ends_s));
		snprintf(text, sizeof(text),
			"{\"certificates\": [{\"agent\": \"a1\", \"name\": \"web\", \"hosts\": [\"www.example.org\","
			" \"example.org\"], \"file\": \"/tls/web.pem\", \"issuer\": \"CN=ca\", \"not_after\": \"%s\","
			" \"days_left\": %d}], \"failed\": {\"a2\": \"not up\"}}",
			end, rows[i].days);
		check_body("GET", "/v1/certificates", NULL, answer_certificates, 200, text);
	}
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

START_TEST(unknown_values_are_null)
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
	control_answer_rest(r, &(struct control_moved){ .from = "a1", .epoch = 3 });
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
	"\"summed_pause_us\": 2500}, \"failing_backends\": \"web at 192.0.2.1:80: connection refused\"}"

static const struct control_agent agent_example = {
	.name = "a2",
	.failing_backends = "web at 192.0.2.1:80: connection refused",
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
	control_answer_agents(r, &(struct control_agent){ .name = "a2", .state = "ready", .drain.state = "none" }, 1);
}

START_TEST(without_a_drain_there_is_no_reason)
{
	check_body("GET", AGENT, NULL, answer_without_drain, 200,
		"{\"name\": \"a2\", \"state\": \"ready\", \"version\": null, \"clock_offset_ms\": null, \"weight\": "
		"0.0, "
		"\"links\": {\"up\": 0, \"suspect\": 0, "
		"\"total\": 0}, "
		"\"connections\": 0, \"handshakes\": 0, \"sessions\": 0, \"busy_permille\": 0, \"handshake_us\": 0, "
		"\"drain\": {\"state\": \"none\", \"reason\": null, \"elapsed_ms\": 0, \"total\": 0, \"left\": 0, "
		"\"moved\": 0, \"rested\": 0, \"ended\": 0, \"longest_pause_us\": 0, \"summed_pause_us\": 0}, "
		"\"failing_backends\": \"\"}");
}
END_TEST

static void answer_blocks(struct control_request *r)
{
	static struct blocked blocked;
	struct address_net net;

	blocked = (struct blocked){ 0 };
	ck_assert_int_eq(address_net_parse("192.0.2.0/24", &net), 0);
	blocked_set(&blocked, &net, 1500, 1000);
	ck_assert_int_eq(address_net_parse("2001:db8::7", &net), 0);
	blocked_set(&blocked, &net, BLOCKED_FOR_GOOD, 1000);
	ck_assert_int_eq(address_net_parse("192.0.2.7", &net), 0);
	blocked_set(&blocked, &net, 100, 500);
	control_answer_blocks(r, &blocked, 1000);
}

START_TEST(blocks_are_listed_with_their_end)
{
	check_body("GET", "/v1/blocks", NULL, answer_blocks, 200,
		"{\"blocks\": [{\"network\": \"192.0.2.0/24\", \"ends_in_s\": 2}, "
		"{\"network\": \"2001:db8::7/128\", \"ends_in_s\": null}]}");
}
END_TEST

static void answer_ended(struct control_request *r)
{
	control_answer_number(r, "ended", 3);
}

static void answer_block(struct control_request *r)
{
	static const char *const unconfirmed[] = { "a2" };
	control_answer_block(r, 3, unconfirmed, 1);
}

START_TEST(ended_connections_are_counted)
{
	check_body("POST", "/v1/blocks?network=192.0.2.7", "{}", answer_block, 200,
		"{\"ended\": 3, \"unconfirmed\": [\"a2\"]}");
	check_body("POST", "/v1/connections/end?agent=a1", "{}", answer_ended, 200, "{\"ended\": 3}");
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

START_TEST(a_node_that_did_not_reload_is_named)
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

UNIT(control_answers)
{
	const TTest *const facts[] = {
		the_status_is_told,
		listeners_are_told_with_their_counters,
		smtpproxys_status_is_told_as_it_is_or_why_not,
		log_levels_are_told_of_all_who_answered,
		a_log_level_that_somebody_did_not_take_is_an_error,
		counters_of_both_tiers_are_told,
		certificates_are_told_with_the_days_that_are_left,
		a_page_says_where_the_next_begins,
		one_connection_is_told_without_a_list_but_with_its_owners,
		unknown_values_are_null,
		a_server_name_that_is_no_utf8_is_told_all_the_same,
		a_move_is_told,
		a_rest_is_told,
		agents_are_told_with_their_drains,
		a_drain_that_began_is_accepted,
		without_a_drain_there_is_no_reason,
		blocks_are_listed_with_their_end,
		ended_connections_are_counted,
		a_revocation_names_who_confirmed,
		a_node_that_did_not_reload_is_named,
		failures_have_their_status_and_reason,
	};

	return control_facts_run("control answers", setup_control, facts, sizeof facts / sizeof facts[0]);
}
