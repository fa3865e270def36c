/* test_handshake_wiping.c: where OpenSSL keeps the secrets of a handshake, and what is left of them when it is over.
 *
 * The client logs its secrets; the same are in the agent's SSL. When both are gone, the whole memory of this process is
 * searched for them. So the test itself keeps them veiled, and the stack, where OpenSSL computes, is not searched.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "conf/memory.h"
#include "net/memory/secret_heap.h"
#include "sslagent/tls/handshake_internal.h"
#include "tests/lib/page_flags.h"
#include "tests/unit/sslagent/cluster/memory_cluster.h"
#include "tests/unit/unit.h"

static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };

#ifndef CSSL_SANITIZED /* sanitizers have a heap of their own */

#define SECRETS_MAX  8u
#define SECRET_LEN   48u
#define VEIL         0x5au
#define WAITING      64u
#define MOST_WAITING (64u * 1024)
#define SPARE_MOST   (1024u * 1024) /* slabs that stay, each with a block in use or small */

static struct secret {
	char label[40];
	uint8_t veiled[SECRET_LEN];
	size_t len;
} secrets[SECRETS_MAX];
static unsigned secret_count;

static void on_secret(const SSL *ssl, const char *line)
{
	struct secret *s = &secrets[secret_count++];
	const char *hex = strrchr(line, ' ') + 1;

	ck_assert_uint_le(secret_count, SECRETS_MAX);
	snprintf(s->label, sizeof s->label, "%.*s", (int)strcspn(line, " "), line);
	for (s->len = 0; s->len < SECRET_LEN && hex[2 * s->len]; s->len++) {
		unsigned byte;
		ck_assert_int_eq(sscanf(hex + 2 * s->len, "%2x", &byte), 1);
		s->veiled[s->len] = (uint8_t)(byte ^ VEIL);
	}
}

static int is_there(const uint8_t *at, const struct secret *s)
{
	for (size_t i = 0; i < s->len; i++)
		if (at[i] != (s->veiled[i] ^ VEIL))
			return 0;
	return 1;
}

/* Does it name memory that a program writes, other than a stack? */
static int is_searched(const char *map_line)
{
	return strstr(map_line, " rw") && !strstr(map_line, "[stack]");
}

/* How often the secret is in the memory of this process. */
static unsigned copies_of(const struct secret *s)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned copies = 0;

	while (fgets(line, sizeof line, maps)) {
		uintptr_t begin, end;
		if (!is_searched(line) || sscanf(line, "%lx-%lx ", &begin, &end) != 2)
			continue;
		for (const uint8_t *at = (const uint8_t *)begin; at + s->len <= (const uint8_t *)end; at++)
			copies += *at == (s->veiled[0] ^ VEIL) && is_there(at, s);
	}
	fclose(maps);
	return copies;
}

static unsigned copies_of_all(void)
{
	unsigned copies = 0;

	for (unsigned i = 0; i < secret_count; i++)
		copies += copies_of(&secrets[i]);
	return copies;
}

static void connect_and_log(int version)
{
	ck_assert_int_eq(memory_agent_start(&agent, contexts, pool), 0);
	client = memory_client_create(
		&(struct memory_client_config){ .version = version, .tickets = CLIENT_NO_TICKETS });
	SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(memory_client_ssl(client)), on_secret);
	ck_assert_uint_eq(memory_exchange(client, &agent, 0, got, sizeof(got)), 0);
	ck_assert_int_eq(agent.state, AGENT_OWNS);
}

static void start(void)
{
	cluster_prepare();
	cluster_start();
}

START_TEST(no_secret_of_a_handshake_is_left)
{
	start();
	connect_and_log(versions[_i]);
	ck_assert_uint_eq(secret_count, _i == 0 ? 1 : 5);
	ck_assert_uint_gt(copies_of_all(), 0); /* OpenSSL itself forgets some of them in time */
	cluster_stop();
	for (unsigned i = 0; i < secret_count; i++)
		ck_assert_msg(copies_of(&secrets[i]) == 0, "%s is left", secrets[i].label);
}
END_TEST

START_TEST(no_secret_of_a_handshake_that_fails_is_left)
{
	start();
	ck_assert_int_eq(memory_agent_start(&agent, contexts, pool), 0);
	client = memory_client_create(&(struct memory_client_config){ .version = TLS1_3_VERSION });
	SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(memory_client_ssl(client)), on_secret);
	memory_client_handshake(client);
	const uint8_t *data;
	const size_t len = memory_client_output(client, &data);
	memory_agent_feed(&agent, data, len);
	memory_client_output_taken(client, len);
	memory_client_feed(client, agent.output, agent.output_len);
	memory_client_handshake(client); /* its Finished is lost */
	ck_assert_uint_ge(secret_count, 2);
	ck_assert_uint_gt(copies_of_all(), 0);
	cluster_stop();
	ck_assert_uint_eq(copies_of_all(), 0);
}
END_TEST

START_TEST(all_that_openssl_allocates_lies_apart)
{
	start();
	connect_and_log(versions[_i]);
	const void *const parts[] = { agent.handshake->ssl, SSL_get_session(agent.handshake->ssl),
		SSL_get_SSL_CTX(agent.handshake->ssl), SSL_get_rbio(agent.handshake->ssl) };
	for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
		ck_assert(page_has_flag(parts[i], " dd"));
	cluster_stop();
}
END_TEST

/* Where OpenSSL makes room for what a header claims: nothing; a hello; a message with certificates behind our flight.
 */
static const struct claim {
	uint8_t record[9];
	enum { IS_HELLO, FOLLOWS_HELLO, IS_NONE } what;
	uint32_t most;
} claims[] = {
	{ { 0 }, IS_NONE, MOST_WAITING },
	{ { 22, 3, 1, 0, 4, 1, 0, 0x7f, 0xfc }, IS_HELLO, MEMORY_OF_HANDSHAKE },
	{ { 22, 3, 3, 0, 4, 11, 0, 0x80, 0 }, FOLLOWS_HELLO, MEMORY_OF_HANDSHAKE },
};

static void make_wait(struct handshake *h, const struct claim *c, const uint8_t *hello, size_t len)
{
	if (c->what != IS_HELLO)
		ck_assert_int_eq(handshake_feed(h, hello, len), HANDSHAKE_MORE);
	if (c->what != IS_NONE)
		ck_assert_int_eq(handshake_feed(h, c->record, sizeof c->record), HANDSHAKE_MORE);
	handshake_rest(h);
}

START_TEST(a_handshake_that_waits_holds_less_than_check_says)
{
	struct handshake_params params = { 0 };
	struct handshake *waiting[WAITING];
	const uint8_t *hello;

	cluster_prepare();
	conf.listener.tls.client_ca = pki.ca_path;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_REQUIRED;
	cluster_start();
	client = memory_client_create(&(struct memory_client_config){ .version = TLS1_2_VERSION });
	memory_client_handshake(client);
	const size_t len = memory_client_output(client, &hello);
	const uint64_t before = secret_heap_held();
	for (unsigned i = 0; i < WAITING; i++) {
		waiting[i] = handshake_create(contexts, tls_listener_find(contexts, "web"), &params);
		make_wait(waiting[i], &claims[_i], hello, len);
	}
	const uint64_t held = secret_heap_held() - before;
	ck_assert_uint_le(held / WAITING, claims[_i].most);
	for (unsigned i = 0; i < WAITING; i++)
		handshake_destroy(waiting[i]);
	for (unsigned trims = 0; secret_heap_trim() == SECRET_HEAP_HAS_SPARE; trims++)
		ck_assert_uint_lt(trims, 2);
	ck_assert_uint_lt(secret_heap_held() - before, held / 4 + SPARE_MOST);
	cluster_stop();
}
END_TEST

static void add_facts(TCase *t)
{
	tcase_add_loop_test(t, no_secret_of_a_handshake_is_left, 0, 2);
	tcase_add_test(t, no_secret_of_a_handshake_that_fails_is_left);
	tcase_add_loop_test(t, all_that_openssl_allocates_lies_apart, 0, 2);
	tcase_add_loop_test(t, a_handshake_that_waits_holds_less_than_check_says, 0, sizeof claims / sizeof claims[0]);
}
#else
/* Sanitizers see that the heap's blocks are used as they may be. */
START_TEST(handshakes_work_in_the_heap)
{
	cluster_prepare();
	cluster_start();
	connect_to(contexts, &(struct memory_client_config){ .version = versions[_i] });
	ck_assert_int_eq(agent.state, AGENT_OWNS);
	echo(100, 0);
	cluster_stop();
}
END_TEST

static void add_facts(TCase *t)
{
	tcase_add_loop_test(t, handshakes_work_in_the_heap, 0, 2);
}
#endif

UNIT(handshake_wiping)
{
	if (secret_heap_for_openssl() < 0)
		return EXIT_FAILURE;
	Suite *s = suite_create("handshake_wiping");
	TCase *t = tcase_create("handshake_wiping");
	tcase_add_unchecked_fixture(t, pki_setup, pki_teardown);
	tcase_set_timeout(t, 60);
	add_facts(t);
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
