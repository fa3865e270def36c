/* test_client_certificate.c: what a session rests on is looked at again when it is resumed: the client's certificate,
 * its end and its CRL; and the extended master secret of TLS 1.2. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sslagent/tls/handshake_internal.h"
#include "tests/unit/sslagent/cluster/memory_cluster.h"
#include "tests/unit/unit.h"

#define SHORT_LIFE_S 4

/* The ways of resuming. */
static const struct way {
	int version;
	enum conf_switch tickets; /* of TLS 1.2 */
} ways[] = { { TLS1_3_VERSION, CONF_OFF }, { TLS1_2_VERSION, CONF_OFF }, { TLS1_2_VERSION, CONF_ON } };
#define WAYS ((int)(sizeof(ways) / sizeof(ways[0])))

static struct memory_client_config config;
static struct test_identity alice;
static char crl_path[128];

/* Agents that take client certificates, and a client of that way with Alice's. */
static void prepare(const struct way *way, long alices_life_s)
{
	cluster_prepare();
	test_pki_valid_for(alices_life_s);
	ck_assert_int_eq(test_pki_issue(&pki, "alice", TEST_ECDSA, NULL, 0, &alice), 0);
	test_pki_valid_for(0);
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	conf.listener.tls.tls12_tickets = way->tickets;
	config = (struct memory_client_config){ .version = way->version,
		.tickets = way->tickets == CONF_ON ? CLIENT_TICKETS : CLIENT_NO_TICKETS,
		.server_name = "www.example.org",
		.certificate = alice.certificate,
		.key = alice.key };
}

/* 1 or 0. The agent and the client agree about it, and the other agent knows the session from then on. */
static int resumes(struct tls_contexts *at)
{
	connect_to(at, &config);
	ck_assert_msg(agent.state == AGENT_OWNS, "%s", agent.error);
	echo(100, 0);
	int resumed = SSL_session_reused(memory_client_ssl(client));
	ck_assert_int_eq(agent.handshake_facts.kind == HANDSHAKE_RESUMED, resumed);
	return resumed;
}

static void connect_first(void)
{
	ck_assert_int_eq(resumes(contexts), 0);
	config.resume = memory_client_session(client);
	ck_assert_ptr_nonnull(config.resume);
	disconnect();
	memory_source_copy(&other_source, &source);
}

static void finish(void)
{
	SSL_SESSION_free(config.resume);
	test_identity_free(&alice);
	cluster_stop();
}

static void wait_for_alices_end(void)
{
	time_t now;

	do {
		usleep(50000);
		now = time(NULL);
	} while (X509_cmp_time(X509_get0_notAfter(alice.certificate), &now) > 0);
}

START_TEST(a_session_ends_with_the_client_certificate_that_it_rests_on)
{
	prepare(&ways[_i], SHORT_LIFE_S);
	cluster_start();
	connect_first();
	ck_assert_int_eq(resumes(other_contexts), 1);
	ck_assert_int_eq(handshake_offered_certificate(agent.handshake), CERTIFICATE_STANDS);
	disconnect();
	wait_for_alices_end();
	config.certificate = NULL; /* so that a full handshake goes through */
	ck_assert_int_eq(resumes(other_contexts), 0);
	ck_assert_int_eq(handshake_offered_certificate(agent.handshake), CERTIFICATE_OVER);
	ck_assert_uint_eq(agent.certificate_len, 0);
	finish();
}
END_TEST

START_TEST(a_full_handshake_in_its_place_verifies_anew)
{
	prepare(&ways[_i], SHORT_LIFE_S);
	cluster_start();
	connect_first();
	wait_for_alices_end();
	connect_to(other_contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_FAILED);
	ck_assert_int_eq(memory_client_alert(client), SSL_AD_CERTIFICATE_EXPIRED);
	ck_assert_int_eq(handshake_offered_certificate(agent.handshake), CERTIFICATE_OVER);
	finish();
}
END_TEST

/* As SIGHUP does. */
static void reload(const struct test_identity *revoked)
{
	ck_assert_int_eq(test_pki_revoke(&pki, revoked, crl_path), 0);
	tls_contexts_unref(contexts);
	tls_contexts_unref(other_contexts);
	cluster_start();
}

START_TEST(a_session_ends_when_a_crl_names_its_client_certificate)
{
	prepare(&ways[_i], 0);
	snprintf(crl_path, sizeof(crl_path), "%s/crl.pem", pki.dir);
	conf.listener.tls.client_crl = crl_path;
	ck_assert_int_eq(test_pki_revoke(&pki, NULL, crl_path), 0);
	cluster_start();
	connect_first();
	ck_assert_int_eq(resumes(other_contexts), 1);
	disconnect();

	reload(&ecdsa); /* another's: sessions outlive a new CRL */
	ck_assert_int_eq(resumes(other_contexts), 1);
	disconnect();

	reload(&alice);
	connect_to(other_contexts, &config); /* not resumed, and refused in full */
	ck_assert_int_eq(agent.state, AGENT_FAILED);
	ck_assert_int_eq(memory_client_alert(client), SSL_AD_CERTIFICATE_REVOKED);
	ck_assert_int_eq(handshake_offered_certificate(agent.handshake), CERTIFICATE_REVOKED);
	disconnect();
	config.certificate = NULL;
	ck_assert_int_eq(resumes(other_contexts), 0);
	finish();
}
END_TEST

START_TEST(a_file_without_crls_is_named)
{
	char error[512];

	prepare(&ways[0], 0);
	conf.listener.tls.client_crl = pki.ca_path;
	contexts = tls_contexts_create(&conf.conf, &source.source, error, sizeof(error));
	ck_assert_ptr_null(contexts);
	ck_assert_msg(strstr(error, "key 'client_crl'") && strstr(error, "expected PEM CRLs"), "%s", error);
	test_identity_free(&alice);
	cluster_stop();
}
END_TEST

START_TEST(without_an_extended_master_secret_nothing_is_resumed)
{
	const struct way *way = &ways[1 + _i];

	prepare(way, 0);
	cluster_start();
	config.ems = CLIENT_WITHOUT_EMS;
	ck_assert_int_eq(resumes(contexts), 0);
	ck_assert_uint_eq(agent.handshake_facts.sessions_without_ems, way->tickets == CONF_OFF);
	ck_assert_uint_eq(source.shares, 0);
	config.resume = memory_client_session(client);
	ck_assert(!config.resume || !SSL_SESSION_has_ticket(config.resume));
	disconnect();
	ck_assert_int_eq(resumes(contexts), 0);
	finish();
}
END_TEST

START_TEST(where_it_is_optional_clients_without_it_resume)
{
	prepare(&ways[1 + _i], 0);
	conf.listener.tls.extended_master_secret = CONF_EMS_OPTIONAL;
	cluster_start();
	config.ems = CLIENT_WITHOUT_EMS;
	ck_assert_int_eq(resumes(contexts), 0);
	config.resume = memory_client_session(client);
	disconnect();
	ck_assert_int_eq(resumes(contexts), 1);
	finish();
}
END_TEST

/* RFC 7627 5.3. */
START_TEST(a_resumption_that_drops_the_extended_master_secret_is_refused)
{
	prepare(&ways[1 + _i], 0);
	cluster_start();
	connect_first();
	config.ems = CLIENT_WITHOUT_EMS;
	connect_to(contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_FAILED);
	finish();
}
END_TEST

/* --- its words --- */

START_TEST(a_certificate_is_told_in_words)
{
	struct certificate_words words;
	unsigned char *der = NULL;

	cluster_prepare();
	ck_assert_int_eq(test_pki_issue(&pki, "alice", TEST_ECDSA, NULL, 0, &alice), 0);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(alice.certificate), "O", MBSTRING_UTF8,
		(const unsigned char *)"a\r\nb: \xc3\xbc", -1, -1, 0);
	ASN1_INTEGER_set_int64(X509_get_serialNumber(alice.certificate), 0x5e550a);
	ck_assert_int_gt(X509_sign(alice.certificate, pki.ca_key, EVP_sha256()), 0);
	int len = i2d_X509(alice.certificate, &der);
	ck_assert_int_eq(certificate_words_read(der, (size_t)len, &words), 0);
	ck_assert_str_eq(words.common_name, "alice");
	ck_assert_str_eq(words.subject, "O=a\\0D\\0Ab: \\C3\\BC,CN=alice"); /* no byte of it can end a line */
	ck_assert_str_eq(words.serial, "5E550A");
	ck_assert_ptr_nonnull(strstr(words.issuer, "CN="));
	ck_assert_uint_eq(strlen(words.fingerprint), 64);
	certificate_words_clear(&words);
	ck_assert_int_lt(certificate_words_read(der, (size_t)len / 2, &words), 0);
	certificate_words_clear(&words);
	ck_assert_int_lt(certificate_words_read(NULL, 0, &words), 0);
	certificate_words_clear(&words);
	OPENSSL_free(der);
	test_identity_free(&alice);
	cluster_stop();
}
END_TEST

START_TEST(a_name_of_no_known_form_is_empty)
{
	X509_NAME *name = X509_NAME_new();
	char *text;

	ck_assert_int_eq(
		X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"abc", -1, -1, 0), 1);
	X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, 0))->type = V_ASN1_BMPSTRING; /* of two bytes each */
	text = certificate_name_text(name);
	ck_assert_str_eq(text, "");
	free(text);
	X509_NAME_free(name);
}
END_TEST

UNIT(client_certificate)
{
	Suite *s = suite_create("client_certificate");
	TCase *t = tcase_create("what a session rests on");
	SRunner *r = srunner_create(s);

	tcase_add_unchecked_fixture(t, pki_setup, pki_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, a_session_ends_with_the_client_certificate_that_it_rests_on, 0, WAYS);
	tcase_add_loop_test(t, a_full_handshake_in_its_place_verifies_anew, 0, WAYS);
	tcase_add_loop_test(t, a_session_ends_when_a_crl_names_its_client_certificate, 0, WAYS);
	tcase_add_test(t, a_file_without_crls_is_named);
	tcase_add_test(t, a_certificate_is_told_in_words);
	tcase_add_test(t, a_name_of_no_known_form_is_empty);
	tcase_add_loop_test(t, without_an_extended_master_secret_nothing_is_resumed, 0, 2);
	tcase_add_loop_test(t, where_it_is_optional_clients_without_it_resume, 0, 2);
	tcase_add_loop_test(t, a_resumption_that_drops_the_extended_master_secret_is_refused, 0, 2);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
