/* test_handshake.c: what is negotiated: certificates by name, ALPN, versions, client certificates; how handshakes fail.
 */
#include <malloc.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf/memory.h"
#include "net/report/log.h"
#include "proto/error.h"
#include "sslagent/tls/handshake_internal.h"
#include "tests/unit/moves.h"
#include "tests/unit/sslagent/cluster/memory_cluster.h"
#include "tests/unit/unit.h"

static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };

static void start(void)
{
	cluster_prepare();
	cluster_start();
}

/* The server's certificate as the client saw it. */
static int server_key_type(void)
{
	return EVP_PKEY_get_base_id(X509_get0_pubkey(SSL_get0_peer_certificate(memory_client_ssl(client))));
}

static const X509 *server_certificate(void)
{
	return SSL_get0_peer_certificate(memory_client_ssl(client));
}

START_TEST(one_name_has_an_rsa_and_an_ecdsa_certificate)
{
	start();
	struct memory_client_config config = {
		.suite = 0xc02f, .version = TLS1_2_VERSION, .server_name = "www.example.org"
	};
	connect_to(contexts, &config);
	ck_assert_int_eq(server_key_type(), EVP_PKEY_RSA);
	disconnect();
	config.suite = 0xc02b;
	connect_to(contexts, &config);
	ck_assert_int_eq(server_key_type(), EVP_PKEY_EC);
	cluster_stop();
}
END_TEST

/* Listener: default (www.example.org), then shop.example.com, then *.example.com, and *.example.com as RSA. */
static const struct {
	const char *asked;
	int expected; /* identity */
	int suite;
} name_rows[] = {
	{ "www.example.org", 0, 0xc02b },
	{ "WWW.Example.ORG", 0, 0xc02b },
	{ "shop.example.com", 1, 0xc02b },
	{ "any.example.com", 2, 0xc02b },
	{ "any.example.com", 3, 0xc02f },
	{ "shop.example.com", 3, 0xc02f },
	{ "example.com", 0, 0xc02b },
	{ "a.b.example.com", 0, 0xc02b },
	{ "unknown.test", 0, 0xc02b },
	{ NULL, 0, 0xc02b },
	{ "*.example.com", 2, 0xc02b },
};

START_TEST(certificates_are_chosen_by_server_name)
{
	struct test_identity others[3];
	struct memory_client_config config = {
		.version = TLS1_2_VERSION, .suite = (uint16_t)name_rows[_i].suite, .server_name = name_rows[_i].asked
	};

	cluster_prepare();
	ck_assert_int_eq(test_pki_issue(&pki, "shop", TEST_ECDSA, "shop.example.com", 0, &others[0]), 0);
	ck_assert_int_eq(test_pki_issue(&pki, "any", TEST_ECDSA, "*.example.com", 0, &others[1]), 0);
	ck_assert_int_eq(test_pki_issue(&pki, "any", TEST_RSA, "*.example.com", 0, &others[2]), 0);
	struct test_identity *all[] = { &ecdsa, &others[0], &others[1], &others[2] };
	memory_conf_fill(&conf, all, 4);
	cluster_start();
	connect_to(contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_OWNS);
	ck_assert_int_eq(X509_cmp(server_certificate(), all[name_rows[_i].expected]->certificate), 0);
	for (int i = 0; i < 3; i++)
		test_identity_free(&others[i]);
	cluster_stop();
}
END_TEST

START_TEST(a_certificate_without_names_can_be_the_default)
{
	struct test_identity nameless;

	cluster_prepare();
	ck_assert_int_eq(test_pki_issue(&pki, "", TEST_ECDSA, NULL, 0, &nameless), 0);
	memory_conf_fill(&conf, (struct test_identity *[]){ &nameless, &ecdsa }, 2);
	cluster_start();
	connect_to(contexts, &(struct memory_client_config){ .server_name = "elsewhere.test" });
	ck_assert_int_eq(X509_cmp(server_certificate(), nameless.certificate), 0);
	disconnect();
	connect_to(contexts, &(struct memory_client_config){ .server_name = "www.example.org" });
	ck_assert_int_eq(X509_cmp(server_certificate(), ecdsa.certificate), 0);
	test_identity_free(&nameless);
	cluster_stop();
}
END_TEST

START_TEST(the_server_name_is_a_fact_and_is_acknowledged)
{
	start();
	connect_to(
		contexts, &(struct memory_client_config){ .version = versions[_i], .server_name = "WWW.example.org" });
	ck_assert_str_eq(agent.facts.server_name, "www.example.org");
	ck_assert_str_eq(agent.facts.listener, "web");
	ck_assert_str_eq(agent.facts.origin, "a1");
	ck_assert_uint_eq(agent.facts.client.len, 4);
	ck_assert_uint_eq(agent.facts.context_len, 32);
	cluster_stop();
}
END_TEST

static const struct {
	const char *listener, *client, *chosen; /* NULL: none */
	int alert;
} alpn_rows[] = {
	{ "h2,http/1.1", "http/1.1,h2", "h2", -1 }, /* our preference */
	{ "http/1.1,h2", "http/1.1,h2", "http/1.1", -1 }, { "h2", "http/1.1,h2", "h2", -1 }, { "h2", NULL, "", -1 },
	{ "", "h2", "", -1 }, { "h2", "http/1.1", "", 120 }, /* no_application_protocol */
};

START_TEST(alpn_is_chosen_in_our_order)
{
	char list[64], *at = list, *name;

	cluster_prepare();
	snprintf(list, sizeof(list), "%s", alpn_rows[_i].listener);
	while (list[0] && (name = strsep(&at, ",")))
		conf.alpn[conf.listener.alpn_count++].protocol = name;
	cluster_start();
	for (int v = 0; v < 2; v++) {
		connect_to(contexts,
			&(struct memory_client_config){ .version = versions[v], .alpn = alpn_rows[_i].client });
		ck_assert_int_eq(memory_client_alert(client), alpn_rows[_i].alert);
		ck_assert_int_eq(agent.state, alpn_rows[_i].alert < 0 ? AGENT_OWNS : AGENT_FAILED);
		ck_assert_str_eq(agent.facts.alpn, alpn_rows[_i].chosen);
		disconnect();
	}
	cluster_stop();
}
END_TEST

START_TEST(a_version_below_the_listeners_is_refused)
{
	cluster_prepare();
	conf.listener.tls.version_min = 0x0304;
	cluster_start();
	connect_to(contexts, &(struct memory_client_config){ .version = TLS1_2_VERSION });
	ck_assert_int_eq(agent.state, AGENT_FAILED);
	ck_assert_int_eq(memory_client_alert(client), TLS_ALERT_PROTOCOL_VERSION);
	ck_assert_msg(strstr(agent.error, "protocol"), "%s", agent.error);
	cluster_stop();
}
END_TEST

START_TEST(a_listener_of_tls12_only_ignores_offers_of_tls13)
{
	cluster_prepare();
	conf.listener.tls.version_max = 0x0303;
	cluster_start();
	connect_to(contexts, &(struct memory_client_config){ 0 });
	ck_assert_int_eq(agent.facts.protocol_version, TLS1_2_VERSION);
	echo(100, 0);
	cluster_stop();
}
END_TEST

/* Which client certificate under which policy ends how. */
enum offered { OFFERS_NONE, OFFERS_GOOD, OFFERS_STRANGE };
static const struct {
	int policy;
	enum offered offered;
	enum memory_agent_state expected;
	int alert12, alert13;
} policy_rows[] = {
	{ CONF_CLIENT_CERT_NONE, OFFERS_GOOD, AGENT_OWNS, -1, -1 },
	{ CONF_CLIENT_CERT_OPTIONAL, OFFERS_NONE, AGENT_OWNS, -1, -1 },
	{ CONF_CLIENT_CERT_OPTIONAL, OFFERS_GOOD, AGENT_OWNS, -1, -1 },
	{ CONF_CLIENT_CERT_OPTIONAL, OFFERS_STRANGE, AGENT_FAILED, 48, 48 }, /* unknown_ca */
	{ CONF_CLIENT_CERT_REQUIRED, OFFERS_NONE, AGENT_FAILED, 40, 116 }, /* handshake_failure; certificate_required */
	{ CONF_CLIENT_CERT_REQUIRED, OFFERS_GOOD, AGENT_OWNS, -1, -1 },
};

START_TEST(client_certificates_follow_the_policy)
{
	struct test_pki strange_pki;
	struct test_identity good, strange;

	cluster_prepare();
	ck_assert_int_eq(test_pki_start(&strange_pki), 0);
	ck_assert_int_eq(test_pki_issue(&strange_pki, "mallory", TEST_ECDSA, NULL, 0, &strange), 0);
	ck_assert_int_eq(test_pki_issue(&pki, "alice", TEST_ECDSA, NULL, 0, &good), 0);
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = policy_rows[_i].policy;
	cluster_start();
	struct test_identity *of[] = { [OFFERS_GOOD] = &good, [OFFERS_STRANGE] = &strange };
	for (int v = 0; v < 2; v++) {
		struct memory_client_config config = { .version = versions[v] };
		int expected = v == 0 ? policy_rows[_i].alert12 : policy_rows[_i].alert13;
		if (policy_rows[_i].offered != OFFERS_NONE) {
			config.certificate = of[policy_rows[_i].offered]->certificate;
			config.key = of[policy_rows[_i].offered]->key;
		}
		connect_to(contexts, &config);
		ck_assert_int_eq(agent.state, policy_rows[_i].expected);
		ck_assert_int_eq(memory_client_alert(client), expected);
		if (agent.state == AGENT_OWNS) {
			int seen = policy_rows[_i].policy != CONF_CLIENT_CERT_NONE && config.certificate;
			ck_assert_int_eq(agent.certificate_len > 0, seen);
			echo(100, 0);
		}
		disconnect();
	}
	test_identity_free(&good);
	test_identity_free(&strange);
	test_pki_stop(&strange_pki);
	cluster_stop();
}
END_TEST

START_TEST(client_certificates_of_many_records_are_taken)
{
	struct test_identity large;

	cluster_prepare();
	ck_assert_int_eq(test_pki_issue(&pki, "large", TEST_ECDSA, NULL, 20000, &large), 0);
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	cluster_start();
	for (int v = 0; v < 2; v++) {
		struct memory_client_config config = { .version = versions[v],
			.certificate = large.certificate,
			.key = large.key,
			.max_fragment = _i ? 512 : 0 };
		connect_to(contexts, &config);
		ck_assert_msg(agent.state == AGENT_OWNS, "%s", agent.error);
		unsigned char *der = NULL;
		ck_assert_int_eq(i2d_X509(large.certificate, &der), (int)agent.certificate_len);
		ck_assert_mem_eq(der, agent.certificate, agent.certificate_len);
		OPENSSL_free(der);
		echo(5000, 0);
		disconnect();
	}
	test_identity_free(&large);
	cluster_stop();
}
END_TEST

static char log_path[128];

static const char *logged(void)
{
	static char text[8192];
	FILE *f = fopen(log_path, "r");

	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	return text;
}

START_TEST(a_refused_client_certificate_is_named_with_the_reason)
{
	struct test_pki strange_pki;
	struct test_identity over, strange;

	cluster_prepare();
	ck_assert_int_eq(test_pki_start(&strange_pki), 0);
	ck_assert_int_eq(test_pki_issue(&strange_pki, "mallory", TEST_ECDSA, NULL, 0, &strange), 0);
	test_pki_valid_for(-1);
	ck_assert_int_eq(test_pki_issue(&pki, "o=x,y", TEST_ECDSA, NULL, 0, &over), 0);
	test_pki_valid_for(0);
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	cluster_start();
	snprintf(log_path, sizeof(log_path), "%s/log", pki.dir);
	ck_assert_int_eq(log_open("sslagent", "a1", LOG_TEXT, LOG_INFO, log_path), 0);
	const struct {
		const struct test_identity *of;
		const char *cause, *line;
	} rows[] = {
		{ &over, "client certificate refused: certificate has expired",
			"client certificate refused cause=\"certificate has expired\" subject=\"CN=o=x\\\\,y\"\n" },
		{ &strange, "client certificate refused: unable to get local issuer certificate",
			"client certificate refused cause=\"unable to get local issuer certificate\" "
			"subject=\"CN=mallory\"\n" }
	};
	for (size_t i = 0; i < 4; i++) {
		const struct test_identity *of = rows[i / 2].of;
		connect_to(
			contexts, &(struct memory_client_config){
					  .version = versions[i % 2], .certificate = of->certificate, .key = of->key });
		ck_assert_str_eq(handshake_error(agent.handshake), rows[i / 2].cause);
		ck_assert_msg(strstr(logged(), rows[i / 2].line) != NULL, "%s", logged());
		ck_assert_int_eq(handshake_refusal(agent.handshake), REFUSAL_CERTIFICATE);
		disconnect();
	}
	for (unsigned i = 0; i < 8; i++) /* each takes four times its place in the line */
		X509_NAME_add_entry_by_txt(X509_get_subject_name(strange.certificate), "OU", MBSTRING_UTF8,
			(const unsigned char *)"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\""
					       "\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"\"",
			-1, -1, 0);
	ck_assert_int_gt(X509_sign(strange.certificate, strange_pki.ca_key, EVP_sha256()), 0);
	connect_to(contexts, &(struct memory_client_config){ .certificate = strange.certificate, .key = strange.key });
	const char *line = strstr(logged(), "issuer certificate\" subject=\"OU=\\\\\\\"");
	ck_assert_msg(line && strstr(line, "...\"\n"), "%s", logged());
	disconnect();
	log_close();
	unlink(log_path);
	test_identity_free(&over);
	test_identity_free(&strange);
	test_pki_stop(&strange_pki);
	cluster_stop();
}
END_TEST

START_TEST(the_hello_of_a_client_has_its_fingerprint)
{
	char text[JA4_TEXT_MAX], again[JA4_TEXT_MAX];

	start();
	connect_to(
		contexts, &(struct memory_client_config){ .server_name = "www.example.org", .version = versions[_i] });
	ck_assert_mem_eq(ja4_text(&agent.facts.ja4, text), versions[_i] == TLS1_3_VERSION ? "t13d" : "t12d", 4);
	ck_assert_uint_eq(strlen(text), JA4_TEXT_MAX - 1);
	disconnect();
	connect_to(contexts, &(struct memory_client_config){ .version = versions[_i] });
	ja4_text(&agent.facts.ja4, again);
	ck_assert_mem_eq(again, versions[_i] == TLS1_3_VERSION ? "t13i" : "t12i", 4);
	ck_assert_str_eq(again + 10, text + 10); /* the server's name is in the first part only */
	cluster_stop();
}
END_TEST

START_TEST(a_common_name_with_a_nul_inside_is_none)
{
	struct test_identity sly;
	struct certificate_words words;

	cluster_prepare();
	ck_assert_int_eq(test_pki_issue(&pki, "x", TEST_ECDSA, NULL, 0, &sly), 0);
	X509_NAME *subject = X509_get_subject_name(sly.certificate);
	X509_NAME_ENTRY_free(X509_NAME_delete_entry(subject, 0));
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)"admin\0.evil", 11, -1, 0);
	ck_assert_int_gt(X509_sign(sly.certificate, pki.ca_key, EVP_sha256()), 0);
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	cluster_start();
	connect_to(contexts, &(struct memory_client_config){ .certificate = sly.certificate, .key = sly.key });
	ck_assert_int_eq(agent.state, AGENT_OWNS);
	ck_assert_int_eq(certificate_words_read(agent.certificate, agent.certificate_len, &words), 0);
	ck_assert_str_eq(words.common_name, "");
	certificate_words_clear(&words);
	test_identity_free(&sly);
	cluster_stop();
}
END_TEST

START_TEST(garbage_fails_with_an_alert_and_a_cause)
{
	static const uint8_t hello[] = { 22, 3, 1, 0, 4, 1, 0, 0, 0 };
	const uint8_t *out;
	struct handshake_params params = { 0 };

	start();
	struct handshake *h = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
	ck_assert_int_lt(handshake_feed(h, hello, sizeof(hello)), 0);
	ck_assert_uint_eq(handshake_output(h, &out), 7);
	ck_assert_uint_eq(out[0], TLS_ALERT);
	ck_assert_uint_eq(out[5], TLS_ALERT_FATAL);
	ck_assert_str_ne(handshake_error(h), "");
	ck_assert_int_eq(handshake_feed(h, hello, sizeof(hello)), CSSL_E_STATE);
	handshake_destroy(h);
	cluster_stop();
}
END_TEST

/* OpenSSL accepts it. Without its name and versions it would be served by the wrong certificate. */
START_TEST(a_hello_with_an_empty_server_name_is_refused)
{
	static const uint8_t rest[] = { 0, 0, 2, 0x13, 1, 1, 0, 0, 16, 0, 0, 0, 5, 0, 3, 0, 0, 0, 0, 0x2b, 0, 3, 2, 3,
		4 };
	uint8_t hello[68] = { 22, 3, 1, 0, 63, 1, 0, 0, 59, 3, 3 };
	const uint8_t *out;
	struct handshake_params params = { 0 };

	start();
	struct handshake *h = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
	memcpy(hello + sizeof(hello) - sizeof(rest), rest, sizeof(rest));
	ck_assert_int_lt(handshake_feed(h, hello, sizeof(hello)), 0);
	ck_assert_uint_eq(handshake_output(h, &out), 7);
	ck_assert_uint_eq(out[0], TLS_ALERT);
	ck_assert_uint_eq(out[6], SSL_AD_DECODE_ERROR);
	ck_assert_str_eq(handshake_error(h), "bad extension");
	ck_assert_int_eq(handshake_refusal(h), REFUSAL_MESSAGE);
	handshake_destroy(h);
	cluster_stop();
}
END_TEST

/* In one record, and with a header that is cut. */
START_TEST(a_hello_that_claims_too_much_fails_before_openssl_makes_room)
{
	static const uint8_t records[][2][9] = { { { 22, 3, 1, 0, 4, 1, 2, 1, 0x44 }, { 0 } },
		{ { 22, 3, 1, 0, 3, 1, 0, 0x80 }, { 22, 3, 1, 0, 1, 0 } } };
	const uint8_t *out;
	struct handshake_params params = { 0 };

	start();
	for (size_t i = 0; i < 2; i++) {
		struct handshake *h = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
		int r = handshake_feed(h, records[i][0], 5u + records[i][0][4]);
		if (i > 0) {
			ck_assert_int_eq(r, HANDSHAKE_MORE);
			r = handshake_feed(h, records[i][1], 6);
		}
		ck_assert_int_lt(r, 0);
		ck_assert_int_eq(handshake_refusal(h), REFUSAL_HELLO);
		ck_assert_uint_eq(handshake_output(h, &out), 7);
		ck_assert_uint_eq(out[0], TLS_ALERT);
		ck_assert_uint_eq(out[5], TLS_ALERT_FATAL);
		ck_assert_uint_eq(out[6], TLS_ALERT_ILLEGAL_PARAMETER);
		handshake_destroy(h);
	}
	cluster_stop();
}
END_TEST

START_TEST(an_unfinished_handshake_can_be_dropped_at_any_record)
{
	start();
	for (int records = 0; records < 4; records++) {
		for (int v = 0; v < 2; v++) {
			struct memory_client_config config = { .version = versions[v] };
			ck_assert_int_eq(memory_agent_start(&agent, contexts, pool), 0);
			client = memory_client_create(&config);
			for (int i = 0; i < records; i++) {
				const uint8_t *data;
				memory_client_handshake(client);
				size_t len = memory_client_output(client, &data);
				memory_agent_feed(&agent, data, len);
				memory_client_output_taken(client, len);
				memory_client_feed(client, agent.output, agent.output_len);
				agent.output_len = 0;
			}
			disconnect();
		}
	}
	cluster_stop();
}
END_TEST

static void move_handshake(int from, int to)
{
	struct handshake h = { .state = (enum handshake_state)from };

	handshake_move(&h, (enum handshake_state)to);
	if ((int)h.state != to)
		_exit(1);
}

START_TEST(states_move_as_drawn)
{
	static const char *const drawn = /* from: feeding, parked, complete, exported, failed */
		"01101"
		"10001"
		"00011"
		"00000"
		"00000";

	for (int from = 0; from <= HANDSHAKE_FAILED; from++)
		for (int to = 0; to <= HANDSHAKE_FAILED; to++)
			ck_assert_int_eq(move_is_allowed(move_handshake, from, to), drawn[from * 5 + to] - '0');
}
END_TEST

#ifndef CSSL_SANITIZED /* sanitizers have a heap of their own */
#define WAITING  32
#define MOST_LEN (64u * 1024)

START_TEST(a_handshake_that_waits_for_its_client_holds_no_buffers_for_records)
{
	struct memory_client_config config = { .version = versions[_i] };
	struct handshake_params params = { 0 };
	struct handshake *waiting[WAITING];
	const uint8_t *hello;

	start();
	client = memory_client_create(&config);
	memory_client_handshake(client);
	const size_t len = memory_client_output(client, &hello);
	struct mallinfo2 before = mallinfo2();
	for (unsigned i = 0; i < WAITING; i++) {
		waiting[i] = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
		ck_assert_int_eq(handshake_feed(waiting[i], hello, len), HANDSHAKE_MORE);
		handshake_rest(waiting[i]);
	}
	struct mallinfo2 after = mallinfo2();
	ck_assert_uint_le((after.uordblks - before.uordblks) / WAITING, MOST_LEN);
	for (unsigned i = 0; i < WAITING; i++)
		handshake_destroy(waiting[i]);
	cluster_stop();
}
END_TEST

/* Where OpenSSL makes room for what a header claims: a hello, and a message with certificates behind our flight. */
START_TEST(a_handshake_that_claims_the_most_takes_less_than_check_says)
{
	static const uint8_t hello[] = { 22, 3, 1, 0, 4, 1, 0, 0x7f, 0xfc };
	static const uint8_t certificates[] = { 22, 3, 3, 0, 4, 11, 0, 0x80, 0 };
	struct memory_client_config config = { .version = TLS1_2_VERSION };
	struct handshake_params params = { 0 };
	struct handshake *waiting[WAITING];
	const uint8_t *first = hello;
	size_t len = sizeof(hello);

	cluster_prepare();
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	cluster_start();
	client = memory_client_create(&config);
	memory_client_handshake(client);
	if (_i == 1)
		len = memory_client_output(client, &first);
	struct mallinfo2 before = mallinfo2();
	for (unsigned i = 0; i < WAITING; i++) {
		waiting[i] = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
		ck_assert_int_eq(handshake_feed(waiting[i], first, len), HANDSHAKE_MORE);
		if (_i == 1)
			ck_assert_int_eq(
				handshake_feed(waiting[i], certificates, sizeof(certificates)), HANDSHAKE_MORE);
		handshake_rest(waiting[i]);
	}
	struct mallinfo2 after = mallinfo2();
	ck_assert_uint_le((after.uordblks + after.hblkhd - before.uordblks - before.hblkhd) / WAITING,
		MEMORY_OF_HANDSHAKE - sizeof(struct handshake));
	for (unsigned i = 0; i < WAITING; i++)
		handshake_destroy(waiting[i]);
	cluster_stop();
}
END_TEST
#endif

UNIT(handshake)
{
	Suite *s = suite_create("handshake");
	TCase *t = tcase_create("handshake");
	SRunner *r = srunner_create(s);

	tcase_add_unchecked_fixture(t, pki_setup, pki_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, one_name_has_an_rsa_and_an_ecdsa_certificate);
	tcase_add_loop_test(t, certificates_are_chosen_by_server_name, 0, sizeof(name_rows) / sizeof(name_rows[0]));
	tcase_add_test(t, a_certificate_without_names_can_be_the_default);
	tcase_add_loop_test(t, the_server_name_is_a_fact_and_is_acknowledged, 0, 2);
	tcase_add_loop_test(t, alpn_is_chosen_in_our_order, 0, sizeof(alpn_rows) / sizeof(alpn_rows[0]));
	tcase_add_test(t, a_version_below_the_listeners_is_refused);
	tcase_add_test(t, a_listener_of_tls12_only_ignores_offers_of_tls13);
	tcase_add_loop_test(t, client_certificates_follow_the_policy, 0, sizeof(policy_rows) / sizeof(policy_rows[0]));
	tcase_add_loop_test(t, client_certificates_of_many_records_are_taken, 0, 2);
	tcase_add_test(t, a_refused_client_certificate_is_named_with_the_reason);
	tcase_add_loop_test(t, the_hello_of_a_client_has_its_fingerprint, 0, 2);
	tcase_add_test(t, a_common_name_with_a_nul_inside_is_none);
	tcase_add_test(t, garbage_fails_with_an_alert_and_a_cause);
	tcase_add_test(t, a_hello_with_an_empty_server_name_is_refused);
	tcase_add_test(t, a_hello_that_claims_too_much_fails_before_openssl_makes_room);
	tcase_add_test(t, an_unfinished_handshake_can_be_dropped_at_any_record);
	tcase_add_test(t, states_move_as_drawn);
#ifndef CSSL_SANITIZED
	tcase_add_loop_test(t, a_handshake_that_waits_for_its_client_holds_no_buffers_for_records, 0, 2);
	tcase_add_loop_test(t, a_handshake_that_claims_the_most_takes_less_than_check_says, 0, 2);
#endif
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
