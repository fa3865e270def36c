/* test_tls_contexts.c: what is wrong in a cluster file's certificates and TLS settings, and how it is said; names. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sslagent/tls/handshake_internal.h"
#include "sslagent/tls/tls_contexts_internal.h"
#include "tests/unit/sslagent/cluster/memory_cluster.h"
#include "tests/unit/unit.h"

static char error[512];

static void expect_error(const char *part)
{
	struct tls_contexts *t = tls_contexts_create(&conf.conf, &source.source, error, sizeof(error));

	ck_assert_ptr_null(t);
	ck_assert_msg(strstr(error, part), "'%s' is not in: %s", part, error);
	ck_assert_msg(strncmp(error, "test.yaml:", 10) == 0, "%s", error);
}

START_TEST(a_missing_chain_is_named)
{
	cluster_prepare();
	conf.certificates[1].chain = (char *)"/nonexistent/chain.pem";
	expect_error("test.yaml:10: key 'chain': found '/nonexistent/chain.pem'");
	cluster_stop();
}
END_TEST

START_TEST(a_key_of_another_certificate_is_named)
{
	cluster_prepare();
	conf.certificates[0].key = rsa.key_path;
	expect_error("the key of the chain's first certificate");
	conf.certificates[0].key = ecdsa.chain_path;
	expect_error("a PEM private key without passphrase");
	cluster_stop();
}
END_TEST

START_TEST(an_encrypted_key_is_an_error_and_asks_nobody)
{
	char path[128];

	cluster_prepare();
	snprintf(path, sizeof(path), "%s/encrypted.key", pki.dir);
	FILE *f = fopen(path, "w");
	ck_assert_int_eq(
		PEM_write_PrivateKey(f, ecdsa.key, EVP_aes_128_cbc(), (unsigned char *)"secret", 6, NULL, NULL), 1);
	fclose(f);
	conf.certificates[0].key = path;
	expect_error("a PEM private key without passphrase");
	cluster_stop();
}
END_TEST

START_TEST(garbage_behind_the_chain_is_an_error)
{
	char path[128];

	cluster_prepare();
	snprintf(path, sizeof(path), "%s/garbage.pem", pki.dir);
	FILE *f = fopen(path, "w");
	PEM_write_X509(f, ecdsa.certificate);
	fputs("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", f);
	fclose(f);
	conf.certificates[0].chain = path;
	expect_error("a PEM certificate and its chain");
	cluster_stop();
}
END_TEST

START_TEST(settings_that_openssl_refuses_are_named)
{
	cluster_prepare();
	conf.listener.tls.groups = (char *)"P-256:nonsense";
	expect_error("key 'groups': found 'P-256:nonsense'");
	conf.listener.tls.groups = NULL;
	conf.listener.tls.ciphers = (char *)"nonsense";
	expect_error("key 'ciphers': found 'nonsense'");
	conf.listener.tls.ciphers = NULL;
	conf.listener.tls.cipher_suites = (char *)"nonsense";
	expect_error("key 'cipher_suites': found 'nonsense'");
	conf.listener.tls.cipher_suites = NULL;
	conf.listener.tls.client_ca = (char *)"/nonexistent/ca.pem";
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	expect_error("key 'client_ca': found '/nonexistent/ca.pem'");
	expect_error("test.yaml:20: listener 'web'");
	cluster_stop();
}
END_TEST

START_TEST(suites_the_record_layer_does_not_carry_are_refused)
{
	static const char *const ciphers[] = { "ECDHE-RSA-AES128-SHA", "AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256",
		"ECDHE-ECDSA-AES128-CCM", "ECDHE+AESGCM:ECDHE-RSA-AES256-SHA384" };

	cluster_prepare();
	conf.listener.tls.ciphers = (char *)ciphers[_i];
	expect_error("expected AES-GCM or ChaCha20-Poly1305 suites");
	conf.listener.tls.ciphers = NULL;
	conf.listener.tls.cipher_suites = (char *)"TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256";
	expect_error("TLS_AES_128_CCM_SHA256");
	cluster_stop();
}
END_TEST

#ifndef CSSL_SANITIZED /* tls_library.c has none then */
/* One of RSA-2048, one of P-256. */
START_TEST(private_keys_lie_on_the_secure_heap)
{
	cluster_prepare();
	tls_library();
	size_t before = CRYPTO_secure_used();
	cluster_start();
	size_t loaded = CRYPTO_secure_used();
	ck_assert_uint_ge(loaded, before + 2 * (640 + 32)); /* of two agents */
	cluster_stop();
	ck_assert_uint_le(CRYPTO_secure_used(), loaded - 2 * (640 + 32));
}
END_TEST
#endif

/* The groups that agent and client have both, in the order in which the agent chooses. */
static void expect_shared_groups(const char *of_client, const char *const *want, size_t count)
{
	const struct memory_client_config config = { .version = TLS1_3_VERSION, .groups = of_client };
	const uint8_t *hello;

	ck_assert_int_eq(memory_agent_start(&agent, contexts, pool), 0);
	client = memory_client_create(&config);
	ck_assert_ptr_nonnull(client);
	ck_assert_int_eq(memory_client_handshake(client), 0);
	size_t len = memory_client_output(client, &hello);
	memory_agent_feed(&agent, hello, len);
	SSL *ssl = agent.handshake->ssl;
	ck_assert_int_eq((int)SSL_get_shared_group(ssl, -1), (int)count);
	for (size_t i = 0; i < count; i++)
		ck_assert_int_eq(
			strcasecmp(SSL_group_to_name(ssl, (int)SSL_get_shared_group(ssl, (int)i)), want[i]), 0);
}

static int openssl_has_group(const char *name)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	int has = SSL_CTX_set1_groups_list(ctx, name) == 1;

	SSL_CTX_free(ctx);
	ERR_clear_error();
	return has;
}

START_TEST(the_server_chooses_the_group_and_the_hybrid_first_where_openssl_has_it)
{
	static const char *const want[] = { "X25519MLKEM768", "x25519", "secp256r1", "secp384r1" };
	const int hybrid = openssl_has_group("X25519MLKEM768");

	cluster_prepare();
	cluster_start();
	if (hybrid)
		expect_shared_groups("P-384:P-256:X25519:X25519MLKEM768", want, 4);
	else
		expect_shared_groups("P-384:P-256:X25519", want + 1, 3);
	cluster_stop();
}
END_TEST

START_TEST(the_hybrid_group_is_first_of_the_list_that_openssl_is_asked_to_take_first)
{
	ck_assert_str_eq(tls_default_groups[0], "X25519MLKEM768:X25519:P-256:P-384");
	ck_assert_str_eq(tls_default_groups[1], "X25519:P-256:P-384"); /* the same for OpenSSL without it */
}
END_TEST

START_TEST(contexts_outlive_their_creator_while_referenced)
{
	cluster_prepare();
	cluster_start();
	tls_contexts_ref(contexts);
	tls_contexts_unref(contexts);
	ck_assert_ptr_nonnull(tls_listener_find(contexts, "web"));
	ck_assert_ptr_null(tls_listener_find(contexts, "nobody"));
	ck_assert_ptr_eq(tls_listener_conf(tls_listener_find(contexts, "web")), &conf.listener);
	tls_contexts_unref(NULL);
	cluster_stop();
}
END_TEST

START_TEST(equal_choices_share_a_context)
{
	cluster_prepare();
	cluster_start();
	const struct tls_listener *l = tls_listener_find(contexts, "web");
	ck_assert_uint_eq(l->set_count, 1); /* both certificates are good for both names */
	ck_assert_ptr_eq(tls_listener_choose(l, "www.example.org"), tls_listener_choose(l, "any.example.net"));
	ck_assert_ptr_eq(tls_listener_choose(l, ""), tls_listener_default(l));
	cluster_stop();
}
END_TEST

static const struct {
	const char *name, *normalized, *pattern;
} names[] = {
	{ "www.example.org", "www.example.org", "*.example.org" },
	{ "WWW.Example.ORG", "www.example.org", "*.example.org" },
	{ "localhost", "localhost", "" },
	{ "", "", "" },
	{ ".org", ".org", "" },
	{ "a.b.c", "a.b.c", "*.b.c" },
};

START_TEST(names_are_normalized_and_have_one_pattern)
{
	char out[NAME_MAX_LEN + 1], pattern[NAME_MAX_LEN + 1];

	host_name_normalize(names[_i].name, strlen(names[_i].name), out);
	ck_assert_str_eq(out, names[_i].normalized);
	host_name_pattern(out, pattern);
	ck_assert_str_eq(pattern, names[_i].pattern);
}
END_TEST

START_TEST(names_that_are_none_are_empty)
{
	char out[NAME_MAX_LEN + 1], pattern[NAME_MAX_LEN + 1], long_name[NAME_MAX_LEN + 2];

	host_name_normalize("www\0.example.org", 16, out);
	ck_assert_str_eq(out, "");
	memset(long_name, 'a', sizeof(long_name));
	host_name_normalize(long_name, NAME_MAX_LEN + 1, out);
	ck_assert_str_eq(out, "");
	long_name[1] = '.';
	host_name_normalize(long_name, NAME_MAX_LEN, out);
	ck_assert_uint_eq(strlen(out), NAME_MAX_LEN);
	host_name_pattern(out, pattern);
	ck_assert_uint_eq(strlen(pattern), NAME_MAX_LEN);
}
END_TEST

UNIT(tls_contexts)
{
	Suite *s = suite_create("tls_contexts");
	TCase *t = tcase_create("contexts");
	SRunner *r = srunner_create(s);

	tcase_add_unchecked_fixture(t, pki_setup, pki_teardown);
	tcase_add_test(t, a_missing_chain_is_named);
	tcase_add_test(t, a_key_of_another_certificate_is_named);
	tcase_add_test(t, an_encrypted_key_is_an_error_and_asks_nobody);
	tcase_add_test(t, garbage_behind_the_chain_is_an_error);
	tcase_add_test(t, settings_that_openssl_refuses_are_named);
	tcase_add_loop_test(t, suites_the_record_layer_does_not_carry_are_refused, 0, 5);
	tcase_add_test(t, the_server_chooses_the_group_and_the_hybrid_first_where_openssl_has_it);
	tcase_add_test(t, the_hybrid_group_is_first_of_the_list_that_openssl_is_asked_to_take_first);
	tcase_add_test(t, contexts_outlive_their_creator_while_referenced);
#ifndef CSSL_SANITIZED
	tcase_add_test(t, private_keys_lie_on_the_secure_heap);
#endif
	tcase_add_test(t, equal_choices_share_a_context);
	tcase_add_loop_test(t, names_are_normalized_and_have_one_pattern, 0, sizeof(names) / sizeof(names[0]));
	tcase_add_test(t, names_that_are_none_are_empty);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
