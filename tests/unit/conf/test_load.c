/* test_load.c: facts of loading a cluster file: values, defaults, and each kind of fault with its whole message. */
#include <stdlib.h>

#include "proto/error.h"
#include "tests/unit/conf/cluster_text.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

START_TEST(the_silent_file_has_the_defaults)
{
	struct conf *c = good(cluster_text);
	const struct conf_listener *l = conf_listener_find(c, "sf");
	ck_assert_int_eq(c->log.format, LOG_TEXT);
	ck_assert_int_eq(c->log.level, LOG_INFO);
	ck_assert_ptr_null(c->log.path);
	ck_assert_uint_eq(c->limits.connections, CONF_DERIVED);
	ck_assert_uint_eq(c->limits.connections_per_source, 0);
	ck_assert_uint_eq(c->limits.handshakes, CONF_DERIVED);
	ck_assert_uint_eq(c->limits.handshakes_per_source, CONF_DERIVED);
	ck_assert_uint_eq(c->limits.kept_len, CONF_DERIVED_SIZE);
	ck_assert_uint_eq(c->limits.request_head_timeout_ms, 20000);
	ck_assert_uint_eq(c->limits.handshake_timeout_ms, 10000);
	ck_assert_uint_eq(c->limits.agent_wait_ms, 5000);
	ck_assert_uint_eq(c->limits.idle_timeout_ms, 300000);
	ck_assert_uint_eq(c->limits.doze_after_ms, 5000);
	ck_assert_uint_eq(c->limits.backend_connect_timeout_ms, 5000);
	ck_assert_uint_eq(c->limits.window_len, 65536);
	ck_assert_uint_eq(c->health.ping_ms, 200);
	ck_assert_uint_eq(c->health.suspect_ms, 1000);
	ck_assert_uint_eq(c->health.lost_ms, 3000);
	ck_assert_uint_eq(c->store.bytes, 268435456);
	ck_assert_uint_eq(c->store.per_source_percent, 25);
	ck_assert_int_eq(c->broadcast.live, CONF_LIVE_BROADCAST);
	ck_assert_uint_eq(c->broadcast.live_keep_s, 60);
	ck_assert_uint_eq(c->broadcast.remember_s, 600);
	ck_assert_uint_eq(c->broadcast.park_ms, 100);
	ck_assert_uint_eq(c->broadcast.parked_max, 256);
	ck_assert_uint_eq(c->broadcast.alone_after_ms, 1000);
	ck_assert_int_eq(c->agents[0].link_protection, LINK_SEALED);
	ck_assert_int_eq(c->agents[0].link_bytes, LINK_BYTES_IN_MEMORY);
	ck_assert_double_eq(c->agents[0].weight, 1);
	ck_assert_int_eq(c->agents[0].backend_source.ss_family, 0);
	ck_assert_int_eq(l->mode, CONF_SF);
	ck_assert_int_eq(l->migration, CONF_MIGRATION_ON);
	ck_assert_int_eq(l->handshake, CONF_ROUND_ROBIN);
	ck_assert_int_eq(l->resumption, CONF_LOCAL);
	ck_assert_double_eq(l->affinity_bound, 1.25);
	ck_assert_int_eq(l->service, CONF_HTTP);
	ck_assert_int_eq(l->proxy_protocol, CONF_OFF);
	ck_assert_uint_eq(l->tls.version_min, 0x0303);
	ck_assert_uint_eq(l->tls.version_max, 0x0304);
	ck_assert_int_eq(l->tls.tls12_tickets, CONF_OFF);
	ck_assert_uint_eq(l->tls.tickets, 1);
	ck_assert_uint_eq(l->tls.session_lifetime_s, 7200);
	ck_assert_ptr_null(l->tls.client_ca);
	conf_destroy(c);
}
END_TEST

START_TEST(values_of_the_file_are_found)
{
	struct conf *c = good(cluster_text);
	char text[ADDRESS_TEXT_MAX];
	ck_assert_str_eq(c->file.path, "etc/c.yaml");
	ck_assert_uint_eq(conf_ragent_find(c, "r1")->workers, 2);
	ck_assert_uint_eq(conf_agent_find(c, "a2")->workers, 1);
	ck_assert_uint_eq(conf_line(&c->file, &conf_agent_find(c, "a2")->name), 10);
	ck_assert_str_eq(conf_backend_find(c, "web")->name, "web");
	ck_assert_str_eq(conf_certificate_find(c, "main")->chain, "etc/main.pem");
	ck_assert_uint_eq(c->listeners[0].listen.count, 2);
	ck_assert_str_eq(address_format((struct sockaddr *)&c->listeners[0].listen.at[1], text), "[::1]:8443");
	ck_assert_str_eq(c->listeners[0].tls.certificates[0], "main");
	ck_assert_ptr_null(conf_agent_find(c, "r1"));
	conf_destroy(c);
}
END_TEST

START_TEST(the_bytes_of_one_agents_link_can_stay_on_its_socket)
{
	struct conf *c = good(edited("    link: unix:a2.link\n", "    link: unix:a2.link\n    link_bytes: socket\n"));
	ck_assert_int_eq(c->agents[0].link_bytes, LINK_BYTES_IN_MEMORY);
	ck_assert_int_eq(c->agents[1].link_bytes, LINK_BYTES_ON_SOCKET);
	conf_destroy(c);
}
END_TEST

START_TEST(relative_paths_are_relative_to_the_file)
{
	struct conf *c = good(cluster_text);
	char text[ADDRESS_TEXT_MAX];
	ck_assert_str_eq(c->link_key, "etc/link.key");
	ck_assert_str_eq(address_format((struct sockaddr *)&c->agents[1].link, text), "unix:etc/a2.link");
	conf_destroy(c);
}
END_TEST

START_TEST(a_ragent_inherits_what_it_does_not_say)
{
	struct conf *c = good(edited("ragents:\n", "limits:\n  idle_timeout: off\n  window: 1MiB\n"
						   "health: { lost: 9s }\n"
						   "ragents:\n  - name: r0\n    limits: { window: 64KiB }\n"
						   "    health: { ping: 50ms }\n"));
	const struct conf_ragent *own = conf_ragent_find(c, "r0"), *silent = conf_ragent_find(c, "r1");
	ck_assert_uint_eq(own->limits.window_len, 65536);
	ck_assert_uint_eq(own->limits.idle_timeout_ms, 0);
	ck_assert_uint_eq(own->health.ping_ms, 50);
	ck_assert_uint_eq(own->health.lost_ms, 9000);
	ck_assert_uint_eq(silent->limits.window_len, 1048576);
	ck_assert_uint_eq(silent->health.lost_ms, 9000);
	ck_assert_uint_eq(c->limits.window_len, 1048576);
	conf_destroy(c);
}
END_TEST

START_TEST(the_line_of_a_value_is_known)
{
	struct conf *c = good(cluster_text);
	ck_assert_uint_eq(conf_line(&c->file, &c->agents_key), 2);
	ck_assert_uint_eq(conf_line(&c->file, &c->agents[1].peer), 12);
	ck_assert_uint_eq(conf_line(&c->file, &c->listeners[0].listen.at[1]), 22);
	ck_assert_uint_eq(conf_line(&c->file, &c->listeners[0].mode), 0);
	conf_destroy(c);
}
END_TEST

START_TEST(an_empty_list_is_an_empty_array)
{
	struct conf *c = good(edited("    backend: web\n", "    backend: web\n    alpn: []\n    trusted: []\n"));
	ck_assert_uint_eq(c->listeners[0].alpn_count, 0);
	conf_destroy(c);
}
END_TEST

static const struct fault faults[] = {
	/* unknown keys */
	{ "    workers: 2", "    wrokers: 2", "c.yaml:5: key 'wrokers': found an unknown key, expected 'workers'?" },
	{ "    workers: 2", "    colour: 2",
		"c.yaml:5: key 'colour': found an unknown key, expected one of name, workers, control, "
		"control_address, control_proxy_protocol, control_tokens, mail_status, user, access_log, hang, limits, "
		"health, "
		"moves" },
	{ "link_key:", "<<: x\nlink_key:",
		"c.yaml:1: key '<<': found an unknown key, expected one of link_key, agents_key, own_provider, log, "
		"limits, health, "
		"moves, "
		"store, broadcast, "
		"ragents, agents, certificates, backends, listeners" },
	/* keys twice, also in another spelling of YAML */
	{ "    workers: 2", "    workers: 2\n    \"workers\": 3",
		"c.yaml:6: key 'workers': found it again, expected it once; line 5 has it already" },
	{ "backends:\n", "agents: []\nbackends:\n",
		"c.yaml:17: key 'agents': found it again, expected it once; line 6 has it already" },
	/* names twice */
	{ "name: a2", "name: a1", "c.yaml:10: key 'name': found 'a1', expected one that line 7 does not have already" },
	{ "name: a2", "name: r1", "c.yaml:10: key 'name': found 'r1', expected one that line 4 does not have already" },
	{ "  - name: web\n", "  - { name: web, address: 127.0.0.1:1 }\n  - name: web\n",
		"c.yaml:19: key 'name': found 'web', expected one that line 18 does not have already" },
	{ "[ main ]", "[ main, main ]",
		"c.yaml:25: key 'certificates': found 'main', expected one that line 25 does not have already" },
	/* addresses twice, however they are written */
	{ "7102", "7101",
		"c.yaml:12: key 'peer': found '127.0.0.1:7101', expected one that line 9 does not have already" },
	{ "7102", "7001",
		"c.yaml:12: key 'peer': found '127.0.0.1:7001', expected one that line 8 does not have already" },
	{ "127.0.0.1:8443,", "'[0::1]:8443',",
		"c.yaml:22: key 'listen': found '[::1]:8443', expected one that line 22 does not have already" },
	/* missing keys: the line of the map */
	{ "link_key: link.key\n", "", "c.yaml:1: key 'link_key': found nothing, expected a path" },
	{ "    link: unix:a2.link\n", "",
		"c.yaml:10: key 'link': found nothing, expected an address such as 127.0.0.1:443, [::1]:443 or "
		"unix:/path" },
	{ "    tls:\n      certificates: [ main ]\n", "", "c.yaml:21: key 'tls': found nothing, expected a map" },
	{ "      certificates: [ main ]\n", "      tickets: 2\n",
		"c.yaml:25: key 'certificates': found nothing, expected a list" },
	{ "backends:\n  - name: web\n    address: 127.0.0.1:8080\n", "",
		"c.yaml:1: key 'backends': found nothing, expected a list of maps\n"
		"c.yaml:20: key 'backend': found 'web', expected the name of one of the backends" },
	/* wrong kinds */
	{ "workers: 2", "workers:", "c.yaml:5: key 'workers': found nothing, expected a whole number from 1 to 256" },
	{ "workers: 2", "workers: [ 2 ]",
		"c.yaml:5: key 'workers': found a list, expected a whole number from 1 to 256" },
	{ "workers: 2", "limits: 2", "c.yaml:5: key 'limits': found a single value, expected a map" },
	{ "[ main ]", "main", "c.yaml:25: key 'certificates': found a single value, expected a list" },
	{ "[ main ]", "[ [ main ] ]",
		"c.yaml:25: key 'certificates': found a list, expected a name: 1 to 63 letters, digits and . _ - (not "
		"first)" },
	{ "[ main ]", "[]", "c.yaml:25: key 'certificates': found an empty list, expected at least one element" },
	{ "  - name: r1\n    workers: 2\n", "  r1: 2\n",
		"c.yaml:4: key 'ragents': found a map, expected a list of maps" },
	{ "  - name: r1\n    workers: 2\n", "  - r1\n",
		"c.yaml:4: key 'ragents': found a single value, expected a map" },
	/* wrong values */
	{ "workers: 2", "workers: two", "c.yaml:5: key 'workers': found 'two', expected a whole number from 1 to 256" },
	{ "workers: 2", "workers: 0", "c.yaml:5: key 'workers': found '0', expected a whole number from 1 to 256" },
	{ "workers: 2", "workers: 257", "c.yaml:5: key 'workers': found '257', expected a whole number from 1 to 256" },
	{ "workers: 2", "limits: { window: 1KiB }",
		"c.yaml:5: key 'window': found '1KiB', expected a size (units B, KiB, MiB, GiB, TiB) from 32KiB to "
		"16MiB" },
	{ "workers: 2", "limits: { idle_timeout: 90 }",
		"c.yaml:5: key 'idle_timeout': found '90', expected a duration (units ms, s, min, h, d) from 1s to 7d, "
		"or off" },
	{ "    backend: web\n", "    backend: web\n    mode: sx\n",
		"c.yaml:24: key 'mode': found 'sx', expected one of sf, sl" },
	{ "    link: unix:a2.link\n", "    link: unix:a2.link\n    link_bytes: shared\n",
		"c.yaml:12: key 'link_bytes': found 'shared', expected one of memory, socket" },
	{ "    backend: web\n", "    backend: web\n    affinity_bound: 0.5\n",
		"c.yaml:24: key 'affinity_bound': found '0.5', expected a number from 1 to 1000, or off" },
	{ "    backend: web\n", "    backend: web\n    migration: yes\n",
		"c.yaml:24: key 'migration': found 'yes', expected one of on, off, true, false" },
	{ "      certificates:", "      version_min: 1.1\n      certificates:",
		"c.yaml:25: key 'version_min': found '1.1', expected one of 1.2, 1.3" },
	{ "127.0.0.1:8080", "localhost:8080",
		"c.yaml:19: key 'address': found 'localhost:8080', expected an address such as 127.0.0.1:443, "
		"[::1]:443 or unix:/path" },
	/* references */
	{ "backend: web", "backend: wbe",
		"c.yaml:23: key 'backend': found 'wbe', expected the name of one of the backends" },
	{ "[ main ]", "[ main, mian ]",
		"c.yaml:25: key 'certificates': found 'mian', expected the name of one of the certificates" },
	{ "    peer: 127.0.0.1:7102\n",
		"    peer: 127.0.0.1:7102\n    direct: [ { address: 127.0.0.1:0, listener: xy } ]\n",
		"c.yaml:13: key 'listener': found 'xy', expected the name of one of the listeners" },
};

START_TEST(a_fault_is_told_with_line_key_found_and_expected)
{
	check_fault(&faults[_i]);
}
END_TEST

START_TEST(all_faults_of_a_file_are_told)
{
	char error[2048];
	struct conf *c = NULL;
	const char *text = edited("    workers: 2\n", "    workers: 0\n    colour: red\n    control: [ x ]\n");
	ck_assert_int_eq(conf_parse(text, strlen(text), "c.yaml", &c, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_str_eq(error,
		"c.yaml:6: key 'colour': found an unknown key, expected one of name, workers, control, "
		"control_address, control_proxy_protocol, control_tokens, mail_status, user, access_log, hang, limits, "
		"health, "
		"moves\n"
		"c.yaml:5: key 'workers': found '0', expected a whole number from 1 to 256\n"
		"c.yaml:7: key 'control': found a list, expected a path of at most 107 bytes, its folder included");
}
END_TEST

START_TEST(a_file_that_is_no_map_is_refused)
{
	char error[256];
	struct conf *c = NULL;
	ck_assert_int_eq(conf_parse("- 1\n", 4, "c.yaml", &c, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_str_eq(error, "c.yaml:1: found a list, expected a map");
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_named)
{
	char error[256];
	struct conf *c = NULL;
	ck_assert_int_eq(conf_load("/no/such/c.yaml", &c, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_str_eq(error, "/no/such/c.yaml: cannot be read: No such file or directory");
	ck_assert_int_eq(conf_load("/", &c, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_str_eq(error, "/: cannot be read: Is a directory");
}
END_TEST

START_TEST(destroying_nothing_is_legal)
{
	conf_destroy(NULL);
}
END_TEST

UNIT(load)
{
	TCase *facts = tcase_create("load");
	tcase_add_test(facts, the_silent_file_has_the_defaults);
	tcase_add_test(facts, values_of_the_file_are_found);
	tcase_add_test(facts, the_bytes_of_one_agents_link_can_stay_on_its_socket);
	tcase_add_test(facts, relative_paths_are_relative_to_the_file);
	tcase_add_test(facts, a_ragent_inherits_what_it_does_not_say);
	tcase_add_test(facts, the_line_of_a_value_is_known);
	tcase_add_test(facts, an_empty_list_is_an_empty_array);
	tcase_add_loop_test(facts, a_fault_is_told_with_line_key_found_and_expected, 0, ROWS(faults));
	tcase_add_test(facts, all_faults_of_a_file_are_told);
	tcase_add_test(facts, a_file_that_is_no_map_is_refused);
	tcase_add_test(facts, a_file_that_cannot_be_read_is_named);
	tcase_add_test(facts, destroying_nothing_is_legal);
	return facts_run(facts);
}
