/* test_ticket_callbacks.c: TLS 1.2 tickets under cluster keys, for clients that resume by nothing else. */
#include <string.h>

#include "sslagent/tls/handshake_internal.h"
#include "tests/unit/sslagent/cluster/memory_cluster.h"
#include "tests/unit/unit.h"

static struct memory_client_config config;

static void start(enum conf_switch tickets, int version)
{
	cluster_prepare();
	conf.listener.tls.tls12_tickets = tickets;
	cluster_start();
	config = (struct memory_client_config){ .version = version, .server_name = "www.example.org" };
	connect_to(contexts, &config);
	echo(10, 0);
	config.resume = memory_client_session(client);
	ck_assert_ptr_nonnull(config.resume);
}

static int has_ticket(void)
{
	return SSL_SESSION_has_ticket(config.resume);
}

static void finish(void)
{
	SSL_SESSION_free(config.resume);
	cluster_stop();
}

/* Nothing is copied between the agents' sources: only keys are shared. */
static int resumes_at_other(void)
{
	disconnect();
	connect_to(other_contexts, &config);
	ck_assert_msg(agent.state == AGENT_OWNS, "%s", agent.error);
	echo(1000, 0);
	return SSL_session_reused(memory_client_ssl(client));
}

START_TEST(a_tls12_ticket_resumes_at_another_agent_without_the_store)
{
	uint8_t family[FAMILY_ID_LEN];

	start(CONF_ON, TLS1_2_VERSION);
	ck_assert(has_ticket());
	ck_assert_uint_eq(source.shares, 0);
	ck_assert_uint_eq(agent.facts.session_id_len, 0);
	memcpy(family, agent.facts.family_id, FAMILY_ID_LEN);
	ck_assert_int_eq(resumes_at_other(), 1);
	ck_assert_int_eq(agent.handshake_facts.by, RESUMED_BY_TICKET);
	ck_assert_mem_eq(agent.facts.family_id, family, FAMILY_ID_LEN);
	ck_assert_uint_eq(agent.facts.session_id_len, 0);
	finish();
}
END_TEST

START_TEST(where_tickets_are_off_none_is_given)
{
	start(CONF_OFF, TLS1_2_VERSION);
	ck_assert(!has_ticket());
	ck_assert_uint_eq(source.shares, 1);
	finish();
}
END_TEST

START_TEST(a_client_without_the_extension_resumes_by_id)
{
	cluster_prepare();
	conf.listener.tls.tls12_tickets = CONF_ON;
	cluster_start();
	config = (struct memory_client_config){ .version = TLS1_2_VERSION, .tickets = CLIENT_NO_TICKETS };
	connect_to(contexts, &config);
	echo(10, 0);
	config.resume = memory_client_session(client);
	memory_source_copy(&other_source, &source);
	ck_assert_int_eq(resumes_at_other(), 1);
	ck_assert_int_eq(agent.handshake_facts.by, RESUMED_BY_ID);
	finish();
}
END_TEST

START_TEST(tls13_tickets_stay_stateful)
{
	start(CONF_ON, TLS1_3_VERSION);
	ck_assert_uint_eq(source.shares, 1);
	ck_assert_int_eq(resumes_at_other(), 0); /* its source does not have it */
	memory_source_copy(&other_source, &source);
	ck_assert_int_eq(resumes_at_other(), 1);
	ck_assert_int_eq(agent.handshake_facts.by, RESUMED_BY_PSK);
	finish();
}
END_TEST

START_TEST(a_ticket_under_an_unknown_key_is_no_ticket)
{
	start(CONF_ON, TLS1_2_VERSION);
	other_source.ticket_secret = 0x17;
	ck_assert_int_eq(resumes_at_other(), 0);
	finish();
}
END_TEST

START_TEST(a_ticket_of_a_revoked_family_does_not_resume)
{
	start(CONF_ON, TLS1_2_VERSION);
	memcpy(other_source.revoked, agent.facts.family_id, FAMILY_ID_LEN);
	other_source.revocation = FAMILY_REVOKED;
	ck_assert_int_eq(resumes_at_other(), 0);
	/* The full handshake began another family. */
	ck_assert_mem_ne(agent.facts.family_id, other_source.revoked, FAMILY_ID_LEN);
	finish();
}
END_TEST

START_TEST(a_ticket_is_bound_to_its_server_name)
{
	start(CONF_ON, TLS1_2_VERSION);
	config.server_name = "other.example.net";
	ck_assert_int_eq(resumes_at_other(), 0);
	finish();
}
END_TEST

START_TEST(a_damaged_ticket_makes_a_full_handshake)
{
	start(CONF_ON, TLS1_2_VERSION);
	const unsigned char *ticket;
	size_t len;
	SSL_SESSION_get0_ticket(config.resume, &ticket, &len);
	((unsigned char *)ticket)[_i == 0 ? 0 : _i == 1 ? 20 : len - 1] ^= 1; /* name, iv, mac */
	ck_assert_int_eq(resumes_at_other(), 0);
	finish();
}
END_TEST

UNIT(ticket_callbacks)
{
	Suite *s = suite_create("ticket_callbacks");
	TCase *t = tcase_create("tickets");
	SRunner *r = srunner_create(s);

	tcase_add_unchecked_fixture(t, pki_setup, pki_teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, a_tls12_ticket_resumes_at_another_agent_without_the_store);
	tcase_add_test(t, where_tickets_are_off_none_is_given);
	tcase_add_test(t, a_client_without_the_extension_resumes_by_id);
	tcase_add_test(t, tls13_tickets_stay_stateful);
	tcase_add_test(t, a_ticket_under_an_unknown_key_is_no_ticket);
	tcase_add_test(t, a_ticket_of_a_revoked_family_does_not_resume);
	tcase_add_test(t, a_ticket_is_bound_to_its_server_name);
	tcase_add_loop_test(t, a_damaged_ticket_makes_a_full_handshake, 0, 3);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
