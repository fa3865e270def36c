/* test_lean_provider.c: the library of this process has all that TLS can use of OpenSSL, and no other ciphers. */
#include <check.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sslagent/tls/tls_library.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define ALL_SUITES "ALL:COMPLEMENTOFALL:@SECLEVEL=0"
#define ALL_GROUPS "X25519:X448:P-256:P-384:P-521:ffdhe2048:ffdhe3072:ffdhe4096"

static SSL_CTX *context_of(OSSL_LIB_CTX *library)
{
	SSL_CTX *ctx = SSL_CTX_new_ex(library, NULL, TLS_server_method());

	ck_assert_ptr_nonnull(ctx);
	ck_assert_int_eq(SSL_CTX_set_cipher_list(ctx, ALL_SUITES), 1);
	return ctx;
}

static void start(void)
{
	ck_assert_int_eq(tls_library_begin(), 0);
	ck_assert_ptr_nonnull(tls_library());
}

static int has_cipher(const char *name)
{
	EVP_CIPHER *c = EVP_CIPHER_fetch(tls_library(), name, NULL);

	EVP_CIPHER_free(c);
	return c != NULL;
}

START_TEST(it_has_every_cipher_suite_of_openssl)
{
	start();
	OSSL_LIB_CTX *plain = OSSL_LIB_CTX_new();
	SSL_CTX *here = context_of(tls_library()), *there = context_of(plain);
	STACK_OF(SSL_CIPHER) *ours = SSL_CTX_get_ciphers(here), *theirs = SSL_CTX_get_ciphers(there);

	ck_assert_int_gt(sk_SSL_CIPHER_num(theirs), 60);
	ck_assert_int_eq(sk_SSL_CIPHER_num(ours), sk_SSL_CIPHER_num(theirs));
	for (int i = 0; i < sk_SSL_CIPHER_num(theirs); i++)
		ck_assert_str_eq(SSL_CIPHER_get_name(sk_SSL_CIPHER_value(ours, i)),
			SSL_CIPHER_get_name(sk_SSL_CIPHER_value(theirs, i)));
	SSL_CTX_free(here);
	SSL_CTX_free(there);
	OSSL_LIB_CTX_free(plain);
}
END_TEST

START_TEST(it_has_the_groups_and_kinds_of_keys)
{
	static const char *const kinds[] = { "ED25519", "ED448", "X25519", "X448" };

	start();
	SSL_CTX *ctx = context_of(tls_library());
	ck_assert_int_eq(SSL_CTX_set1_groups_list(ctx, ALL_GROUPS), 1);
	SSL_CTX_free(ctx);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
		EVP_PKEY *key = EVP_PKEY_Q_keygen(tls_library(), NULL, kinds[i]);
		ck_assert_msg(key != NULL, "%s", kinds[i]);
		EVP_PKEY_free(key);
	}
	EVP_PKEY *ec = EVP_PKEY_Q_keygen(tls_library(), NULL, "EC", "P-384");
	EVP_PKEY *rsa = EVP_PKEY_Q_keygen(tls_library(), NULL, "RSA", (size_t)2048);
	ck_assert(ec && rsa);
	EVP_PKEY_free(ec);
	EVP_PKEY_free(rsa);
}
END_TEST

START_TEST(it_has_no_ciphers_that_tls_never_had)
{
	start();
	ck_assert_int_eq(OSSL_PROVIDER_available(tls_library(), LEAN_PROVIDER_NAME), 1);
	ck_assert_int_eq(has_cipher("AES-128-GCM"), 1);
	ck_assert_int_eq(has_cipher("AES-128-XTS"), 0);
	ck_assert_int_eq(has_cipher("AES-256-OFB"), 0);
}
END_TEST

static const char *generator(void)
{
	EVP_RAND_CTX *c = RAND_get0_private(tls_library());

	ck_assert_ptr_nonnull(c);
	return EVP_RAND_get0_name(EVP_RAND_CTX_get0_rand(c));
}

START_TEST(its_random_bytes_are_our_own)
{
	uint8_t bytes[1024] = { 0 }, zeros = 0;

	start();
	ck_assert_str_eq(generator(), OWN_RANDOM_NAME);
	ck_assert_int_eq(RAND_bytes_ex(tls_library(), bytes, sizeof bytes, 256), 1);
	for (size_t i = 0; i < sizeof bytes; i++)
		zeros = (uint8_t)(zeros + (bytes[i] == 0));
	ck_assert_uint_lt(zeros, 40);
	ck_assert_int_eq(RAND_bytes_ex(tls_library(), bytes, sizeof bytes, 512), 0);
}
END_TEST

static void start_with(const char *configuration)
{
	char path[] = "/tmp/cssl-openssl-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, configuration, strlen(configuration)), (ssize_t)strlen(configuration));
	setenv("OPENSSL_CONF", path, 1);
	start();
	unlink(path);
}

/* The operator's providers stand: here an old one beside the default one. */
START_TEST(it_keeps_out_of_a_configuration_with_other_providers)
{
	start_with("openssl_conf = init\n[init]\nproviders = all\n[all]\ndefault = on\nlegacy = on\n"
		   "[on]\nactivate = 1\n");
	ck_assert_int_eq(OSSL_PROVIDER_available(tls_library(), LEAN_PROVIDER_NAME), 0);
	ck_assert_int_eq(has_cipher("AES-128-XTS"), 1);
	ck_assert_int_eq(has_cipher("RC4"), 1);
	ck_assert_str_ne(generator(), OWN_RANDOM_NAME);
}
END_TEST

/* Then there are two that offer the same. */
START_TEST(the_default_provider_may_be_named_in_the_configuration)
{
	start_with("openssl_conf = init\n[init]\nproviders = all\n[all]\ndefault = on\n[on]\nactivate = 1\n");
	SSL_CTX *ctx = context_of(tls_library());

	ck_assert_int_eq(SSL_CTX_set1_groups_list(ctx, ALL_GROUPS), 1);
	ck_assert_int_eq(tls_library_best(), TLS_ALGORITHMS_OWN);
	ck_assert_str_eq(generator(), OWN_RANDOM_NAME);
	SSL_CTX_free(ctx);
}
END_TEST

START_TEST(a_generator_of_the_configuration_is_used)
{
	start_with("openssl_conf = init\n[init]\nrandom = this\n[this]\nrandom = HASH-DRBG\ndigest = SHA512\n");
	ck_assert_int_eq(OSSL_PROVIDER_available(tls_library(), LEAN_PROVIDER_NAME), 1);
	ck_assert_str_eq(generator(), "HASH-DRBG");
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, it_has_every_cipher_suite_of_openssl);
	tcase_add_test(t, it_has_the_groups_and_kinds_of_keys);
	tcase_add_test(t, it_has_no_ciphers_that_tls_never_had);
	tcase_add_test(t, its_random_bytes_are_our_own);
	tcase_add_test(t, it_keeps_out_of_a_configuration_with_other_providers);
	tcase_add_test(t, the_default_provider_may_be_named_in_the_configuration);
	tcase_add_test(t, a_generator_of_the_configuration_is_used);
}

UNIT(lean_provider)
{
	return run_suite("lean_provider", add);
}
