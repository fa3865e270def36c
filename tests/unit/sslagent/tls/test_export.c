/* test_export.c: a connection leaves OpenSSL and lives on in the record layer, with OpenSSL as the client: every suite,
 * full and resumed, with moves. */
#include "proto/cipher_suite.h"
#include "proto/error.h"
#include "sslagent/tls/own_provider.h"
#include "tests/unit/sslagent/cluster/memory_cluster.h"
#include "tests/unit/unit.h"

/* Each suite full and resumed. */
struct row {
	const struct cipher_suite *suite;
	enum { FULL, RESUMED } how;
};

static struct row row_at(int i)
{
	unsigned count;
	const struct cipher_suite *all = cipher_suites(&count);

	return (struct row){ &all[(unsigned)i / 2], i % 2 ? RESUMED : FULL };
}

static struct memory_client_config config_of(const struct cipher_suite *suite)
{
	return (struct memory_client_config){
		.suite = suite->id, .version = suite->protocol_version, .server_name = "www.example.org", .ca = pki.ca
	};
}

/* Full, or full and then resumed at the other agent. */
static void connect_row(const struct row *row, struct memory_client_config config, size_t step)
{
	connect_step(contexts, &config, step);
	if (row->how == FULL)
		return;
	echo(10, 0);
	config.resume = memory_client_session(client);
	ck_assert_ptr_nonnull(config.resume);
	disconnect();
	memory_source_copy(&other_source, &source);
	connect_step(other_contexts, &config, step);
	SSL_SESSION_free(config.resume);
	ck_assert_int_eq(SSL_session_reused(memory_client_ssl(client)), 1);
}

static void start(const struct row *row, size_t step)
{
	cluster_prepare();
	cluster_start();
	connect_row(row, config_of(row->suite), step);
	ck_assert_msg(agent.state == AGENT_OWNS, "%s: %s", row->suite->name, agent.error);
}

START_TEST(data_crosses_after_the_export)
{
	struct row row = row_at(_i);

	start(&row, 0);
	ck_assert_uint_eq(agent.facts.cipher_suite, row.suite->id);
	ck_assert_uint_eq(agent.facts.protocol_version, row.suite->protocol_version);
	ck_assert_int_eq(agent.handshake_facts.kind, row.how == FULL ? HANDSHAKE_FULL : HANDSHAKE_RESUMED);
	echo(1, 0);
	echo(100, 0);
	echo(300000, 0);
	memory_agent_close(&agent);
	memory_exchange(client, &agent, 0, got, sizeof(got));
	ck_assert_int_eq(memory_client_end(client), CLIENT_CLOSE_NOTIFY);
	cluster_stop();
}
END_TEST

START_TEST(single_bytes_on_the_wire_make_no_difference)
{
	struct row row = row_at(_i);

	start(&row, 1);
	echo(3000, 1);
	cluster_stop();
}
END_TEST

START_TEST(data_behind_the_clients_finished_is_not_lost)
{
	static const char requests[] = "GET /1 GET /2 GET /3";
	struct row row = row_at(_i);

	cluster_prepare();
	cluster_start();
	struct memory_client_config config = config_of(row.suite);
	connect_row(&row, config, 0);
	if (row.how == FULL) { /* again, now with everything at once */
		disconnect();
		ck_assert_int_eq(memory_agent_start(&agent, contexts, pool), 0);
		client = memory_client_create(&config);
		while (memory_client_handshake(client) == 0) {
			const uint8_t *data;
			size_t len = memory_client_output(client, &data);
			memory_agent_feed(&agent, data, len);
			memory_client_output_taken(client, len);
			memory_client_feed(client, agent.output, agent.output_len);
			agent.output_len = 0;
		}
	}
	for (int i = 0; i < 3; i++) {
		if (row.suite->protocol_version == TLS1_3_VERSION)
			memory_client_update_keys(client, i & 1);
		memory_client_write(client, requests + 7 * i, 6);
	}
	ck_assert_uint_eq(memory_exchange(client, &agent, 0, got, sizeof(got)), 18);
	ck_assert_mem_eq(got, "GET /1GET /2GET /3", 18);
	cluster_stop();
}
END_TEST

START_TEST(a_connection_moves_between_agents_in_mid_stream)
{
	struct row row = row_at(_i);

	start(&row, 0);
	for (int i = 0; i < 6; i++) {
		echo(50000, 0);
		memory_agent_move(&agent, i % 2 ? pool : other_pool, LIVE_CONTINUES);
		echo(1, 0);
	}
	cluster_stop();
}
END_TEST

START_TEST(key_updates_before_during_and_after_moves_are_followed)
{
	struct row row = row_at(_i);

	start(&row, 0);
	for (int i = 0; i < 6 && row.suite->protocol_version == TLS1_3_VERSION; i++) {
		memory_client_update_keys(client, i % 2);
		if (i % 3 == 0) /* the client's update arrives behind the move */
			memory_agent_move(&agent, i % 2 ? pool : other_pool, LIVE_CONTINUES);
		echo(20000, 0);
		memory_agent_update_keys(&agent);
		memory_agent_move(&agent, i % 2 ? other_pool : pool, LIVE_CONTINUES);
		echo(20000, 0);
	}
	cluster_stop();
}
END_TEST

START_TEST(a_takeover_goes_on_where_it_is_safe)
{
	struct row row = row_at(_i);

	start(&row, 0);
	if (row.suite->protocol_version == TLS1_3_VERSION || row.suite->iv_len < AEAD_IV_LEN) {
		echo(1000, 0);
		memory_agent_move(&agent, other_pool, LIVE_TAKES_OVER);
		echo(1000, 0);
	}
	cluster_stop();
}
END_TEST

START_TEST(max_fragment_length_is_kept_after_the_export)
{
	struct row row = row_at(_i);

	cluster_prepare();
	cluster_start();
	for (unsigned max = 512; max <= 4096; max *= 2) {
		struct memory_client_config config = config_of(row.suite);
		config.max_fragment = max;
		connect_row(&row, config, 0);
		ck_assert_uint_eq(agent.part.max_fragment, max);
		echo(20000, 0);
		disconnect();
	}
	cluster_stop();
}
END_TEST

/* Bytes in a record: each one alone; the parts of Finished apart from each other; everything together. */
static const size_t record_lens[] = { 1, 7, 15, 16384 };

static unsigned records_of_finished(const struct cipher_suite *suite, size_t record_len)
{
	const unsigned finished_len = 4 + 12; /* RFC 5246 7.4.9 */

	return suite->protocol_version == TLS1_3_VERSION ? 0 : (unsigned)((finished_len + record_len - 1) / record_len);
}

START_TEST(handshake_messages_come_in_records_of_any_length)
{
	struct row row = row_at(_i);

	cluster_prepare();
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	cluster_start();
	for (unsigned i = 0; i < sizeof record_lens / sizeof record_lens[0]; i++) {
		struct memory_client_config config = config_of(row.suite);
		config.record_len = record_lens[i];
		config.certificate = ecdsa.certificate;
		config.key = ecdsa.key;
		connect_row(&row, config, 0);
		ck_assert_msg(agent.state == AGENT_OWNS, "%s: %s", row.suite->name, agent.error);
		ck_assert_uint_eq(agent.part.read_sequence, records_of_finished(row.suite, record_lens[i]));
		echo(3000, 0);
		memory_agent_move(&agent, other_pool, LIVE_CONTINUES);
		echo(1, 0);
		disconnect();
	}
	cluster_stop();
}
END_TEST

/* In a resumption of TLS 1.2 Finished follows the hello, encrypted: of 256 one begins as a hello does. */
START_TEST(no_ciphertext_is_taken_for_a_hello)
{
	struct memory_client_config config = config_of(cipher_suite_find(0xc02b));

	cluster_prepare();
	cluster_start();
	connect_to(contexts, &config);
	config.resume = memory_client_session(client);
	disconnect();
	for (unsigned i = 0; i < 1000; i++) {
		connect_to(contexts, &config);
		ck_assert_msg(agent.state == AGENT_OWNS, "%s", agent.error);
		ck_assert_int_eq(agent.handshake_facts.kind, HANDSHAKE_RESUMED);
		disconnect();
	}
	SSL_SESSION_free(config.resume);
	cluster_stop();
}
END_TEST

START_TEST(write_sequence_counts_ticket_records)
{
	static const unsigned expected[5] = { 0, 1, 2, 3, 4 };

	cluster_prepare();
	conf.listener.tls.tickets = (unsigned)_i;
	cluster_start();
	struct memory_client_config config = { .version = TLS1_3_VERSION };
	connect_to(contexts, &config);
	ck_assert_uint_eq(agent.part.write_sequence, expected[_i]);
	echo(10, 0);
	ck_assert_uint_eq(memory_client_sessions(client), expected[_i]);
	ck_assert_uint_eq(source.shares, expected[_i]);
	cluster_stop();
}
END_TEST

START_TEST(a_hello_retry_request_changes_nothing)
{
	cluster_prepare();
	conf.listener.tls.groups = (char *)"P-384";
	cluster_start();
	struct memory_client_config config = { .version = TLS1_3_VERSION, .groups = "X25519:P-384" };
	connect_to(contexts, &config);
	ck_assert_int_eq(agent.state, AGENT_OWNS);
	echo(1000, 0);
	/* and with a session to be resumed behind it */
	config.resume = memory_client_session(client);
	disconnect();
	connect_to(contexts, &config);
	ck_assert_int_eq(SSL_session_reused(memory_client_ssl(client)), 1);
	echo(1000, 0);
	SSL_SESSION_free(config.resume);
	cluster_stop();
}
END_TEST

/* With the cluster file's switch off the traffic secrets come by another way. */
START_TEST(openssls_own_key_schedule_is_exported_too)
{
	struct row row = row_at(_i);

	for (unsigned tickets = 0; tickets <= 3; tickets += 3) {
		cluster_prepare();
		conf.conf.own_provider = CONF_OFF;
		conf.listener.tls.tickets = tickets;
		cluster_start();
		if (tickets > 0 || row.how == FULL)
			connect_row(&row, config_of(row.suite), 0);
		if (client) {
			ck_assert_msg(agent.state == AGENT_OWNS, "%s: %s", row.suite->name, agent.error);
			echo(1, 0);
			echo(100000, 0);
			disconnect();
		}
		cluster_stop();
	}
}
END_TEST

/* Until it is complete; its last output is not taken. */
static void shake_hands(struct handshake *h)
{
	const uint8_t *data;
	int step = HANDSHAKE_MORE;

	while (step == HANDSHAKE_MORE) {
		struct tls_record_header r;
		memory_client_handshake(client);
		size_t len = memory_client_output(client, &data);
		ck_assert_int_eq(tls_record_scan(data, len, &r), 0);
		step = handshake_feed(h, data, TLS_RECORD_HEADER_LEN + r.length);
		memory_client_output_taken(client, TLS_RECORD_HEADER_LEN + r.length);
		if (step == HANDSHAKE_DONE)
			break;
		len = handshake_output(h, &data);
		memory_client_feed(client, data, len);
		handshake_output_taken(h, len);
	}
	ck_assert_int_eq(step, HANDSHAKE_DONE);
}

static void on_key_block(void *count, enum own_derived what, const uint8_t *block, size_t len)
{
	++*(unsigned *)count;
}

START_TEST(an_export_of_tls12_derives_no_key_block_again)
{
	struct memory_client_config config = { .version = TLS1_2_VERSION };
	struct handshake_params params = { 0 };
	struct handshake_facts facts;
	struct sess_obj obj;
	unsigned derived = 0;
	const uint8_t *data;

	cluster_prepare();
	cluster_start();
	struct handshake *h = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
	client = memory_client_create(&config);
	shake_hands(h);
	handshake_output_taken(h, handshake_output(h, &data));
	own_derivations_watch(on_key_block, &derived);
	ck_assert_int_eq(handshake_export(h, &obj, &facts), 0);
	own_derivations_watch(NULL, NULL);
	ck_assert_uint_eq(derived, 0);
	handshake_destroy(h);
	cluster_stop();
}
END_TEST

START_TEST(an_export_waits_for_the_output_and_happens_once)
{
	struct sess_obj obj;
	struct handshake_facts facts;
	const uint8_t *data;

	cluster_prepare();
	cluster_start();
	struct memory_client_config config = { 0 };
	connect_to(contexts, &config);
	ck_assert_int_eq(handshake_export(agent.handshake, &obj, &facts), CSSL_E_STATE); /* the second */
	disconnect();

	struct handshake_params params = { 0 };
	struct handshake *h = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
	client = memory_client_create(&config);
	ck_assert_int_eq(handshake_export(h, &obj, &facts), CSSL_E_STATE); /* too early */
	shake_hands(h);
	ck_assert_int_eq(handshake_export(h, &obj, &facts), CSSL_E_STATE); /* the ticket was not taken */
	handshake_output_taken(h, handshake_output(h, &data));
	ck_assert_int_eq(handshake_export(h, &obj, &facts), 0);
	handshake_destroy(h);
	cluster_stop();
}
END_TEST

UNIT(export)
{
	Suite *s = suite_create("export");
	TCase *each = tcase_create("each suite, full and resumed"), *one = tcase_create("one suite");
	SRunner *r = srunner_create(s);
	unsigned count;
	cipher_suites(&count);
	int n = (int)count * 2;

	tcase_add_unchecked_fixture(each, pki_setup, pki_teardown);
	tcase_add_unchecked_fixture(one, pki_setup, pki_teardown);
	tcase_set_timeout(each, 60);
	tcase_add_loop_test(each, data_crosses_after_the_export, 0, n);
	tcase_add_loop_test(each, single_bytes_on_the_wire_make_no_difference, 0, n);
	tcase_add_loop_test(each, data_behind_the_clients_finished_is_not_lost, 0, n);
	tcase_add_loop_test(each, a_connection_moves_between_agents_in_mid_stream, 0, n);
	tcase_add_loop_test(each, key_updates_before_during_and_after_moves_are_followed, 0, n);
	tcase_add_loop_test(each, a_takeover_goes_on_where_it_is_safe, 0, n);
	tcase_add_loop_test(each, handshake_messages_come_in_records_of_any_length, 0, n);
	tcase_add_loop_test(each, max_fragment_length_is_kept_after_the_export, 0, n);
	tcase_add_loop_test(each, openssls_own_key_schedule_is_exported_too, 0, n);
	tcase_add_test(one, no_ciphertext_is_taken_for_a_hello);
	tcase_add_loop_test(one, write_sequence_counts_ticket_records, 0, 5);
	tcase_add_test(one, a_hello_retry_request_changes_nothing);
	tcase_add_test(one, an_export_of_tls12_derives_no_key_block_again);
	tcase_add_test(one, an_export_waits_for_the_output_and_happens_once);
	suite_add_tcase(s, each);
	suite_add_tcase(s, one);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
