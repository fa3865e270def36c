/* test_control_answers.c: facts of the parts of answers: connections, sessions, certificates. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/socket/address.h"
#include "ragent/control/operations/control_answers.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define ID_TEXT "000102030405060708090a0b0c0d0e0f"
#define HEX_16  "00112233445566778899aabbccddeeff"
#define HEX_32  HEX_16 HEX_16

/* Owns @got. */
static void is(json_t *got, const char *expected)
{
	json_error_t error;
	json_t *wanted = json_loads(expected, 0, &error);
	char *text = json_dumps(got, JSON_INDENT(1));

	ck_assert_msg(wanted != NULL, "%s", error.text);
	ck_assert_msg(json_equal(got, wanted), "%s", text);
	free(text);
	json_decref(wanted);
	json_decref(got);
}

START_TEST(certificates_are_told_with_the_days_that_are_left)
{
	static const struct {
		int left_s, days;
	} rows[] = { { 86400 + 3600, 1 }, { 3600, 0 }, { -3600, -1 }, { -86400 - 3600, -2 } };
	char *hosts[] = { (char *)"www.example.org", (char *)"example.org" };
	Cssl__LinkResponse__Counters__Certificate web = CSSL__LINK_RESPONSE__COUNTERS__CERTIFICATE__INIT;

	web.name = (char *)"web";
	web.file = (char *)"/tls/web.pem";
	web.host = hosts;
	web.n_host = 2;
	web.issuer = (char *)"CN=ca";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const time_t ends_s = time(NULL) + rows[i].left_s;
		char text[400], end[32];
		web.not_after_s = ends_s;
		strftime(end, sizeof(end), "%Y-%m-%dT%H:%M:%SZ", gmtime(&ends_s));
		snprintf(text, sizeof(text),
			"{\"agent\": \"a1\", \"name\": \"web\", \"hosts\": [\"www.example.org\", \"example.org\"], "
			"\"file\": \"/tls/web.pem\", \"issuer\": \"CN=ca\", \"not_after\": \"%s\", \"days_left\": %d}",
			end, rows[i].days);
		is(certificate_json("a1", &web), text);
	}
}
END_TEST

/* --- connections --- */

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

START_TEST(a_connection_of_a_list_is_told_without_its_owners)
{
	struct connection_description c = example();
	is(connection_json(&c), EXAMPLE_JSON);
}
END_TEST

START_TEST(one_connection_is_told_with_its_owners)
{
	static const struct ownership_description owners[] = { { "a1", "handshake", 1, 900, 0 },
		{ NULL, "rest", 1, 500, 40 } };
	static const char history[] =
		", \"history\": [{\"agent\": \"a1\", \"cause\": \"handshake\", \"epoch\": 1, \"ago_ms\": 900, "
		"\"pause_us\": 0},"
		" {\"agent\": null, \"cause\": \"rest\", \"epoch\": 1, \"ago_ms\": 500, \"pause_us\": 40}]}";
	struct connection_description c = example();
	char expected[4096];

	c.history = owners;
	c.history_count = 2;
	snprintf(expected, sizeof expected, "%.*s%s", (int)strlen(EXAMPLE_JSON) - 1, EXAMPLE_JSON, history);
	is(connection_json(&c), expected);
}
END_TEST

START_TEST(unknown_values_are_null)
{
	static const struct ownership_description none;
	const struct connection_description c = { .state = "hello", .history = &none };

	is(connection_json(&c),
		"{\"id\": \"00000000000000000000000000000000\", \"client\": null, \"server\": null, \"listener\": null,"
		" \"state\": \"hello\", \"owner\": null, \"handshake_agent\": null, \"affinity_agent\": null, "
		"\"preamble_agent\": null, \"epoch\": 0,"
		" \"moves\": 0, \"age_ms\": 0, \"idle_ms\": 0, \"client_records\": 0, \"client_bytes\": 0,"
		" \"server_records\": 0, \"server_bytes\": 0, \"read_generation\": 0, \"write_generation\": 0, "
		"\"tls\": null, \"history\": []}");
}
END_TEST

/* One client with such a name must not hide all others. */
START_TEST(a_server_name_that_is_no_utf8_is_told_all_the_same)
{
	struct connection_description c = example();
	c.server_name = "sh\xff\xfe.example";
	json_t *one = connection_json(&c);
	ck_assert_str_eq(
		json_string_value(json_object_get(json_object_get(one, "tls"), "server_name")), "sh??.example");
	json_decref(one);
}
END_TEST

/* --- sessions --- */

static Cssl__Session session_example(void)
{
	static uint8_t id[SESSION_ID_LEN], family[FAMILY_ID_LEN] = { 1 }, client[4] = { 10, 1, 2, 3 };
	Cssl__Session s = CSSL__SESSION__INIT;

	for (unsigned i = 0; i < SESSION_ID_LEN; i++)
		id[i] = (uint8_t)(i % 16 * 0x11);
	s.session_id = (ProtobufCBinaryData){ sizeof id, id };
	s.family_id = (ProtobufCBinaryData){ sizeof family, family };
	s.client_address = (ProtobufCBinaryData){ sizeof client, client };
	s.server_name = (ProtobufCBinaryData){ 6, (uint8_t *)"x.test" };
	s.listener = (char *)"sf";
	s.origin = (char *)"a1";
	s.protocol_version = 0x0304;
	s.cipher_suite = 0x1301;
	s.age_s = 5;
	s.family_age_s = 6;
	return s;
}

#define EXAMPLE_MEMBERS                                                                                                \
	"\"id\": \"" HEX_32 "\", \"family_id\": \"01000000000000000000000000000000\", \"server_name\": \"x.test\","    \
	" \"client\": \"10.1.2.3\", \"version\": \"1.3\", \"cipher_suite\": \"TLS_AES_128_GCM_SHA256\","               \
	" \"alpn\": null, \"listener\": \"sf\", \"origin\": \"a1\", \"age_s\": 5, \"family_age_s\": 6,"                \
	" \"expires_s\": 7, \"hits\": 8, \"client_certificate\": null"

START_TEST(a_session_is_told_without_its_secrets)
{
	const Cssl__Session s = session_example();

	ck_assert_int_eq(session_is_whole(&s), 1);
	is(session_json(&s, 8, 7), "{" EXAMPLE_MEMBERS "}");
}
END_TEST

START_TEST(a_session_with_ids_of_another_length_is_not_whole)
{
	Cssl__Session s = session_example();

	s.session_id.len = 3;
	ck_assert_int_eq(session_is_whole(&s), 0);
	s = session_example();
	s.client_certificate = (ProtobufCBinaryData){ 5, s.session_id.data };
	ck_assert_int_eq(session_is_whole(&s), 0);
	s.client_certificate.len = SESSION_ID_LEN;
	ck_assert_int_eq(session_is_whole(&s), 1);
}
END_TEST

START_TEST(a_name_that_is_no_utf_8_does_not_spoil_the_session)
{
	Cssl__Session s = session_example();
	s.server_name = (ProtobufCBinaryData){ 2, (uint8_t *)"\xff\x01" };
	json_t *one = session_json(&s, 0, 0);
	ck_assert_str_eq(json_string_value(json_object_get(one, "server_name")), "??");
	json_decref(one);
}
END_TEST

UNIT(control_answers)
{
	const TTest *const facts[] = {
		certificates_are_told_with_the_days_that_are_left,
		a_connection_of_a_list_is_told_without_its_owners,
		one_connection_is_told_with_its_owners,
		unknown_values_are_null,
		a_server_name_that_is_no_utf8_is_told_all_the_same,
		a_session_is_told_without_its_secrets,
		a_session_with_ids_of_another_length_is_not_whole,
		a_name_that_is_no_utf_8_does_not_spoil_the_session,
	};

	return suite_run("control_answers", facts, SUITE_LEN(facts));
}
