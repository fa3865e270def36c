/* test_smtpproxy.c: facts of smtpproxy's configuration file. */
#include "conf/smtpproxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/schema.h"
#include "proto/error.h"
#include "tests/source_root.h"
#include "tests/unit/conf/facts.h"
#include "tests/unit/unit.h"

#define LEAST "name: mail.example\nlisteners: [ { address: '0.0.0.0:2525', original_destination: redirect } ]\n"

/* A queue that is complete but for its listener. */
#define QUEUED                                                                                                         \
	"deliver: queue\nqueue: { keys: /k, backups: [ { paths: [ '192.0.2.1:1' ] }, { paths: [ '192.0.2.2:1' ] } ] "  \
	"}\n"
#define DOOR(keys) "name: m\nlisteners:\n  - address: 0.0.0.0:25\n    original_destination: redirect\n" keys

#define HOOKED_FOR(keys)                                                                                               \
	"name: mail.example\nhooks: [ { name: a, address: 'unix:/a' } ]\n"                                             \
	"listeners: [ { address: '0.0.0.0:25', original_destination: tproxy, " keys " } ]\n"
#define HOOKED HOOKED_FOR("hooks: [ a ]")

static char error[4096];

static struct conf_smtpproxy *parse(const char *text)
{
	struct conf_smtpproxy *c = NULL;
	error[0] = '\0';
	conf_smtpproxy_parse(text, strlen(text), "smtpproxy.yaml", &c, error, sizeof error);
	return c;
}

START_TEST(two_keys_are_enough)
{
	struct conf_smtpproxy *c = parse(LEAST);
	ck_assert_msg(c != NULL, "%s", error);
	ck_assert_uint_eq(c->listener_count, 1);
	ck_assert_int_eq(c->listeners[0].capture, CAPTURE_REDIRECT);
	ck_assert_int_eq(c->fairness, CONF_ON);
	ck_assert_int_eq(c->outward.tls, SMTPPROXY_TLS_MAY);
	ck_assert_uint_eq(c->limits.turn_ms, 240000);
	ck_assert_uint_eq(c->outward.end_ms, 600000);
	conf_smtpproxy_destroy(c);
}
END_TEST

START_TEST(a_queue_may_have_hooks)
{
	struct conf_smtpproxy *c = parse(HOOKED_FOR("hooks: [ a ], clients: [ 10.0.0.0/8 ]") QUEUED);
	ck_assert_msg(c != NULL, "%s", error);
	ck_assert_uint_eq(c->listeners[0].hook_count, 1);
	conf_smtpproxy_destroy(c);
}
END_TEST

static const struct {
	const char *text, *complaint;
} faults[] = {
	{ "name: m\n", "smtpproxy.yaml:1: key 'listeners': found nothing, expected" },
	{ LEAST "outwards: {}\n", "smtpproxy.yaml:3: key 'outwards': found an unknown key, expected 'outward'?" },
	{ DOOR("") QUEUED,
		"smtpproxy.yaml:3: key 'accept': found nothing, expected domains of recipients, or networks of "
		"senders in 'clients', because deliver is queue" },
	{ DOOR("    accept: [ b.example ]\n"),
		"smtpproxy.yaml:5: key 'accept': found a list, expected none, because deliver is relay" },
	{ DOOR("    clients: [ 10.0.0.0/8 ]\n"),
		"smtpproxy.yaml:5: key 'clients': found a list, expected none, because deliver is relay" },
	{ DOOR("    accept: [ b.example ]\n    next_hop: 192.0.2.3:25\n") QUEUED,
		"smtpproxy.yaml:6: key 'next_hop': found an address, expected none, but one in 'queue' or "
		"'queue.domains'" },
	{ DOOR("    accept: [ b.example, 'x@b.example' ]\n") QUEUED,
		"smtpproxy.yaml:5: key 'accept': found 'x@b.example', expected a domain, as example.org, or "
		"*.example.org" },
	{ DOOR("    accept: [ '*' ]\n") QUEUED, "key 'accept': found '*', expected a domain" },
	{ DOOR("    accept: [ b.example, b.example ]\n") QUEUED,
		"key 'accept': found 'b.example', expected one that line 5 does not have already" },
	{ LEAST "queue: { domains: [ { domain: b.example., tls: may } ] }\n",
		"smtpproxy.yaml:3: key 'domain': found 'b.example.', expected a domain" },
	{ LEAST "queue: { next_hop: '192.0.2.3:25', domains: [ { domain: b.example, tls: verify } ] }\n",
		"smtpproxy.yaml:3: key 'name': found nothing, expected the name of the certificate, because its mail "
		"goes to "
		"an address" },
	{ LEAST "queue: { domains: [ { domain: b.example, tls: verify, next_hop: '192.0.2.3:25' } ] }\n",
		"key 'name': found nothing, expected the name of the certificate" },
	{ LEAST "queue: { name: a }\n",
		"smtpproxy.yaml:3: key 'queue': found a map, expected none, or the key 'deliver: queue'" },
	{ LEAST "outward: { tls: none, keep_tls: on }\n",
		"smtpproxy.yaml:3: key 'keep_tls': found on, expected off, because tls is none" },
	{ "name: m\nlisteners: [ { address: '0.0.0.0:25' } ]\n",
		"key 'trusted': found nothing, expected the networks that send PROXY headers" },
	{ "name: 'a b'\nlisteners: [ { address: '0.0.0.0:25', original_destination: tproxy } ]\n",
		"smtpproxy.yaml:1: key 'name': found 'a b', expected a host name" },
	{ LEAST "outward: { receivers: [ { network: 192.0.2.0/24, tls: verify } ] }\n",
		"key 'name': found nothing, expected the name of the certificate" },
	{ LEAST "outward: { receivers: [ { network: 192.0.2.0/24, tls: dane } ] }\n",
		"key 'name': found nothing, expected the name of the certificate" },
	{ LEAST "outward: { tls: dane-only }\n",
		"smtpproxy.yaml:3: key 'dns.trust_anchor': found nothing, expected a file of the root's keys" },
	{ LEAST "deliver: queue\n",
		"smtpproxy.yaml:3: key 'queue.backups': found another number, expected two servers" },
	{ LEAST "deliver: queue\n", "key 'queue.keys': found nothing, expected a key file" },
	{ LEAST "deliver: queue\noutward: { ports: [26] }\n",
		"key 'ports': found others, expected the port of mail servers among them" },
	{ LEAST "queue: { domains: [ { domain: a.example, tls: dane } ] }\n",
		"key 'dns.trust_anchor': found nothing, expected a file of the root's keys" },
	{ LEAST "deliver: queue\nqueue: { memory: 1MiB, message_size: 1MiB }\n",
		"key 'queue.memory': found less than a message, expected at least message_size and 64 KiB" },
	{ LEAST "deliver: queue\nhandover: /run/h.sock\n",
		"smtpproxy.yaml:4: key 'handover': found a path, expected none, because deliver is queue" },
	{ "name: m\nlisteners: [ { address: '0.0.0.0:25', original_destination: tproxy, hooks: [ a ] } ]\n",
		"key 'hooks': found 'a', expected the name of one of the hooks" },
	{ HOOKED "fairness: off\n", "key 'fairness': found off, expected on, because a listener has hooks" },
	{ LEAST "queue: { backups: [ { user: a } ] }\n", "key 'paths': found nothing, expected" },
	{ LEAST "queue: { backups: [ { paths: [ '192.0.2.1:1' ] } ],\n"
		"  spares: [ { paths: [ '192.0.2.2:1' ] },\n    { paths: [ '192.0.2.3:1', '192.0.2.1:1' ] } ] }\n",
		"smtpproxy.yaml:5: key 'queue.spares': found '192.0.2.1:1', expected a server that is not in "
		"queue.backups: "
		"each holds one copy" },
	{ LEAST "queue: { backups: [ { paths: [ '192.0.2.1:1' ], name: a } ] }\n",
		"key 'name': found it, expected none without `ca`, which makes TLS" },
	{ LEAST "queue: { spares: [ { paths: [ '192.0.2.1:1' ], ca: /c, certificate: /d } ] }\n",
		"key 'key': found nothing, expected both or neither" },
	{ LEAST "queue: { backups: [ { paths: [ 'unix:/s' ], ca: /c } ] }\n",
		"key 'name': found nothing, expected one, because a socket has no address" },
	{ LEAST "queue: { spares: [ { paths: [ '192.0.2.2:1' ] }, { paths: [ '192.0.2.2:1' ] } ] }\n",
		"key 'queue.spares': found '192.0.2.2:1', expected a server that is not in an earlier one of "
		"queue.spares" },
	{ LEAST "queue: { replace_after: 2s }\n", "key 'replace_after': found '2s', expected" },
	{ LEAST "limits: { turn_timeout: 6min }\n", "key 'turn_timeout': found '6min', expected" },
	{ LEAST "outward: { as_sender: on, sources: [ { address: 192.0.2.1 } ] }\n",
		"key 'sources': found addresses, expected none, because as_sender is on" },
	{ LEAST "outward: { sources: [ { address: 192.0.2.1 }, { address: 192.0.2.1 } ] }\n",
		"key 'address': found '192.0.2.1', expected one that line 3 does not have already" },
};

START_TEST(a_fault_names_file_line_key_and_remedy)
{
	ck_assert_ptr_null(parse(faults[_i].text));
	ck_assert_msg(strstr(error, faults[_i].complaint) != NULL, "%s", error);
}
END_TEST

START_TEST(spares_of_a_queue_are_read)
{
	struct conf_smtpproxy *c = parse(DOOR(
		"    clients: [ 10.0.0.0/8 ]\n") "deliver: queue\n"
						 "queue: { keys: /k, backups: [ { paths: [ '192.0.2.1:1' ] }, { paths: "
						 "[ '192.0.2.3:1' ] } ], replace_after: 5s, "
						 "spares: [ { paths: [ '192.0.2.2:1', '10.0.0.2:1' ], user: u } ] }\n");
	ck_assert_msg(c != NULL, "%s", error);
	ck_assert_uint_eq(c->queue.spare_count, 1);
	ck_assert_uint_eq(c->queue.spares[0].path_count, 2);
	ck_assert_uint_eq(c->queue.replace_ms, 5000);
	conf_smtpproxy_destroy(c);
}
END_TEST

START_TEST(tls_of_a_redis_server_is_read)
{
	struct conf_smtpproxy *c =
		parse(DOOR("    clients: [ 10.0.0.0/8 ]\n") "deliver: queue\nqueue: { keys: /k, backups: [ "
							    "{ paths: [ '192.0.2.1:1' ], ca: /ca, name: r.example, "
							    "certificate: /c, key: /k }, "
							    "{ paths: [ '192.0.2.2:1' ] } ] }\n");
	ck_assert_msg(c != NULL, "%s", error);
	ck_assert_str_eq(c->queue.backups[0].ca, "/ca");
	ck_assert_str_eq(c->queue.backups[0].name, "r.example");
	ck_assert_str_eq(c->queue.backups[0].certificate, "/c");
	ck_assert_str_eq(c->queue.backups[0].key, "/k");
	ck_assert_ptr_null(c->queue.backups[1].ca);
	conf_smtpproxy_destroy(c);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_a_fault)
{
	struct conf_smtpproxy *c;
	ck_assert_int_eq(conf_smtpproxy_load("/nowhere/at/all.yaml", &c, error, sizeof error), CSSL_E_CONFIG);
	ck_assert_ptr_nonnull(strstr(error, "cannot be read"));
}
END_TEST

static char example[64 * 1024];

static void key_is_in_example(const struct schema_map *map)
{
	char key[80];
	for (const struct schema_row *row = map->rows; row->key; row++) {
		snprintf(key, sizeof key, "%s:", row->key);
		ck_assert_msg(strstr(example, key) != NULL, "%s", key);
		if (row->map)
			key_is_in_example(row->map);
	}
}

/* Appends its text to the others'. */
static void read_example(const char *path)
{
	struct conf_smtpproxy *c;
	size_t len = strlen(example);
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	example[len + fread(example + len, 1, sizeof example - len - 1, f)] = '\0';
	fclose(f);
	ck_assert_msg(conf_smtpproxy_load(path, &c, error, sizeof error) == 0, "%s", error);
	conf_smtpproxy_destroy(c);
}

START_TEST(the_examples_are_good_and_have_every_key)
{
	read_example(SOURCE_ROOT "/conf/smtpproxy.yaml");
	read_example(SOURCE_ROOT "/conf/mail-gateway-queue.yaml");
	key_is_in_example(&schema_smtpproxy);
}
END_TEST

START_TEST(check_prints_the_memory_that_mail_may_take)
{
	static const char text[] = DOOR("    clients: [ 10.0.0.0/8 ]\n") "deliver: queue\nqueue: { keys: /k, total: "
									 "3GiB, memory: 64MiB, deliveries: 2, "
									 "backups: [ { paths: [ '192.0.2.1:1' ] }, { "
									 "paths: [ '192.0.2.2:1' ] } ] }\n";
	struct conf_smtpproxy *c = parse(text);
	char *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);
	ck_assert_msg(c != NULL, "%s", error);
	c->machine = UINT64_C(8) << 30;
	conf_smtpproxy_memory_print(c, f);
	fclose(f);
	ck_assert_msg(strstr(out, "stored mail                  3GiB   queue.total\n") != NULL, "%s", out);
	ck_assert_msg(strstr(out, "mail that comes in          64MiB   queue.memory\n") != NULL, "%s", out);
	ck_assert_msg(strstr(out, "mail on its way             64MiB") != NULL, "%s", out);
	ck_assert_msg(strstr(out, "the process may use          8GiB\n") != NULL, "%s", out);
	ck_assert_msg(strstr(out, "hooks") == NULL, "%s", out);
	free(out);
	conf_smtpproxy_destroy(c);
}
END_TEST

static char *said_of_role(const char *role)
{
	char text[512], *out = NULL;
	size_t len;
	FILE *f = open_memstream(&out, &len);
	struct conf_smtpproxy *c;

	snprintf(text, sizeof text,
		DOOR("    clients: [ 10.0.0.0/8 ]\n") "deliver: queue\nqueue: { keys: /k, %s"
						      "backups: [ { paths: [ '192.0.2.1:1' ] }, { paths: [ "
						      "'192.0.2.2:1' ] } ] }\n",
		role);
	c = parse(text);
	ck_assert_msg(c != NULL, "%s", error);
	conf_smtpproxy_role_print(c, f);
	fclose(f);
	conf_smtpproxy_destroy(c);
	return out;
}

START_TEST(check_says_what_a_role_means_that_is_not_in_the_file)
{
	char *out = said_of_role("");

	ck_assert_msg(strstr(out, "if no other gateway has this queue, set it to alone\n") != NULL, "%s", out);
	free(out);
	out = said_of_role("role: owner, ");
	ck_assert_str_eq(out, "");
	free(out);
	out = said_of_role("role: alone, ");
	ck_assert_str_eq(out, "");
	free(out);
}
END_TEST

#define ROW(tls, of_a_receiver)                                                                                        \
	"outward: { tls: " tls ", receivers: [ { network: 192.0.2.0/24, name: a.example, tls: " of_a_receiver " } ] "  \
	"}\n"

/* Of the file, and its mail may come with TLS. */
static const char *gap_of(const char *keys)
{
	static char text[512];
	snprintf(text, sizeof text, "name: m\nlisteners: [ { address: '0.0.0.0:25', trusted: [ 10.0.0.0/8 ] } ]\n%s",
		keys);
	struct conf_smtpproxy *c = parse(text);
	ck_assert_msg(c != NULL, "%s", error);
	const char *gap = conf_smtpproxy_tls_gap(c);
	conf_smtpproxy_destroy(c);
	return gap;
}

START_TEST(who_has_not_said_whether_tls_may_end_here_is_told)
{
	ck_assert_str_eq(gap_of(""), "outward.keep_tls: off, by default: mail that came with TLS may go on in clear");
	ck_assert_ptr_nonnull(gap_of("outward: { tls: may }\n"));
	ck_assert_ptr_null(gap_of("outward: { keep_tls: off }\n"));
	ck_assert_ptr_null(gap_of("outward: { keep_tls: on }\n"));
	ck_assert_ptr_null(gap_of("outward: { tls: encrypt }\n"));
	ck_assert_ptr_nonnull(gap_of(ROW("encrypt", "may")));
	ck_assert_ptr_null(gap_of(ROW("encrypt", "verify")));
	ck_assert_ptr_null(gap_of("outward: { tls: none }\n"));
	ck_assert_ptr_nonnull(gap_of(ROW("none", "may")));
	ck_assert_ptr_null(gap_of(ROW("none, keep_tls: on", "may")));
	struct conf_smtpproxy *c = parse(LEAST); /* nobody tells it of TLS */
	ck_assert_ptr_null(conf_smtpproxy_tls_gap(c));
	conf_smtpproxy_destroy(c);
}
END_TEST

UNIT(smtpproxy)
{
	TCase *facts = tcase_create("smtpproxy");
	tcase_add_test(facts, two_keys_are_enough);
	tcase_add_test(facts, a_queue_may_have_hooks);
	tcase_add_test(facts, spares_of_a_queue_are_read);
	tcase_add_test(facts, tls_of_a_redis_server_is_read);
	tcase_add_loop_test(facts, a_fault_names_file_line_key_and_remedy, 0, ROWS(faults));
	tcase_add_test(facts, a_file_that_is_not_there_is_a_fault);
	tcase_add_test(facts, check_prints_the_memory_that_mail_may_take);
	tcase_add_test(facts, check_says_what_a_role_means_that_is_not_in_the_file);
	tcase_add_test(facts, the_examples_are_good_and_have_every_key);
	tcase_add_test(facts, who_has_not_said_whether_tls_may_end_here_is_told);
	return facts_run(facts);
}
