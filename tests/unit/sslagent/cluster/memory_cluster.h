/* memory_cluster.h: what tests of handshakes start with: a CA, two certificates for www.example.org, two agents with a
 * session source each. */
#pragma once

#include <check.h>

#include "sslagent/tls/tls_contexts.h"
#include "tests/lib/memory_agent.h"

static struct test_pki pki;
static struct test_identity rsa, ecdsa;
static struct memory_conf conf;
static struct memory_source source, other_source;
static struct tls_contexts *contexts, *other_contexts;
static struct live_pool *pool, *other_pool;
static struct memory_agent agent;
static struct memory_client *client;
static uint8_t got[1u << 20];

/* Unchecked fixture: keys are made once, before the tests fork. */
static inline void pki_setup(void)
{
	ck_assert_int_eq(test_pki_start(&pki), 0);
	ck_assert_int_eq(
		test_pki_issue(&pki, "www.example.org", TEST_RSA, "www.example.org,*.example.net", 0, &rsa), 0);
	ck_assert_int_eq(
		test_pki_issue(&pki, "www.example.org", TEST_ECDSA, "www.example.org,*.example.net", 0, &ecdsa), 0);
}

static inline void pki_teardown(void)
{
	test_identity_free(&rsa);
	test_identity_free(&ecdsa);
	test_pki_stop(&pki);
}

static inline void cluster_prepare(void)
{
	memory_conf_fill(&conf, (struct test_identity *[]){ &ecdsa, &rsa }, 2);
	memory_source_start(&source, "a1");
	memory_source_start(&other_source, "a2");
	pool = live_pool_create(tls_library_best());
	other_pool = live_pool_create(tls_library_best());
}

static inline void cluster_start(void)
{
	char error[512];

	contexts = tls_contexts_create(&conf.conf, &source.source, error, sizeof(error));
	ck_assert_msg(contexts != NULL, "%s", error);
	other_contexts = tls_contexts_create(&conf.conf, &other_source.source, error, sizeof(error));
	ck_assert_msg(other_contexts != NULL, "%s", error);
}

static inline void disconnect(void)
{
	memory_client_destroy(client);
	memory_agent_stop(&agent);
	client = NULL;
	agent = (struct memory_agent){ 0 };
}

static inline void cluster_stop(void)
{
	disconnect();
	tls_contexts_unref(contexts);
	tls_contexts_unref(other_contexts);
	live_pool_destroy(pool);
	live_pool_destroy(other_pool);
	memory_source_stop(&source);
	memory_source_stop(&other_source);
}

/* One agent's contexts, one client; carried until nothing moves, @step bytes at a time (0: all). */
static inline void connect_step(struct tls_contexts *to, const struct memory_client_config *config, size_t step)
{
	ck_assert_int_eq(memory_agent_start(&agent, to, to == contexts ? pool : other_pool), 0);
	client = memory_client_create(config);
	ck_assert_ptr_nonnull(client);
	ck_assert_uint_eq(memory_exchange(client, &agent, step, got, sizeof(got)), 0);
}

static inline void connect_to(struct tls_contexts *to, const struct memory_client_config *config)
{
	connect_step(to, config, 0);
}

/* The client says @len bytes, and they come back. */
static inline void echo(size_t len, size_t step)
{
	static uint8_t said[1u << 20];

	for (size_t i = 0; i < len; i++)
		said[i] = (uint8_t)(i * 31 + i / 255 + len);
	memory_client_write(client, said, len);
	ck_assert_uint_eq(memory_exchange(client, &agent, step, got, sizeof(got)), len);
	ck_assert_mem_eq(got, said, len);
}
