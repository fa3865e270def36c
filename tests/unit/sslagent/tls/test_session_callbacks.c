/* test_session_callbacks.c: sessions made at one agent and resumed at another, and everything that must keep a session
 * from being resumed. */
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/handshake_internal.h"
#include "tests/unit/sslagent/cluster/memory_cluster.h"
#include "tests/unit/unit.h"

static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
static struct memory_client_config config;

/* A client's first connection, to the first agent; its session is config.resume from then on, and both agents have it.
 */
static void connect_first(int version)
{
	config = (struct memory_client_config){
		.version = version, .server_name = "www.example.org", .tickets = CLIENT_NO_TICKETS
	};
	connect_to(contexts, &config);
	echo(10, 0);
	ck_assert_int_eq(agent.handshake_facts.kind, HANDSHAKE_FULL);
	config.resume = memory_client_session(client);
	ck_assert_ptr_nonnull(config.resume);
	disconnect();
	memory_source_copy(&other_source, &source);
}

static void start(int version)
{
	cluster_prepare();
	cluster_start();
	connect_first(version);
}

static void finish(void)
{
	SSL_SESSION_free(config.resume);
	cluster_stop();
}

/* Connect again; the connection works either way. */
static int resumes_at(struct tls_contexts *to)
{
	connect_to(to, &config);
	ck_assert_msg(agent.state == AGENT_OWNS, "%s", agent.error);
	echo(1000, 0);
	ck_assert_int_eq(
		agent.handshake_facts.kind == HANDSHAKE_RESUMED, SSL_session_reused(memory_client_ssl(client)));
	return SSL_session_reused(memory_client_ssl(client));
}

START_TEST(a_session_resumes_at_another_agent)
{
	int tls13 = versions[_i] == TLS1_3_VERSION;

	start(versions[_i]);
	ck_assert_int_eq(resumes_at(other_contexts), 1);
	ck_assert_int_eq(agent.handshake_facts.by, tls13 ? RESUMED_BY_PSK : RESUMED_BY_ID);
	ck_assert_str_eq(agent.facts.server_name, "www.example.org");
	ck_assert_uint_eq(agent.facts.session_id_len, SESSION_ID_LEN);
	ck_assert_uint_eq(other_source.shares, tls13 ? 1 : 0); /* its new ticket */
	disconnect();
	ck_assert_int_eq(resumes_at(other_contexts), 1); /* the same once more */
	finish();
}
END_TEST

START_TEST(a_session_carries_its_facts)
{
	struct sess_obj obj;

	start(versions[_i]);
	ck_assert_uint_eq(source.count, 1);
	ck_assert_int_eq(sess_obj_decode(source.sessions[0].bytes, source.sessions[0].len, &obj), 0);
	ck_assert_str_eq(obj.facts.origin, "a1");
	ck_assert_str_eq(obj.facts.listener, "web");
	ck_assert_str_eq(obj.facts.server_name, "www.example.org");
	ck_assert_uint_eq(obj.facts.protocol_version, (unsigned)versions[_i]);
	ck_assert_uint_eq(obj.facts.context_len, 32);
	ck_assert_uint_eq(obj.session_remaining_s, 7200);
	ck_assert_ptr_null(obj.live);
	sess_obj_destroy(&obj);
	finish();
}
END_TEST

START_TEST(children_are_of_their_parents_family)
{
	uint8_t family[FAMILY_ID_LEN];

	start(TLS1_3_VERSION);
	memory_source_age(&other_source, 500, 7200);
	for (int generation = 0; generation < 4; generation++) {
		ck_assert_int_eq(resumes_at(other_contexts), 1);
		if (generation == 0)
			memcpy(family, agent.facts.family_id, FAMILY_ID_LEN);
		ck_assert_mem_eq(family, agent.facts.family_id, FAMILY_ID_LEN);
		ck_assert_uint_ge(agent.facts.family_age_s, 500);
		ck_assert_uint_lt(agent.facts.family_age_s, 560);
		SSL_SESSION_free(config.resume);
		config.resume = memory_client_session(client);
		disconnect();
	}
	finish();
}
END_TEST

START_TEST(children_live_as_long_as_a_first_session)
{
	struct sess_obj obj;

	start(TLS1_3_VERSION);
	memory_source_age(&other_source, 7100, 100);
	ck_assert_int_eq(resumes_at(other_contexts), 1);
	struct memory_session *newest = &other_source.sessions[other_source.count - 1];
	ck_assert_int_eq(sess_obj_decode(newest->bytes, newest->len, &obj), 0);
	ck_assert_uint_eq(obj.session_remaining_s, 7200);
	ck_assert_uint_ge(obj.facts.family_age_s, 7100);
	sess_obj_destroy(&obj);
	finish();
}
END_TEST

START_TEST(a_family_that_is_too_old_does_not_resume)
{
	start(versions[_i]);
	other_source.family_age_max_s = 86400;
	memory_source_age(&other_source, 86000, 7200);
	ck_assert_int_eq(resumes_at(other_contexts), 1);
	disconnect();
	memory_source_age(&other_source, 86401, 7200);
	ck_assert_int_eq(resumes_at(other_contexts), 0);
	finish();
}
END_TEST

START_TEST(a_revoked_family_does_not_resume_nor_do_its_children)
{
	start(versions[_i]);
	ck_assert_int_eq(resumes_at(other_contexts), 1);
	memcpy(other_source.revoked, agent.facts.family_id, FAMILY_ID_LEN);
	other_source.revocation = FAMILY_REVOKED;
	SSL_SESSION *child = memory_client_session(client);
	disconnect();
	ck_assert_int_eq(resumes_at(other_contexts), 0);
	disconnect();
	if (child) {
		SSL_SESSION_free(config.resume);
		config.resume = child;
		ck_assert_int_eq(resumes_at(other_contexts), 0);
	}
	finish();
}
END_TEST

START_TEST(the_makers_clock_means_nothing)
{
	static const long offsets[] = { -100000, 100000 };

	start(versions[_i % 2]);
	struct memory_session *m = &other_source.sessions[0];
	struct sess_obj obj;
	ck_assert_int_eq(sess_obj_decode(m->bytes, m->len, &obj), 0);
	const unsigned char *at = obj.session;
	SSL_SESSION *s = d2i_SSL_SESSION(NULL, &at, (long)obj.session_len);
	SSL_SESSION_set_time(s, SSL_SESSION_get_time(s) + offsets[_i / 2]);
	unsigned char *der = NULL;
	obj.session_len = (size_t)i2d_SSL_SESSION(s, &der);
	obj.session = der;
	ptrdiff_t len = sess_obj_encoded_len(&obj);
	m->bytes = realloc(m->bytes, (size_t)len);
	m->len = (size_t)sess_obj_encode(&obj, m->bytes, (size_t)len);
	sess_obj_destroy(&obj);
	SSL_SESSION_free(s);
	OPENSSL_free(der);
	ck_assert_int_eq(resumes_at(other_contexts), 1);
	finish();
}
END_TEST

START_TEST(a_session_is_bound_to_its_server_name)
{
	start(versions[_i]);
	config.server_name = "other.example.net"; /* the same certificate */
	ck_assert_int_eq(resumes_at(other_contexts), 0);
	disconnect();
	config.server_name = NULL;
	ck_assert_int_eq(resumes_at(other_contexts), 0);
	finish();
}
END_TEST

static void restart_other(void)
{
	char error[512];

	tls_contexts_unref(other_contexts);
	other_contexts = tls_contexts_create(&conf.conf, &other_source.source, error, sizeof(error));
	ck_assert_msg(other_contexts != NULL, "%s", error);
}

START_TEST(a_session_is_bound_to_its_listener)
{
	static uint8_t bytes[SESS_OBJ_LEN_MAX];
	struct sess_obj obj;

	start(versions[_i]);
	struct memory_session *m = &other_source.sessions[0];
	ck_assert_int_eq(sess_obj_decode(m->bytes, m->len, &obj), 0);
	strcpy(obj.facts.listener, "mail");
	m->len = (size_t)sess_obj_encode(&obj, bytes, sizeof(bytes));
	m->bytes = realloc(m->bytes, m->len);
	memcpy(m->bytes, bytes, m->len);
	sess_obj_destroy(&obj);
	ck_assert_int_eq(resumes_at(other_contexts), 0);
	finish();
}
END_TEST

START_TEST(a_session_is_bound_to_its_certificate)
{
	struct test_identity other;

	start(versions[_i]);
	ck_assert_int_eq(test_pki_issue(&pki, "www", TEST_ECDSA, "www.example.org", 0, &other), 0);
	conf.certificates[0].chain = other.chain_path;
	conf.certificates[0].key = other.key_path;
	restart_other();
	ck_assert_int_eq(resumes_at(other_contexts), 0);
	test_identity_free(&other);
	finish();
}
END_TEST

START_TEST(a_session_is_bound_to_the_client_certificate_policy)
{
	start(versions[_i]);
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	restart_other();
	ck_assert_int_eq(resumes_at(other_contexts), 0);
	finish();
}
END_TEST

START_TEST(a_session_made_without_a_certificate_does_not_evade_the_need_for_one)
{
	cluster_prepare();
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	cluster_start();
	connect_first(versions[_i]);
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	restart_other();
	connect_to(other_contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_FAILED);
	finish();
}
END_TEST

START_TEST(a_resumed_session_keeps_the_clients_certificate)
{
	struct test_identity alice;

	cluster_prepare();
	ck_assert_int_eq(test_pki_issue(&pki, "alice", TEST_ECDSA, NULL, 0, &alice), 0);
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	cluster_start();
	config = (struct memory_client_config){
		.version = versions[_i], .certificate = alice.certificate, .key = alice.key
	};
	connect_to(contexts, &config);
	echo(10, 0);
	config.resume = memory_client_session(client);
	disconnect();
	memory_source_copy(&other_source, &source);
	ck_assert_int_eq(resumes_at(other_contexts), 1);
	ck_assert_uint_gt(agent.certificate_len, 0);
	ck_assert_int_eq(agent.facts.verify_result, X509_V_OK);
	test_identity_free(&alice);
	finish();
}
END_TEST

START_TEST(an_answer_with_another_id_is_never_believed)
{
	start(versions[_i]);
	SSL_SESSION *first = config.resume;
	connect_first(versions[_i]);
	/* The newest id leads to the first session, whose object says its own id of itself, or the newest. */
	struct memory_session *wrong = &other_source.sessions[0],
			      *asked = &other_source.sessions[other_source.count - 1];
	struct sess_obj obj;
	ck_assert_int_eq(sess_obj_decode(wrong->bytes, wrong->len, &obj), 0);
	for (int masked = 0; masked < 2; masked++) {
		if (masked)
			memcpy(obj.facts.session_id, asked->id, SESSION_ID_LEN);
		asked->bytes = realloc(asked->bytes, wrong->len);
		asked->len = (size_t)sess_obj_encode(&obj, asked->bytes, wrong->len);
		ck_assert_int_eq(resumes_at(other_contexts), 0);
		ck_assert_uint_gt(other_source.finds, 0);
		disconnect();
	}
	sess_obj_destroy(&obj);
	SSL_SESSION_free(first);
	finish();
}
END_TEST

static void continue_parked(enum session_answer answer)
{
	memory_agent_continue(&agent, answer);
	memory_exchange(client, &agent, 0, got, sizeof(got));
}

START_TEST(a_session_that_is_elsewhere_parks_the_handshake)
{
	start(versions[_i]);
	memory_source_place(&other_source, MEMORY_ELSEWHERE);
	connect_to(other_contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_IS_PARKED);
	ck_assert_uint_eq(agent.output_len, 0);
	ck_assert_mem_eq(handshake_wanted_id(agent.handshake), other_source.sessions[0].id, SESSION_ID_LEN);
	memory_source_place(&other_source, MEMORY_HERE);
	continue_parked(SESSION_FOUND);
	echo(1000, 0);
	ck_assert_int_eq(SSL_session_reused(memory_client_ssl(client)), 1);
	finish();
}
END_TEST

START_TEST(a_parked_handshake_goes_on_as_a_full_one_and_parks_once)
{
	start(versions[_i]);
	memory_source_place(&other_source, MEMORY_ELSEWHERE);
	connect_to(other_contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_IS_PARKED);
	continue_parked(SESSION_ABSENT);
	echo(1000, 0);
	ck_assert_int_eq(agent.state, AGENT_OWNS);
	ck_assert_int_eq(SSL_session_reused(memory_client_ssl(client)), 0);
	finish();
}
END_TEST

/* Between the end of the pull and its handshake, other agents became its only holders. */
START_TEST(a_session_that_came_and_is_gone_parks_it_once_more)
{
	start(versions[_i]);
	memory_source_place(&other_source, MEMORY_ELSEWHERE);
	connect_to(other_contexts, &config);
	continue_parked(SESSION_FOUND);
	ck_assert_int_eq(agent.state, AGENT_IS_PARKED);
	ck_assert_mem_eq(handshake_wanted_id(agent.handshake), other_source.sessions[0].id, SESSION_ID_LEN);
	memory_source_place(&other_source, MEMORY_HERE);
	continue_parked(SESSION_FOUND);
	echo(1000, 0);
	ck_assert_int_eq(SSL_session_reused(memory_client_ssl(client)), 1);
	finish();
}
END_TEST

START_TEST(a_session_that_is_gone_each_time_makes_a_full_handshake)
{
	start(versions[_i]);
	memory_source_place(&other_source, MEMORY_ELSEWHERE);
	connect_to(other_contexts, &config);
	for (unsigned pulls = 0; pulls < 2; pulls++)
		continue_parked(SESSION_FOUND);
	echo(1000, 0);
	ck_assert_int_eq(agent.state, AGENT_OWNS);
	ck_assert_int_eq(SSL_session_reused(memory_client_ssl(client)), 0);
	finish();
}
END_TEST

START_TEST(parking_survives_a_hello_retry_request)
{
	cluster_prepare();
	conf.listener.tls.groups = (char *)"P-384";
	cluster_start();
	connect_first(TLS1_3_VERSION);
	config.groups = "X25519:P-384";
	memory_source_place(&other_source, MEMORY_ELSEWHERE);
	connect_to(other_contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_IS_PARKED);
	memory_source_place(&other_source, MEMORY_HERE);
	continue_parked(SESSION_FOUND);
	echo(1000, 0);
	ck_assert_int_eq(SSL_session_reused(memory_client_ssl(client)), 1);
	finish();
}
END_TEST

START_TEST(a_parked_handshake_can_be_dropped)
{
	start(versions[_i]);
	memory_source_place(&other_source, MEMORY_ELSEWHERE);
	connect_to(other_contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_IS_PARKED);
	ck_assert_int_eq(handshake_feed(agent.handshake, (const uint8_t *)"x", 1), CSSL_E_STATE);
	finish();
}
END_TEST

START_TEST(a_fresh_tls13_hello_asks_for_nothing)
{
	cluster_prepare();
	cluster_start();
	config = (struct memory_client_config){ 0 }; /* offers both versions, with a legacy session id */
	connect_to(contexts, &config);
	ck_assert_int_eq(agent.facts.protocol_version, TLS1_3_VERSION);
	ck_assert_uint_eq(source.finds, 0);
	cluster_stop();
}
END_TEST

START_TEST(a_refused_session_is_counted_and_the_connection_goes_on)
{
	cluster_prepare();
	cluster_start();
	source.sharing = SHARE_REFUSES;
	config = (struct memory_client_config){ .version = versions[_i] };
	connect_to(contexts, &config);
	ck_assert_uint_eq(agent.handshake_facts.sessions_refused, 1);
	echo(1000, 0);
	cluster_stop();
}
END_TEST

/* A certificate whose DER is @len bytes, give or take what ECDSA signatures differ by. */
static void issue_large(size_t len, struct test_identity *out)
{
	size_t padding = 1000;

	ck_assert_int_eq(test_pki_issue(&pki, "large", TEST_ECDSA, NULL, padding, out), 0);
	padding += len - (size_t)i2d_X509(out->certificate, NULL);
	test_identity_free(out);
	ck_assert_int_eq(test_pki_issue(&pki, "large", TEST_ECDSA, NULL, padding, out), 0);
}

START_TEST(a_session_too_large_for_a_sess_obj_is_refused)
{
	struct test_identity large;

	cluster_prepare();
	issue_large(CERTIFICATE_MAX - 20, &large); /* with keys and times around it it is more */
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	cluster_start();
	config = (struct memory_client_config){
		.version = versions[_i], .certificate = large.certificate, .key = large.key
	};
	connect_to(contexts, &config);
	ck_assert_msg(agent.state == AGENT_OWNS, "%s", agent.error);
	ck_assert_uint_eq(agent.handshake_facts.sessions_refused, 1);
	ck_assert_uint_eq(source.count, 0);
	echo(1000, 0);
	test_identity_free(&large);
	cluster_stop();
}
END_TEST

START_TEST(a_certificate_that_could_not_move_is_refused)
{
	struct test_identity large;

	cluster_prepare();
	issue_large(CERTIFICATE_MAX + 20, &large);
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	cluster_start();
	config = (struct memory_client_config){
		.version = versions[_i], .certificate = large.certificate, .key = large.key
	};
	connect_to(contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_FAILED);
	ck_assert_msg(strstr(agent.error, "too large"), "%s", agent.error);
	test_identity_free(&large);
	cluster_stop();
}
END_TEST

START_TEST(connections_without_a_session_have_a_family_too)
{
	static const uint8_t none[FAMILY_ID_LEN];

	cluster_prepare();
	conf.listener.tls.tickets = 0;
	cluster_start();
	config = (struct memory_client_config){ .version = TLS1_3_VERSION };
	connect_to(contexts, &config);
	ck_assert_uint_eq(agent.facts.session_id_len, 0);
	ck_assert_mem_ne(agent.facts.family_id, none, FAMILY_ID_LEN);
	cluster_stop();
}
END_TEST

UNIT(session_callbacks)
{
	Suite *s = suite_create("session_callbacks");
	TCase *t = tcase_create("sessions");
	SRunner *r = srunner_create(s);

	tcase_add_unchecked_fixture(t, pki_setup, pki_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, a_session_resumes_at_another_agent, 0, 2);
	tcase_add_loop_test(t, a_session_carries_its_facts, 0, 2);
	tcase_add_test(t, children_are_of_their_parents_family);
	tcase_add_test(t, children_live_as_long_as_a_first_session);
	tcase_add_loop_test(t, a_family_that_is_too_old_does_not_resume, 0, 2);
	tcase_add_loop_test(t, a_revoked_family_does_not_resume_nor_do_its_children, 0, 2);
	tcase_add_loop_test(t, the_makers_clock_means_nothing, 0, 4);
	tcase_add_loop_test(t, a_session_is_bound_to_its_server_name, 0, 2);
	tcase_add_loop_test(t, a_session_is_bound_to_its_listener, 0, 2);
	tcase_add_loop_test(t, a_session_is_bound_to_its_certificate, 0, 2);
	tcase_add_loop_test(t, a_session_is_bound_to_the_client_certificate_policy, 0, 2);
	tcase_add_loop_test(t, a_session_made_without_a_certificate_does_not_evade_the_need_for_one, 0, 2);
	tcase_add_loop_test(t, a_resumed_session_keeps_the_clients_certificate, 0, 2);
	tcase_add_loop_test(t, an_answer_with_another_id_is_never_believed, 0, 2);
	tcase_add_loop_test(t, a_session_that_is_elsewhere_parks_the_handshake, 0, 2);
	tcase_add_loop_test(t, a_parked_handshake_goes_on_as_a_full_one_and_parks_once, 0, 2);
	tcase_add_loop_test(t, a_session_that_came_and_is_gone_parks_it_once_more, 0, 2);
	tcase_add_loop_test(t, a_session_that_is_gone_each_time_makes_a_full_handshake, 0, 2);
	tcase_add_test(t, parking_survives_a_hello_retry_request);
	tcase_add_loop_test(t, a_parked_handshake_can_be_dropped, 0, 2);
	tcase_add_test(t, a_fresh_tls13_hello_asks_for_nothing);
	tcase_add_loop_test(t, a_refused_session_is_counted_and_the_connection_goes_on, 0, 2);
	tcase_add_loop_test(t, a_session_too_large_for_a_sess_obj_is_refused, 0, 2);
	tcase_add_loop_test(t, a_certificate_that_could_not_move_is_refused, 0, 2);
	tcase_add_test(t, connections_without_a_session_have_a_family_too);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
