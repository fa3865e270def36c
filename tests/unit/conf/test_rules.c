/* test_rules.c: facts of rules between keys. */
#include "tests/unit/conf/cluster_text.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

#define DIRECT "    peer: 127.0.0.1:7102\n    direct:\n      - address: 127.0.0.1:0\n        listener: sf\n"

#define SMTP                   "    backend: web\n    service: smtp\n    smtp:\n      hostname: mx.example\n"
#define SMTP_HIDDEN            SMTP "      client_address: hidden\n"
#define SMTP_LISTS(capability) SMTP_HIDDEN "      capabilities: [ '" capability "' ]\n"

#define TOLD "    address: 127.0.0.1:8080\nlisteners:\n  - name: sf\n"
#define CAPTURED                                                                                                       \
	"    address: 127.0.0.1:8080\n    proxy_v2: on\nlisteners:\n  - original_destination: tproxy\n    name: sf\n"
#define CERTIFICATES "certificates:\n  - name: main\n    chain: main.pem\n    key: main.key\nbackends:\n  - name: web\n"

static const struct fault faults[] = {
	{ "ragents:\n", "health: { suspect: 100ms }\nragents:\n",
		"c.yaml:3: key 'suspect': found '100ms', expected more than 'ping', which is 200ms" },
	{ "ragents:\n", "health: { lost: 1s }\nragents:\n",
		"c.yaml:3: key 'lost': found '1s', expected more than 'suspect', which is 1s" },
	{ "    workers: 2\n", "    health:\n      ping: 2s\n",
		"c.yaml:6: key 'suspect': found '1s', expected more than 'ping', which is 2s" },
	{ "    workers: 2\n", "    control: /run/x\n    control_tokens: t\n    control_address: 192.0.2.1:80\n",
		"c.yaml:7: key 'control_address': found '192.0.2.1:80', expected a loopback address and port, "
		"or unix:PATH: it has no TLS (put a listener in front of it)" },
	{ "    workers: 2\n", "    control: /run/x\n    control_tokens: t\n    control_address: unix:/run/front\n",
		"c.yaml:7: key 'control_proxy_protocol': found off, expected on, as nothing else says who the client "
		"of a "
		"UNIX socket is" },
	{ "    workers: 2\n", "    control: /run/x\n    control_address: 127.0.0.1:80\n",
		"c.yaml:6: key 'control_tokens': found nothing, expected a path: without tokens no client can use it" },
	{ "    workers: 2\n", "    control_tokens: t\n    control_address: 127.0.0.1:80\n",
		"c.yaml:6: key 'control': found nothing, expected a path, as the API is served on its UNIX socket "
		"first" },
	{ "    workers: 2\n", "    control_tokens: t\n",
		"c.yaml:4: key 'control_address': found nothing, expected an address, as tokens or PROXY headers "
		"belong to "
		"it" },
	{ "127.0.0.1:7001", "0.0.0.0:7001",
		"c.yaml:8: key 'link': found '0.0.0.0:7001', expected an address and port that others can connect to" },
	{ "127.0.0.1:7101", "'[::]:7101'",
		"c.yaml:9: key 'peer': found '[::]:7101', expected an address and port that others can connect to" },
	{ "127.0.0.1:7101", "127.0.0.1:0",
		"c.yaml:9: key 'peer': found '127.0.0.1:0', expected an address and port that others can connect to" },
	{ "127.0.0.1:7101", "unix:/x",
		"c.yaml:9: key 'peer': found 'unix:/x', expected an IP address and port (key 'peer_socket' is for UNIX "
		"sockets)" },
	{ "127.0.0.1:7001\n", "192.0.2.1:7001\n    link_protection: trusted\n",
		"c.yaml:9: key 'link_protection': found 'trusted', expected sealed, as the link can leave this host "
		"(or key "
		"'trusted_because' with the reason)" },
	{ "127.0.0.1:7001\n", "'[2001:db8::1]:7001'\n    link_protection: trusted\n",
		"c.yaml:9: key 'link_protection': found 'trusted', expected sealed, as the link can leave this host "
		"(or key "
		"'trusted_because' with the reason)" },
	{ "127.0.0.1:7001\n", "192.0.2.1:7001\n    link_group: root\n",
		"c.yaml:9: key 'link_group': found 'root', expected nothing, as 'link' is no UNIX socket" },
	{ "127.0.0.1:7001\n", "192.0.2.1:7001\n    trusted_because: cable\n",
		"c.yaml:9: key 'link_protection': found 'sealed', expected trusted, or no key 'trusted_because'" },
	{ "    peer: 127.0.0.1:7101\n", "    peer: 127.0.0.1:7101\n    user: nobody\n",
		"c.yaml:10: key 'user': found 'nobody', expected another one than that of RAgent 'r1'" },
	{ "    workers: 2\nagents:\n  - name: a1\n", "    user: x\nagents:\n  - name: a1\n    user: x\n",
		"c.yaml:8: key 'user': found 'x', expected another one than that of RAgent 'r1'" },
	{ "    peer: 127.0.0.1:7102\n", DIRECT "        proxy_protocol: on\n",
		"c.yaml:16: key 'trusted': found no network, expected the networks that may send a PROXY header" },
	{ "    peer: 127.0.0.1:7102\n", DIRECT "        trusted: [ 10.0.0.0/8 ]\n",
		"c.yaml:16: key 'proxy_protocol': found 'off', expected on, or no key 'trusted'" },
	{ "    backend: web\n", "    backend: web\n    proxy_protocol: on\n",
		"c.yaml:24: key 'trusted': found no network, expected the networks that may send a PROXY header" },
	{ "      certificates:", "      version_min: 1.3\n      version_max: 1.2\n      certificates:",
		"c.yaml:26: key 'version_max': found '1.2', expected at least 'version_min', which is 1.3" },
	{ "      certificates:", "      client_certificate: required\n      certificates:",
		"c.yaml:25: key 'client_ca': found nothing, expected a path, as client certificates are asked for" },
	{ "      certificates:", "      client_crl: crl.pem\n      certificates:",
		"c.yaml:25: key 'client_crl': found 'crl.pem', expected nothing, as no client certificate is asked "
		"for" },
	{ "      certificates:", "      client_ca: ca.pem\n      certificates:",
		"c.yaml:25: key 'client_certificate': found 'none', expected optional or required, or no key "
		"'client_ca'" },
	{ "      certificates:", "      version_min: 1.3\n      tls12_tickets: on\n      certificates:",
		"c.yaml:26: key 'tls12_tickets': found 'on', expected off, as TLS 1.2 is not allowed" },
	{ "ragents:\n", "broadcast: { replicas: 2 }\nragents:\n",
		"c.yaml:3: key 'live': found broadcast, expected carried, as live keys would go to every agent while "
		"sessions go to 2" },
	{ "ragents:\n", "broadcast: { replicas: 9 }\nragents:\n",
		"c.yaml:3: key 'replicas': found '9', expected a whole number from 1 to 8, or all" },
	{ "    listen: [ 127.0.0.1:8443, '[::1]:8443' ]\n", "",
		"c.yaml:21: key 'listen': found nothing, expected a list of addresses, as no agent has 'sf' under "
		"'direct'" },
	{ "    backend: web\n", "    backend: web\n    service: smtp\n",
		"c.yaml:21: key 'hostname': found nothing, expected a name under 'smtp': the one that every agent says "
		"to clients of 'sf'" },
	{ "    backend: web\n", "    backend: web\n    smtp: { hostname: mx.example }\n",
		"c.yaml:24: key 'smtp': found a map, expected nothing, as the service of 'sf' is http" },
	{ "    backend: web\n", SMTP_HIDDEN "    alpn:\n      - { protocol: smtp, service: tcp, backend: web }\n",
		"c.yaml:29: key 'service': found 'tcp', expected one that begins as the listener's, which is smtp" },
	{ "    backend: web\n", "    backend: web\n    alpn:\n      - { protocol: x, service: smtp, backend: web }\n",
		"c.yaml:25: key 'service': found 'smtp', expected one that begins as the listener's, which is http" },
	{ "    backend: web\n", "    backend: web\n    service: h2\n",
		"c.yaml:24: key 'service': found 'h2', expected another one: this is for a row of alpn with the "
		"protocol h2" },
	{ "    backend: web\n",
		"    backend: web\n    alpn:\n      - { protocol: http/1.1, service: h2, backend: web }\n",
		"c.yaml:25: key 'protocol': found 'http/1.1', expected h2, as the service is h2" },
	{ "    backend: web\n", "    backend: web\n    service: smtp\n    smtp:\n      hostname: mx_1\n",
		"c.yaml:26: key 'hostname': found 'mx_1', expected a host name, as mx.example.org" },
	{ "    backend: web\n", SMTP_LISTS("starttls"),
		"c.yaml:28: key 'capabilities': found 'starttls', expected nothing, as STARTTLS is added by key "
		"'starttls'" },
	{ "    backend: web\n", SMTP_LISTS("AUTH PLAIN"),
		"c.yaml:28: key 'capabilities': found 'AUTH PLAIN', expected nothing, as AUTH is offered behind TLS "
		"only" },
	{ "    backend: web\n", SMTP_LISTS("REQUIRETLS"),
		"c.yaml:28: key 'capabilities': found 'REQUIRETLS', expected nothing, as REQUIRETLS is offered behind "
		"TLS only" },
	{ "    backend: web\n", SMTP_LISTS("-"),
		"c.yaml:28: key 'capabilities': found '-', expected a keyword of letters, digits and '-', and its "
		"parameters "
		"(RFC 5321 4.1.1.1)" },
	{ "    backend: web\n", SMTP_HIDDEN "      hide: [ CHUNKING, X-FOO ]\n",
		"c.yaml:28: key 'hide': found 'X-FOO', expected the keyword of a known extension, as CHUNKING" },
	{ "    backend: web\n", SMTP_HIDDEN "      hide: [ SIZE 9 ]\n",
		"c.yaml:28: key 'hide': found 'SIZE 9', expected the keyword of a known extension, as CHUNKING" },
	{ "    backend: web\n", SMTP,
		"c.yaml:18: key 'proxy_v2': found 'off', expected on, as the backend of 'sf' must know its clients "
		"(or 'client_address: hidden' under 'smtp')" },
	{ "    backend: web\n", SMTP "      starttls: offer\n      xclient: on\n",
		"c.yaml:18: key 'proxy_v2': found 'off', expected on, as the backend of 'sf' must know its clients "
		"(or 'client_address: hidden' under 'smtp')" },
	{ "    address: 127.0.0.1:8080\nlisteners:\n  - name: sf\n",
		"    address: 127.0.0.1:8080\n    reuse: on\nlisteners:\n  - name: sf\n    service: tcp\n",
		"c.yaml:20: key 'reuse': found 'on', expected off, or another backend for 'sf': clients of service tcp "
		"do "
		"not share connections" },
	{ "    address: 127.0.0.1:8080\nlisteners:\n  - name: sf\n",
		"    address: 127.0.0.1:8080\n    reuse: on\nlisteners:\n  - name: sf\n    alpn:\n"
		"      - { protocol: h2, service: h2, backend: web }\n",
		"c.yaml:20: key 'reuse': found 'on', expected off, or another backend for 'sf': clients of service h2 "
		"do "
		"not share connections" },
	{ "    backend: web\n", "    backend: web\n    original_destination: redirect\n",
		"c.yaml:18: key 'proxy_v2': found 'off', expected on, as the backend of 'sf' must know where its "
		"clients wanted to go" },
	{ "    backend: web\n", SMTP_HIDDEN "    original_destination: redirect\n",
		"c.yaml:18: key 'proxy_v2': found 'off', expected on, as the backend of 'sf' must know where its "
		"clients wanted to go" },
	{ TOLD, CAPTURED "    proxy_protocol: on\n    trusted: [ 10.0.0.0/8 ]\n",
		"c.yaml:22: key 'original_destination': found 'tproxy', expected none, as 'proxy_protocol' is on: the "
		"PROXY header names the destination" },
	{ TOLD "    listen: [ 127.0.0.1:8443, '[::1]:8443' ]\n", CAPTURED "    listen: [ unix:/run/sf ]\n",
		"c.yaml:22: key 'original_destination': found 'tproxy', expected none, as nothing is led to a UNIX "
		"socket of 'listen'" },
	{ "    peer: 127.0.0.1:7102\n" CERTIFICATES TOLD, DIRECT CERTIFICATES CAPTURED,
		"c.yaml:25: key 'original_destination': found 'tproxy', expected none, as an agent has 'sf' under "
		"'direct', and only RAgents ask the kernel" },
	{ "ragents:\n  - name: r1\n    workers: 2\n", "",
		"c.yaml:1: key 'ragents': found nothing, expected a list of maps, as 'sf' listens on RAgents" },
};

START_TEST(a_broken_rule_is_told)
{
	check_fault(&faults[_i]);
}
END_TEST

static const struct {
	const char *from, *to;
} allowed[] = {
	{ "127.0.0.1:7001\n", "127.9.9.9:7001\n    link_protection: trusted\n" },
	{ "127.0.0.1:7001\n", "'[::1]:7001'\n    link_protection: trusted\n" },
	{ "unix:a2.link\n", "unix:a2.link\n    link_protection: trusted\n" },
	{ "127.0.0.1:7001\n", "192.0.2.1:7001\n    link_protection: trusted\n    trusted_because: cable\n" },
	{ "ragents:\n", "broadcast: { replicas: 2, live: carried }\nragents:\n" },
	{ "ragents:\n", "broadcast: { replicas: all }\nragents:\n" },
	{ "127.0.0.1:8443, '[::1]:8443'", "127.0.0.1:0, '127.0.0.1:0'" },
	{ "    address: 127.0.0.1:8080\n", "    address: 127.0.0.1:8080\n    reuse: on\n" },
	{ "    backend: web\n", SMTP "      xclient: on\n" },
	{ "    backend: web\n", SMTP_HIDDEN "      starttls: offer\n" },
	{ "    address: 127.0.0.1:8080\nlisteners:\n  - name: sf\n",
		"    address: 127.0.0.1:8080\n    proxy_v2: on\nlisteners:\n  - name: sf\n    service: smtp\n"
		"    smtp: { hostname: mx.example, starttls: offer }\n" },
	{ "    peer: 127.0.0.1:7102\n",
		DIRECT "        proxy_protocol: on\n        trusted: [ 10.0.0.0/8, '::1/128' ]\n" },
	{ TOLD, CAPTURED },
	{ "    backend: web\n", "    backend: web\n    original_destination: none\n" },
};

START_TEST(what_keeps_the_rules_is_taken)
{
	conf_destroy(good(edited(allowed[_i].from, allowed[_i].to)));
}
END_TEST

START_TEST(mail_begins_in_clear_unless_tls_is_implicit)
{
	struct conf *c = good(edited("    backend: web\n", SMTP_HIDDEN));
	ck_assert_int_eq(c->listeners[0].smtp.starttls, SMTP_TLS_REQUIRE);
	ck_assert_uint_eq(c->listeners[0].smtp.preamble_timeout_ms, 300000);
	ck_assert(conf_has_preamble(&c->listeners[0]));
	conf_destroy(c);
	c = good(edited("    backend: web\n", SMTP_HIDDEN "      starttls: implicit\n"));
	ck_assert(!conf_has_preamble(&c->listeners[0]));
	conf_destroy(c);
	c = good(cluster_text);
	ck_assert(!conf_has_preamble(&c->listeners[0]));
	conf_destroy(c);
}
END_TEST

START_TEST(what_is_listed_before_tls_stands_in_the_file_or_is_what_every_server_takes)
{
	struct smtp_ehlo set;
	struct conf *c = good(edited("    backend: web\n", SMTP_HIDDEN));
	conf_smtp_offers(&c->listeners[0].smtp, &set);
	ck_assert_uint_eq(set.has,
		SMTP_CAP_BIT(SMTP_CAP_PIPELINING) | SMTP_CAP_BIT(SMTP_CAP_8BITMIME) | SMTP_CAP_BIT(SMTP_CAP_ENHANCED));
	conf_destroy(c);
	c = good(edited("    backend: web\n", SMTP_LISTS("SIZE 1000")));
	conf_smtp_offers(&c->listeners[0].smtp, &set);
	ck_assert_uint_eq(set.has, SMTP_CAP_BIT(SMTP_CAP_SIZE));
	ck_assert_uint_eq(smtp_ehlo_size(&set), 1000);
	conf_destroy(c);
	c = good(edited("    backend: web\n", SMTP_HIDDEN "      hide: [ 8BITMIME ]\n"));
	conf_smtp_offers(&c->listeners[0].smtp, &set);
	ck_assert_uint_eq(set.has, SMTP_CAP_BIT(SMTP_CAP_PIPELINING) | SMTP_CAP_BIT(SMTP_CAP_ENHANCED));
	conf_destroy(c);
}
END_TEST

START_TEST(agents_alone_are_a_cluster)
{
	const char *text = edited("    peer: 127.0.0.1:7102\n", DIRECT);
	char alone[EDITED_MAX];
	const char *ragents = strstr(text, "ragents:"), *agents = strstr(text, "agents:\n  - name: a1");
	const char *listen = strstr(text, "    listen:"), *backend = strstr(text, "    backend: web");
	snprintf(alone, sizeof alone, "%.*s%.*s%s", (int)(ragents - text), text, (int)(listen - agents), agents,
		backend);
	struct conf *c = good(alone);
	ck_assert_uint_eq(c->ragent_count, 0);
	ck_assert_uint_eq(c->listeners[0].listen.count, 0);
	conf_destroy(c);
}
END_TEST

UNIT(rules)
{
	TCase *facts = tcase_create("rules");
	tcase_add_loop_test(facts, a_broken_rule_is_told, 0, ROWS(faults));
	tcase_add_loop_test(facts, what_keeps_the_rules_is_taken, 0, ROWS(allowed));
	tcase_add_test(facts, mail_begins_in_clear_unless_tls_is_implicit);
	tcase_add_test(facts, what_is_listed_before_tls_stands_in_the_file_or_is_what_every_server_takes);
	tcase_add_test(facts, agents_alone_are_a_cluster);
	return facts_run(facts);
}
