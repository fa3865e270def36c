/* test_tls_contexts.c: what is wrong in a cluster file's certificates and TLS settings, and how it is said; names. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/report/log.h"
#include "sslagent/tls/handshake_internal.h"
#include "sslagent/tls/tls_contexts_internal.h"
#include "tests/unit/sslagent/cluster/memory_cluster.h"
#include "tests/unit/unit.h"

static char error[TLS_FAULTS_MAX];

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
	expect_error("expected the key of the first certificate in '");
	cluster_stop();
}
END_TEST

/* Paths of some hundred characters. */
START_TEST(the_remedy_is_told_behind_long_paths)
{
	char path[600] = "";

	cluster_prepare();
	for (size_t n = 0; n < 200; n++)
		strcat(path, "/.");
	strcat(path, rsa.key_path);
	conf.certificates[0].key = path;
	expect_error("name the files of one certificate, and put it first");
	cluster_stop();
}
END_TEST

/* --- files that are of no use --- */

static char bad_path[128];

/* A file that @write fills, in the folder of the certificates. */
static char *bad_file(void (*write)(FILE *f))
{
	snprintf(bad_path, sizeof(bad_path), "%s/bad.pem", pki.dir);
	FILE *f = fopen(bad_path, "w");
	ck_assert_ptr_nonnull(f);
	write(f);
	fclose(f);
	ck_assert_int_eq(chmod(bad_path, 0600), 0);
	return bad_path;
}

static void nothing(FILE *f)
{
}

static void byte_0(FILE *f)
{
	fwrite("\0\n", 1, 2, f);
}

static void text(FILE *f)
{
	fputs("no such host\n", f);
}

static void der_certificate(FILE *f)
{
	i2d_X509_fp(f, ecdsa.certificate);
}

static void der_key(FILE *f)
{
	i2d_PrivateKey_fp(f, ecdsa.key);
}

static void der_crl(FILE *f)
{
	fputc(0x30, f);
	fputc(0x82, f);
}

static void pem_certificate(FILE *f)
{
	PEM_write_X509(f, ecdsa.certificate);
}

static void pem_key(FILE *f)
{
	PEM_write_PrivateKey(f, ecdsa.key, NULL, NULL, 0, NULL, NULL);
}

static void encrypted_key(FILE *f)
{
	PEM_write_PrivateKey(f, ecdsa.key, EVP_aes_128_cbc(), (unsigned char *)"secret", 6, NULL, NULL);
}

static void encrypted_key_of_old(FILE *f)
{
	fputs("-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,"
	      "0123456789ABCDEF0123456789ABCDEF\n\nAAAA\n-----END EC PRIVATE KEY-----\n",
		f);
}

static void cut_off(FILE *f, void (*write)(FILE *f))
{
	char whole[4096];
	FILE *memory = fmemopen(whole, sizeof(whole), "w");

	write(memory);
	long len = ftell(memory);
	fclose(memory);
	fwrite(whole, 1, (size_t)len / 2, f);
}

static void half_a_key(FILE *f)
{
	cut_off(f, pem_key);
}

static void half_a_chain(FILE *f)
{
	pem_certificate(f);
	cut_off(f, pem_certificate);
}

static void garbage_behind_a_chain(FILE *f)
{
	pem_certificate(f);
	fputs("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", f);
}

static void encrypted_key_behind_garbage(FILE *f)
{
	garbage_behind_a_chain(f);
	encrypted_key(f);
}

enum bad { BAD_CHAIN, BAD_KEY, BAD_CA, BAD_CRL };

static const struct {
	enum bad what;
	void (*write)(FILE *f);
	const char *said;
} bad_files[] = {
	{ BAD_CHAIN, nothing, "which is empty, expected a PEM certificate and its chain: write it again" },
	{ BAD_CHAIN, text, " without one, expected a PEM certificate and its chain: name the right file" },
	{ BAD_CHAIN, der_certificate,
		"in DER form, expected a PEM certificate and its chain: openssl x509 -inform DER converts it" },
	{ BAD_CHAIN, pem_key, " without one, expected a PEM certificate and its chain: name the right file" },
	{ BAD_CHAIN, half_a_chain, "which is cut off, expected " },
	{ BAD_CHAIN, garbage_behind_a_chain,
		"expected a PEM certificate and its chain: write it again, or name the right file (" },
	{ BAD_CHAIN, byte_0, " without one, expected a PEM certificate and its chain: name the right file" },
	{ BAD_CHAIN, encrypted_key_behind_garbage,
		"bad.pem', expected a PEM certificate and its chain: write it again, or name the right file (" },
	{ BAD_KEY, nothing, "which is empty, expected a PEM private key without passphrase: write it again" },
	{ BAD_KEY, der_key, "in DER form, expected a PEM private key without passphrase: openssl pkey -inform DER" },
	{ BAD_KEY, pem_certificate, " without one, expected a PEM private key without passphrase" },
	{ BAD_KEY, half_a_key, "which is cut off, expected a PEM private key" },
	{ BAD_KEY, encrypted_key,
		"which is encrypted, expected a PEM private key without passphrase: openssl pkey -in" },
	{ BAD_KEY, encrypted_key_of_old, "which is encrypted, expected a PEM private key without passphrase" },
	{ BAD_CA, nothing, "which is empty, expected PEM certificates" },
	{ BAD_CA, der_certificate, "in DER form, expected PEM certificates" },
	{ BAD_CA, half_a_chain, "which is cut off, expected " },
	{ BAD_CRL, nothing, "which is empty, expected PEM CRLs" },
	{ BAD_CRL, der_crl, "in DER form, expected PEM CRLs: openssl crl -inform DER" },
	{ BAD_CRL, pem_certificate, " without one, expected PEM CRLs" },
};

START_TEST(a_file_of_no_use_is_told_with_its_fault_and_the_remedy)
{
	static const char *const keys[] = { "chain", "key", "client_ca", "client_crl" };
	char begin[256];

	cluster_prepare();
	char *path = bad_file(bad_files[_i].write);
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	conf.listener.tls.client_ca = bad_files[_i].what == BAD_CA ? path : pki.ca_path;
	switch (bad_files[_i].what) {
	case BAD_CHAIN: conf.certificates[0].chain = path; break;
	case BAD_KEY: conf.certificates[0].key = path; break;
	case BAD_CA: break;
	case BAD_CRL: conf.listener.tls.client_crl = path; break;
	}
	expect_error(bad_files[_i].said);
	snprintf(begin, sizeof(begin), "key '%s': found '%s'", keys[bad_files[_i].what], path);
	ck_assert_msg(strstr(error, begin) != NULL, "%s", error);
	ck_assert_ptr_null(strchr(error, '\n'));
	cluster_stop();
}
END_TEST

START_TEST(a_key_that_others_may_read_is_told)
{
	cluster_prepare();
	conf.certificates[0].key = bad_file(pem_key);
	ck_assert_int_eq(chmod(bad_path, 0644), 0);
	expect_error("with mode 0644, expected mode 0600 or 0640, not for others: chmod 600 ");
	cluster_stop();
}
END_TEST

/* Root may read all, so the test is run by another user. */
START_TEST(a_file_that_may_not_be_read_is_told_as_that)
{
	cluster_prepare();
	conf.certificates[0].key = bad_file(pem_key);
	ck_assert_int_eq(chmod(bad_path, 0000), 0);
	ck_assert_int_eq(chmod(pki.dir, 0755), 0);
	const uid_t self = geteuid();
	if (self == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	expect_error("key 'key': found '");
	ck_assert_int_eq(seteuid(self), 0);
	prctl(PR_SET_DUMPABLE, 1); /* the leak checker looks at the process as a debugger does */
	ck_assert_msg(strstr(error, "Permission denied; the user of this process needs the right to read it") != NULL,
		"%s", error);
	ck_assert_ptr_null(strstr(error, "passphrase"));
	cluster_stop();
}
END_TEST

START_TEST(a_weak_key_is_told_with_its_file)
{
	struct test_identity weak;

	cluster_prepare();
	ck_assert_int_eq(test_pki_issue(&pki, "weak", TEST_RSA_1024, "weak.example.org", 0, &weak), 0);
	conf.certificates[0].chain = weak.chain_path;
	conf.certificates[0].key = weak.key_path;
	expect_error("with a key of 1024 bits, expected keys and signatures that security level 2 takes: make ");
	ck_assert_msg(strstr(error, weak.chain_path) != NULL, "%s", error);
	ck_assert_msg(strstr(error, "(ee key too small)") != NULL, "%s", error);
	test_identity_free(&weak);
	cluster_stop();
}
END_TEST

START_TEST(all_faults_are_told_in_one_run)
{
	static const char *const faults[] = { "/bad.pem', which is empty, expected a PEM private key",
		"\ntest.yaml:10: key 'key': found '", "key 'client_crl': found '", "key 'client_ca': found '",
		"key 'groups': found 'nonsense'" };
	char other[128];

	cluster_prepare();
	conf.certificates[0].chain = bad_file(nothing);
	snprintf(other, sizeof(other), "%s/missing.pem", pki.dir);
	conf.certificates[0].key = bad_path;
	conf.certificates[1].key = other;
	conf.listener.tls.client_certificate = CONF_CLIENT_CERT_OPTIONAL;
	conf.listener.tls.client_crl = conf.listener.tls.client_ca = bad_path;
	conf.listener.tls.groups = (char *)"nonsense";
	expect_error("key 'chain': found '");
	for (size_t n = 0; n < sizeof(faults) / sizeof(faults[0]); n++)
		ck_assert_msg(strstr(error, faults[n]) != NULL, "no %s in: %s", faults[n], error);
	cluster_stop();
}
END_TEST

START_TEST(every_wrong_name_of_a_certificate_is_told)
{
	char *names[] = { (char *)"wrong", (char *)"worse" };

	cluster_prepare();
	conf.listener.tls.certificates = names;
	conf.listener.tls.certificate_count = 2;
	expect_error("key 'certificates': found 'wrong'");
	expect_error("key 'certificates': found 'worse'");
	cluster_stop();
}
END_TEST

enum bad_time { OVER, CHAIN_OVER, NOT_YET };

static void make_bad_time(enum bad_time what, struct test_pki *old, struct test_identity *out)
{
	test_pki_valid_for(-60);
	ck_assert_int_eq(test_pki_start(old), 0);
	test_pki_valid_for(what == OVER ? -60 : 0);
	ck_assert_int_eq(
		test_pki_issue(what == CHAIN_OVER ? old : &pki, "www.example.org", TEST_ECDSA, NULL, 0, out), 0);
	test_pki_valid_for(0);
	if (what != NOT_YET)
		return;
	X509_gmtime_adj(X509_getm_notBefore(out->certificate), 3600);
	ck_assert_int_gt(X509_sign(out->certificate, pki.ca_key, EVP_sha256()), 0);
	FILE *f = fopen(out->chain_path, "w");
	ck_assert_int_eq(PEM_write_X509(f, out->certificate), 1);
	fclose(f);
}

static const char *const time_warnings[] = {
	[OVER] = "certificate has expired certificate=",
	[CHAIN_OVER] = "certificate has expired certificate=",
	[NOT_YET] = "certificate not valid yet certificate=",
};

START_TEST(a_certificate_out_of_its_time_is_served_with_a_warning)
{
	struct test_identity bad;
	struct test_pki old;
	struct tls_contexts *t;
	char path[128], text[4096];
	size_t count, len;

	cluster_prepare();
	make_bad_time((enum bad_time)_i, &old, &bad);
	conf.certificates[0].chain = bad.chain_path;
	conf.certificates[0].key = bad.key_path;
	snprintf(path, sizeof(path), "%s/log", pki.dir);
	ck_assert_int_eq(log_open("sslagent", "a1", LOG_TEXT, LOG_INFO, path), 0);
	t = tls_contexts_create(&conf.conf, &source.source, error, sizeof(error));
	ck_assert_msg(t != NULL, "%s", error);
	log_close();
	FILE *f = fopen(path, "r");
	len = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	unlink(path);
	text[len] = '\0';
	ck_assert_msg(strstr(text, time_warnings[_i]) != NULL, "%s", text);
	ck_assert_ptr_null(strchr(strchr(text, '\n') + 1, '\n')); /* the others are valid */

	const struct tls_certificate *c = tls_contexts_certificates(t, &count);
	ck_assert_uint_eq(count, conf.conf.certificate_count);
	ck_assert_int_eq(c[0].not_after_s < time(NULL), _i != NOT_YET);
	ck_assert_int_gt(c[1].not_after_s, time(NULL) + 86400);
	ck_assert_ptr_nonnull(strstr(c[0].issuer, "CN="));
	tls_contexts_unref(t);
	test_identity_free(&bad);
	test_pki_stop(&old);
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
	ck_assert_uint_gt(l->name_count, 1);
	for (size_t i = 0; i < l->name_count; i++) /* both certificates are good for all names */
		ck_assert_ptr_eq(l->names[i].ctx, l->names[0].ctx);
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
	{ "www.example.org.", "www.example.org", "*.example.org" },
	{ "localhost.", "localhost", "" },
	{ ".", "", "" },
	{ "www.example.org..", "www.example.org.", "*.example.org." },
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
	tcase_add_test(t, the_remedy_is_told_behind_long_paths);
	tcase_add_loop_test(
		t, a_file_of_no_use_is_told_with_its_fault_and_the_remedy, 0, sizeof(bad_files) / sizeof(bad_files[0]));
	tcase_add_test(t, a_key_that_others_may_read_is_told);
	tcase_add_test(t, a_file_that_may_not_be_read_is_told_as_that);
	tcase_add_test(t, a_weak_key_is_told_with_its_file);
	tcase_add_test(t, all_faults_are_told_in_one_run);
	tcase_add_test(t, every_wrong_name_of_a_certificate_is_told);
	tcase_add_loop_test(t, a_certificate_out_of_its_time_is_served_with_a_warning, OVER, NOT_YET + 1);
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
