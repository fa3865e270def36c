/* connection_fixture.c: see connection_fixture.h. */
#include "tests/unit/sslagent/connection/connection_fixture.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "net/report/log.h"
#include "net/socket/address.h"
#include "sslagent/tls/tls_contexts.h"
#include "tests/lib/test_pki.h"

struct home a1, a2;
struct fake_ragent r;
struct memory_client *client;
struct record_forge *forge;
struct key_ring agents_key;
uint8_t lots[2u << 20];
uint8_t got[4u << 20];
size_t got_len;
struct manners manners;

static struct test_pki pki;
static struct test_identity identity;
static struct conf *conf;
static struct agent_counters *counters;
static enum { CONNECTION_NONE, CONNECTION_BEGUN } begun;
static uint8_t early[65536]; /* to be said right behind Finished */
static size_t early_len;

/* --- start and stop --- */

static const char *const cluster_file =
	"link_key: link.key\n"
	"agents_key: agents.key\n"
	"limits: { window: 64KiB, backend_connect_timeout: 2s }\n"
	"certificates:\n"
	"  - { name: main, chain: %s, key: %s }\n"
	"ragents: [ { name: r1 } ]\n"
	"agents:\n"
	"  - { name: a1, link: 'unix:a1.link', link_protection: trusted, peer: '127.0.0.1:7101' }\n"
	"  - { name: a2, link: 'unix:a2.link', link_protection: trusted, peer: '127.0.0.1:7102' }\n"
	"backends:\n"
	"  - { name: main, address: '%s' }\n"
	"  - { name: pooled, address: '%s', reuse: on }\n"
	"  - { name: proxied, address: '%s', proxy_v2: on }\n"
	"  - { name: nowhere, address: 'unix:/nonexistent/backend' }\n"
	"listeners:\n"
	"  - { listen: [ 127.0.0.1:0 ], name: tcp, service: tcp, backend: main, tls: { certificates: [ main ] } }\n"
	"  - { listen: [ 127.0.0.1:0 ], name: http, service: http, backend: main, tls: { certificates: [ main ] } }\n"
	"  - { listen: [ 127.0.0.1:0 ], name: repeats, service: http, backend: main, repeat_downloads: 150KiB, tls: { "
	"certificates: [ main ] } }\n"
	"  - { listen: [ 127.0.0.1:0 ], name: pooled, service: http, backend: pooled, tls: { certificates: [ main ] } "
	"}\n"
	"  - { listen: [ 127.0.0.1:0 ], name: still, service: tcp, backend: main, migration: off, tls: { certificates: "
	"[ main ] } }\n"
	"  - { listen: [ 127.0.0.1:0 ], name: anew, service: tcp, backend: main, on_agent_loss: reconnect, tls: { "
	"certificates: [ main ] } }\n"
	"  - { listen: [ 127.0.0.1:0 ], name: proxied, service: tcp, backend: proxied, tls: { certificates: [ main ] } "
	"}\n"
	"  - { listen: [ 127.0.0.1:0 ], name: shown, service: http, backend: proxied, tls: { certificates: [ main ] } "
	"}\n"
	"  - { listen: [ 127.0.0.1:0 ], name: smtp, service: smtp, backend: main, tls: { certificates: [ main ] }, "
	"smtp: { starttls: implicit, hostname: mx.example, client_address: hidden } }\n"
	"  - { listen: [ 127.0.0.1:0 ], name: clear, service: smtp, backend: main, tls: { certificates: [ main ] }, "
	"smtp: { starttls: offer, hostname: mx.example, client_address: hidden } }\n"
	"  - { listen: [ 127.0.0.1:0 ], name: nowhere, service: tcp, backend: nowhere, tls: { certificates: [ main ] } "
	"}\n"
	"  - { listen: [ 127.0.0.1:0 ], name: unreachable, service: http, backend: nowhere, tls: { certificates: [ "
	"main ] } }\n";

static void load_conf(void)
{
	static char text[8192], error[2048];
	struct sockaddr_storage address;
	char where[ADDRESS_TEXT_MAX];

	backend_start(&address);
	address_format((struct sockaddr *)&address, where);
	snprintf(text, sizeof text, cluster_file, identity.chain_path, identity.key_path, where, where, where);
	int result = conf_parse(text, strlen(text), "c.yaml", &conf, error, sizeof error);
	ck_assert_msg(result == 0, "%s", error);
}

static void home_start(struct home *h, const char *name, struct home *other)
{
	char error[512] = "";

	fake_cluster_start(&h->cluster, name, &other->cluster);
	h->worker = (struct connection_home){ .worker = w,
		.conf = conf,
		.self = conf_agent_find(conf, name),
		.agents_key = &agents_key,
		.cluster = &h->cluster,
		.backend_states = h->backend_states };
	h->worker.contexts = tls_contexts_create(conf, &h->cluster.source.source, error, sizeof error);
	ck_assert_msg(h->worker.contexts != NULL, "%s", error);
	ck_assert_int_eq(connection_home_open(&h->worker), 0);
}

static void home_stop(struct home *h)
{
	ck_assert_uint_eq(h->worker.table.count, 0);
	ck_assert_uint_eq(h->worker.handshakes, 0);
	ck_assert_uint_eq(h->worker.parked, 0);
	connection_home_close(&h->worker);
}

static void setup(void)
{
	log_set_level(getenv("CSSL_TEST_LOG") ? LOG_DEBUG : LOG_ERROR + 1);
	setup_worker();
	counters = agent_counters_create(1);
	counters_use(counters_of(counters, 0));
	agents_key.count = 1;
	snprintf(agents_key.keys[0].id, sizeof agents_key.keys[0].id, "k1");
	randombytes_buf(agents_key.keys[0].key, KEY_LEN);
	load_conf();
	home_start(&a1, "a1", &a2);
	home_start(&a2, "a2", &a1);
	for (size_t i = 0; i < sizeof lots; i++)
		lots[i] = (uint8_t)(i ^ (i >> 8) * 31 ^ (i >> 16) * 17);
	manners = (struct manners){ 0 };
	got_len = 0;
	begun = CONNECTION_NONE;
}

static void connection_drop(void)
{
	if (begun == CONNECTION_BEGUN)
		fake_ragent_stop(&r);
	begun = CONNECTION_NONE;
	memory_client_destroy(client);
	record_forge_destroy(forge);
	client = NULL;
	forge = NULL;
	backend_drop();
}

static void teardown(void)
{
	connection_drop();
	fake_cluster_finish_passes(&a1.cluster, -1); /* what was under way calls back once more, even now */
	fake_cluster_finish_passes(&a2.cluster, -1);
	home_stop(&a1);
	home_stop(&a2);
	turns(8);
	connection_home_release(&a1.worker);
	connection_home_release(&a2.worker);
	fake_cluster_stop(&a1.cluster);
	fake_cluster_stop(&a2.cluster);
	backend_stop();
	conf_destroy(conf);
	teardown_worker();
	agent_counters_destroy(counters);
	counters_use(NULL);
}

uint64_t counted(enum agent_counter which)
{
	return agent_counters_sum(counters, which);
}

/* --- carrying --- */

static void read_client(void)
{
	ptrdiff_t n;

	/* OpenSSL says close_notify again and again once anything has ended the connection: only the first end counts
	 */
	while (SSL_is_init_finished(memory_client_ssl(client)) && memory_client_end(client) == CLIENT_OPEN &&
		(n = memory_client_read(client, got + got_len, sizeof got - got_len)) > 0)
		got_len += (size_t)n;
}

static size_t carry_to_ragent(void)
{
	const uint8_t *data;
	size_t len = memory_client_output(client, &data), used = 0;
	struct tls_record_header h;

	while (used < len && tls_record_scan(data + used, len - used, &h) == 0 &&
		r.kept_len + used + TLS_RECORD_HEADER_LEN + h.length <= r.window)
		used += TLS_RECORD_HEADER_LEN + h.length;
	if (used == 0)
		return 0;
	if (!forge) /* else OpenSSL and the test would both write with the same keys */
		fake_ragent_keep(&r, data, used);
	memory_client_output_taken(client, used);
	return used;
}

static size_t carry_to_client(void)
{
	size_t len;
	const uint8_t *data = fake_ragent_drain(&r, SIZE_MAX, &len);

	memory_client_feed(client, data, len);
	return len;
}

static int owner_waits_for_credit(void)
{
	uint64_t drained = r.drained - r.current->base;

	return drained - r.current->told >= a1.worker.window_len / 2 ||
	       r.current->data_flags & FRAME_LAST_OF_WRITE_GENERATION;
}

static void shake(void)
{
	if (!SSL_is_init_finished(memory_client_ssl(client)) && memory_client_end(client) == CLIENT_OPEN)
		memory_client_handshake(client);
	if (!early_len || !SSL_is_init_finished(memory_client_ssl(client)))
		return;
	memory_client_write(client, early, early_len);
	early_len = 0;
}

void carry(void)
{
	size_t moved;

	do {
		shake();
		moved = carry_to_ragent();
		moved += fake_ragent_forward(&r, manners.step ? manners.step : SIZE_MAX);
		if (manners.client == CLIENT_READS)
			moved += carry_to_client();
		if (manners.commits == COMMITS_TOLD && owner_waits_for_credit()) {
			r.current->data_flags = 0;
			fake_ragent_accept(&r);
		}
		if (manners.passes == PASSES_ARRIVE) {
			fake_cluster_finish_passes(&a1.cluster, 0);
			fake_cluster_finish_passes(&a2.cluster, 0);
		}
		read_client();
	} while (moved > 0);
}

void carry_on(void)
{
	for (unsigned i = 0; i < 20; i++) {
		carry();
		turn();
	}
}

/* --- the client --- */

int try_hello(const char *listener, struct home *home, Cssl__LinkOpen__Disposition disposition,
	const struct memory_client_config *config)
{
	connection_drop();
	got_len = early_len = 0;
	fake_ragent_start(&r, listener, WINDOW << manners.generous);
	begun = CONNECTION_BEGUN;
	client = memory_client_create(config);
	ck_assert_ptr_nonnull(client);
	return fake_ragent_open(&r, &home->worker, disposition);
}

void hello(const char *listener, struct home *home, Cssl__LinkOpen__Disposition disposition,
	const struct memory_client_config *config)
{
	ck_assert_int_eq(try_hello(listener, home, disposition, config), 1);
}

void keep(const char *listener, struct home *home, const struct memory_client_config *config)
{
	hello(listener, home, CSSL__LINK_OPEN__DISPOSITION__KEEP, config);
	carry_until(fake_said(&r, FRAME_KEPT) || fake_said(&r, FRAME_END));
	ck_assert_uint_eq(fake_said(&r, FRAME_KEPT), 1);
}

void hand_off(const char *listener, struct home *home, const struct memory_client_config *config)
{
	hello(listener, home, CSSL__LINK_OPEN__DISPOSITION__HAND_OFF, config);
	carry_until(fake_said(&r, FRAME_HANDED_OFF) || fake_said(&r, FRAME_END));
	ck_assert_uint_eq(fake_said(&r, FRAME_HANDED_OFF), 1);
}

void ping_pong(void)
{
	say_text("ping");
	if (backend < 0)
		backend_accept();
	backend_expect_text("ping");
	backend_say_text("pong");
	client_expect_text("pong");
}

void converse(const struct memory_client_config *config)
{
	keep("tcp", &a1, config);
	ping_pong();
}

enum connection_state state(void)
{
	return (enum connection_state)fake_owner(&r)->state;
}

const struct memory_client_config *tls_version(int i)
{
	static const struct memory_client_config configs[] = { { .version = TLS1_2_VERSION },
		{ .version = TLS1_3_VERSION } };

	return &configs[i];
}

void say(const void *data, size_t len)
{
	const uint8_t *at = data;

	if (!forge && SSL_is_init_finished(memory_client_ssl(client))) {
		memory_client_write(client, data, len);
		return;
	}
	if (!forge) {
		ck_assert_uint_le(early_len + len, sizeof early);
		memcpy(early + early_len, data, len);
		early_len += len;
		return;
	}
	for (size_t n; len > 0; at += n, len -= n) {
		n = len < TLS_PLAINTEXT_MAX ? len : TLS_PLAINTEXT_MAX;
		say_forged(&(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = at, .len = n });
	}
}

void say_text(const char *text)
{
	say(text, strlen(text));
}

void forge_begin(void)
{
	SSL *ssl = memory_client_ssl(client);
	struct direction_keys keys;
	uint64_t sequence;

	carry();
	ck_assert_int_eq(memory_client_writing(client, &keys, &sequence), 0);
	forge = record_forge_create(
		cipher_suite_find(SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(ssl))), &keys, sequence);
	ck_assert_ptr_nonnull(forge);
}

void say_forged(const struct forged_record *record)
{
	static uint8_t sealed[FORGED_RECORD_MAX];
	ptrdiff_t len = record_forge_seal(forge, record, sealed, sizeof sealed);

	ck_assert_int_gt(len, 0);
	fake_ragent_keep(&r, sealed, (size_t)len);
}

void say_key_update(int request)
{
	const uint8_t message[5] = { 24, 0, 0, 1, (uint8_t)request };

	if (!forge) {
		memory_client_update_keys(client, request);
		return;
	}
	say_forged(&(struct forged_record){ .type = TLS_HANDSHAKE, .content = message, .len = sizeof message });
	ck_assert_int_eq(record_forge_step(forge), 0);
}

void assert_same(const char *where, const uint8_t *have, const uint8_t *wanted, size_t len)
{
	size_t at = 0;

	while (at < len && have[at] == wanted[at]) /* Check writes a line for each assertion it makes */
		at++;
	ck_assert_msg(at == len, "%s: byte %zu of %zu is wrong", where, at, len);
}

void client_expect(const void *data, size_t len)
{
	carry_until(got_len >= len);
	assert_same("the client", got, data, len);
	memmove(got, got + len, got_len - len);
	got_len -= len;
}

void client_expect_text(const char *text)
{
	client_expect(text, strlen(text));
}

/* --- ends --- */

void expect_end(enum end_reason reason, enum carrier_end how)
{
	carry_until(fake_said(&r, FRAME_END));
	ck_assert_str_eq(end_reason_text(r.current->end_reason), end_reason_text(reason));
	ck_assert_int_eq(r.current->end_how, how);
}

void expect_alert(enum tls_alert alert)
{
	carry();
	ck_assert_int_eq(memory_client_end(client), CLIENT_ALERT);
	ck_assert_int_eq(memory_client_alert(client), alert);
}

void expect_close_notify(void)
{
	carry();
	ck_assert_int_eq(memory_client_end(client), CLIENT_CLOSE_NOTIFY);
}

void expect_nothing_certified(void)
{
	carry();
	ck_assert_int_ne(memory_client_end(client), CLIENT_CLOSE_NOTIFY);
}

/* --- moves --- */

void hand_off_to(struct home *home)
{
	fake_ragent_ask_move(&r, home->cluster.source.source.origin);
	carry_until(fake_said(&r, FRAME_HANDED_OFF) || fake_said(&r, FRAME_REFUSED) || fake_said(&r, FRAME_END));
	ck_assert_uint_eq(fake_said(&r, FRAME_HANDED_OFF), 1);
}

int adopt(struct home *home)
{
	return fake_ragent_adopt(&r, &home->worker, CSSL__CAUSE__CAUSE_MOVE);
}

void move_to(struct home *home)
{
	hand_off_to(home);
	ck_assert_int_eq(adopt(home), 1);
}

/* --- running --- */

static void keys_setup(void)
{
	ck_assert_int_eq(test_pki_start(&pki), 0);
	ck_assert_int_eq(test_pki_issue(&pki, "www.example.org", TEST_ECDSA, "www.example.org", 0, &identity), 0);
}

static void keys_teardown(void)
{
	test_identity_free(&identity);
	test_pki_stop(&pki);
}

int connection_suite_run(const char *name, const struct connection_fact *facts, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *all = tcase_create(name);

	if (sodium_init() < 0)
		return EXIT_FAILURE;
	tcase_set_timeout(all, 60);
	tcase_add_unchecked_fixture(all, keys_setup, keys_teardown); /* made once, before the tests fork */
	tcase_add_checked_fixture(all, setup, teardown);
	for (size_t i = 0; i < count; i++)
		tcase_add_loop_test(all, facts[i].fact, 0, facts[i].times ? facts[i].times : 1);
	suite_add_tcase(suite, all);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
