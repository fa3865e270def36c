/* test_routes_sessions.c: facts of the routes of sessions: the requests that they accept, and the operations
 * that they ask. */
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
	request_fail(asked.request, MHD_HTTP_CONFLICT, "enough");
	struct reply r = client_read(fd);
	reply_free(&r);
	close(fd);
}

START_TEST(a_listing_without_query_is_the_first_page_of_all)
{
	ask("/v1/sessions", "sessions");
	ck_assert_uint_eq(asked.in.limit, CONTROL_LIMIT_DEFAULT);
	ck_assert_int_eq(asked.in.session, SESSION_NONE);
	ck_assert_uint_eq(cssl__session_filter__get_packed_size(&asked.in.filter), 0);
}
END_TEST

START_TEST(a_whole_query_arrives)
{
	ask("/v1/sessions?limit=7&after=" HEX_32 "&server_name=x.test&client=10.0.0.0/8&version=1.2"
	    "&cipher=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256&min_age_s=1&max_age_s=604800",
		"sessions");
	ck_assert_uint_eq(asked.in.limit, 7);
	ck_assert_int_eq(asked.in.session, SESSION_GIVEN);
	ck_assert_uint_eq(asked.in.session_id[31], 0xff);
	ck_assert_str_eq(asked.in.filter.server_name, "x.test");
	ck_assert_uint_eq(asked.in.filter.client_prefix, 8);
	ck_assert_uint_eq(asked.in.filter.protocol_version, 0x0303);
	ck_assert_uint_eq(asked.in.filter.cipher_suite, 0xc02f);
	ck_assert_uint_eq(asked.in.filter.min_age_s, 1);
	ck_assert_uint_eq(asked.in.filter.max_age_s, 604800);
}
END_TEST

START_TEST(counts_and_single_sessions_are_asked_for)
{
	ask("/v1/sessions/count", "session_count");
	ask("/v1/sessions/count?version=1.3", "session_count");
	ck_assert_uint_eq(asked.in.filter.protocol_version, 0x0304);
	ask("/v1/sessions/" HEX_32, "session");
	ck_assert_uint_eq(asked.in.session_id[1], 0x11);
}
END_TEST

UNIT(routes_sessions)
{
	const TTest *const facts[] = { wrong_input_is_told_and_nobody_asked,
		a_listing_without_query_is_the_first_page_of_all, a_whole_query_arrives,
		counts_and_single_sessions_are_asked_for };
	return control_facts_run("control_sessions", setup_control, facts, sizeof facts / sizeof facts[0]);
}
