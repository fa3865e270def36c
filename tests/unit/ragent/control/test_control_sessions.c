/* test_control_sessions.c: facts of the routes of sessions: the requests that they accept, the calls to the
 * provider, the answers. */
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/ragent/control/control_fixture.h"
#include "tests/unit/unit.h"

#define HEX_16 "00112233445566778899aabbccddeeff"
#define HEX_32 HEX_16 HEX_16

/* Input that is wrong: nobody is asked. */
static const struct {
	const char *path, *error;
} refused[] = {
	{ "/v1/sessions?limit=0", "limit: found '0', expected a number from 1 to 1000" },
	{ "/v1/sessions?after=12", "after: found '12', expected a session id: 64 hexadecimal digits" },
	{ "/v1/sessions?after=" HEX_16, "after: found '" HEX_16 "', expected a session id: 64 hexadecimal digits" },
	{ "/v1/sessions?client=me", "client: found 'me', expected an address or a network such as 10.0.0.0/8" },
	{ "/v1/sessions?version=1.1", "version: found '1.1', expected 1.2 or 1.3" },
	{ "/v1/sessions?cipher=RC4",
		"cipher: found 'RC4', expected the name of a suite such as TLS_AES_128_GCM_SHA256" },
	{ "/v1/sessions?min_age_s=-1", "min_age_s: found '-1', expected seconds, at most 604800" },
	{ "/v1/sessions?max_age_s=604801", "max_age_s: found '604801', expected seconds, at most 604800" },
	{ "/v1/sessions?max_age_s=9999999999", "max_age_s: found '9999999999', expected seconds, at most 604800" },
	{ "/v1/sessions?family_id=12", "family_id: expected 32 hexadecimal digits" },
	{ "/v1/sessions/count?client_certificate=" HEX_16, "client_certificate: expected 64 hexadecimal digits" },
	{ "/v1/sessions?agent=a1", "'agent': unknown in the query" },
	{ "/v1/sessions/count?limit=1", "'limit': unknown in the query" },
	{ "/v1/sessions/" HEX_16, "ID: found '" HEX_16 "', expected a session id: 64 hexadecimal digits" },
	{ "/v1/sessions/" HEX_32 "0", "ID: found '" HEX_32 "0', expected a session id: 64 hexadecimal digits" },
};

START_TEST(wrong_input_is_told_and_nobody_asked)
{
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		struct reply r = client_get("GET", refused[i].path, NULL);
		ck_assert_msg(r.status == 400, "%s: %u", refused[i].path, r.status);
		ck_assert_str_eq(r.error, refused[i].error);
		reply_free(&r);
	}
	ck_assert_uint_eq(asked.calls, 0);
}
END_TEST

static void ask(const char *path, const char *what)
{
	int fd = client_ask("GET", path, NULL);
	ck_assert_str_eq(asked.what, what);
	control_fail(asked.request, CONTROL_CONFLICT, "enough");
	struct reply r = client_read(fd);
	reply_free(&r);
	close(fd);
}

START_TEST(a_listing_without_query_is_the_first_page_of_all)
{
	ask("/v1/sessions", "sessions");
	ck_assert_uint_eq(asked.sessions.limit, CONTROL_LIMIT_DEFAULT);
	ck_assert_ptr_null(asked.sessions.after);
	ck_assert_ptr_null(asked.sessions.server_name);
	ck_assert_uint_eq(asked.sessions.client.len, 0);
	ck_assert_uint_eq(asked.sessions.protocol_version | asked.sessions.cipher_suite, 0);
	ck_assert_uint_eq(asked.sessions.min_age_s | asked.sessions.max_age_s, 0);
}
END_TEST

START_TEST(a_whole_query_arrives)
{
	ask("/v1/sessions?limit=7&after=" HEX_32 "&server_name=x.test&client=10.0.0.0/8&version=1.2"
	    "&cipher=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256&min_age_s=1&max_age_s=604800",
		"sessions");
	ck_assert_uint_eq(asked.sessions.limit, 7);
	ck_assert_uint_eq(asked.session_after[31], 0xff);
	ck_assert_str_eq(asked.sessions.server_name, "x.test");
	ck_assert_uint_eq(asked.sessions.client.prefix, 8);
	ck_assert_uint_eq(asked.sessions.protocol_version, 0x0303);
	ck_assert_uint_eq(asked.sessions.cipher_suite, 0xc02f);
	ck_assert_uint_eq(asked.sessions.min_age_s, 1);
	ck_assert_uint_eq(asked.sessions.max_age_s, 604800);
}
END_TEST

START_TEST(counts_and_single_sessions_are_asked_for)
{
	ask("/v1/sessions/count", "session count");
	ask("/v1/sessions/count?version=1.3", "session count");
	ck_assert_uint_eq(asked.sessions.protocol_version, 0x0304);
	ask("/v1/sessions/" HEX_32, "session");
	ck_assert_uint_eq(asked.session[1], 0x11);
}
END_TEST

/* Answers */

static void check_body(const char *path, void (*answer)(struct control_request *r), const char *expected)
{
	json_error_t error;
	int fd = client_ask("GET", path, NULL);
	answer(asked.request);
	struct reply r = client_read(fd);
	json_t *wanted = json_loads(expected, 0, &error);
	ck_assert_msg(wanted != NULL, "%s", error.text);
	char *got = json_dumps(r.body, JSON_INDENT(1));
	ck_assert_msg(json_equal(r.body, wanted), "%s", got);
	ck_assert_uint_eq(r.status, 200);
	free(got);
	json_decref(wanted);
	reply_free(&r);
	close(fd);
}

static struct control_session example(void)
{
	struct control_session s = { .family_id = { 1 },
		.server_name = "x.test",
		.alpn = "",
		.listener = "sf",
		.origin = "a1",
		.protocol_version = 0x0304,
		.cipher_suite = 0x1301,
		.age_s = 5,
		.family_age_s = 6,
		.expires_s = 7,
		.hits = 8 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&s.client;
	v4->sin_family = AF_INET;
	v4->sin_addr.s_addr = htonl(0x0a010203);
	for (unsigned i = 0; i < SESSION_ID_LEN; i++)
		s.id[i] = (uint8_t)(i % 16 * 0x11);
	return s;
}

#define EXAMPLE_MEMBERS                                                                                                \
	"\"id\": \"" HEX_32 "\", \"family_id\": \"01000000000000000000000000000000\", \"server_name\": \"x.test\","    \
	" \"client\": \"10.1.2.3\", \"version\": \"1.3\", \"cipher_suite\": \"TLS_AES_128_GCM_SHA256\","               \
	" \"alpn\": null, \"listener\": \"sf\", \"origin\": \"a1\", \"age_s\": 5, \"family_age_s\": 6,"                \
	" \"expires_s\": 7, \"hits\": 8, \"client_certificate\": null"

static void answer_page(struct control_request *r)
{
	const struct control_session s = example();
	control_answer_sessions(r, &s, 1, CONTROL_MORE);
}

START_TEST(a_page_is_told_with_the_next_ones_beginning)
{
	check_body("/v1/sessions", answer_page, "{\"sessions\": [{" EXAMPLE_MEMBERS "}], \"next\": \"" HEX_32 "\"}");
}
END_TEST

static void answer_nothing(struct control_request *r)
{
	control_answer_sessions(r, NULL, 0, CONTROL_LAST_PAGE);
}

START_TEST(an_empty_page_is_told)
{
	check_body("/v1/sessions", answer_nothing, "{\"sessions\": [], \"next\": null}");
}
END_TEST

static void answer_strange_name(struct control_request *r)
{
	struct control_session s = example();
	s.server_name = "\xff\x01";
	control_answer_sessions(r, &s, 1, CONTROL_LAST_PAGE);
}

START_TEST(a_name_that_is_no_utf_8_does_not_spoil_the_page)
{
	int fd = client_ask("GET", "/v1/sessions", NULL);
	answer_strange_name(asked.request);
	struct reply r = client_read(fd);
	ck_assert_uint_eq(r.status, 200);
	const json_t *row = json_array_get(json_object_get(r.body, "sessions"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(row, "server_name")), "??");
	reply_free(&r);
	close(fd);
}
END_TEST

static const struct control_holder holders[] = { { .agent = "a1", .sessions = 1, .hits = 8, .expires_s = 7 },
	{ .agent = "a2", .sessions = 0 }, { .agent = "a3", .error = "not up" } };

static void answer_count(struct control_request *r)
{
	control_answer_session_count(r, 1, holders, 3);
}

START_TEST(a_count_names_every_agent)
{
	check_body("/v1/sessions/count", answer_count,
		"{\"sessions\": 1, \"agents\": {\"a1\": 1, \"a2\": 0}, \"silent\": {\"a3\": \"not up\"}}");
}
END_TEST

static void answer_one(struct control_request *r)
{
	const struct control_session s = example();
	control_answer_session(r, &s, holders, 3);
}

START_TEST(one_session_names_who_holds_it)
{
	check_body("/v1/sessions/" HEX_32, answer_one,
		"{" EXAMPLE_MEMBERS ", \"holders\": [{\"agent\": \"a1\", \"hits\": 8, \"expires_s\": 7}],"
		" \"missing\": [\"a2\"], \"silent\": {\"a3\": \"not up\"}}");
}
END_TEST

UNIT(control_sessions)
{
	const TTest *const facts[] = { wrong_input_is_told_and_nobody_asked,
		a_listing_without_query_is_the_first_page_of_all, a_whole_query_arrives,
		counts_and_single_sessions_are_asked_for, a_page_is_told_with_the_next_ones_beginning,
		an_empty_page_is_told, a_name_that_is_no_utf_8_does_not_spoil_the_page, a_count_names_every_agent,
		one_session_names_who_holds_it };
	return control_facts_run("control_sessions", setup_control, facts, sizeof facts / sizeof facts[0]);
}
