/* test_key_schedule.c: against RFC 8448 3 (simple 1-RTT handshake) and a TLS 1.2 connection of OpenSSL's. */
#include <check.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sslagent/tls/key_schedule.h"
#include "tests/unit/unit.h"

static EVP_KDF_CTX *schedules[TLS_ALGORITHMS_COUNT];
#define schedule (schedules[_i % TLS_ALGORITHMS_COUNT]) /* each test runs with both */

static void setup(void)
{
	for (unsigned a = 0; a < TLS_ALGORITHMS_COUNT; a++) {
		schedules[a] = key_schedule_create((enum tls_algorithms)a);
		ck_assert_ptr_nonnull(schedules[a]);
	}
}

static void teardown(void)
{
	for (unsigned a = 0; a < TLS_ALGORITHMS_COUNT; a++)
		EVP_KDF_CTX_free(schedules[a]);
}

static void from_hex(const char *hex, uint8_t *out)
{
	for (size_t i = 0; hex[2 * i]; i++)
		ck_assert_int_eq(sscanf(hex + 2 * i, "%2hhx", &out[i]), 1);
}

static const struct {
	const char *secret, *key, *iv;
} rfc8448[] = {
	{ "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5", "17422dda596ed5d9acd890e3c63f5051",
		"5b78923dee08579033e523d9" },
	{ "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643", "9f02283b6c9c07efc26bb9f2ac92e356",
		"cf782b88dd83549aadf1e984" },
};

START_TEST(keys_follow_from_secrets_as_in_rfc_8448)
{
	struct direction_keys d = { .secret_len = 32 };
	uint8_t key[16], iv[12];

	from_hex(rfc8448[_i / TLS_ALGORITHMS_COUNT].secret, d.secret);
	from_hex(rfc8448[_i / TLS_ALGORITHMS_COUNT].key, key);
	from_hex(rfc8448[_i / TLS_ALGORITHMS_COUNT].iv, iv);
	ck_assert_int_eq(key_schedule_derive(schedule, cipher_suite_find(0x1301), &d), 0);
	ck_assert_uint_eq(d.key_len, 16);
	ck_assert_uint_eq(d.iv_len, 12);
	ck_assert_mem_eq(d.key, key, 16);
	ck_assert_mem_eq(d.iv, iv, 12);
}
END_TEST

/* HKDF-Expand with the info written out (RFC 8446 7.1), by another algorithm of libcrypto. */
static void expand_by_hkdf(
	const char *digest, const uint8_t *secret, size_t secret_len, const char *label, uint8_t *out, size_t len)
{
	uint8_t info[64] = { (uint8_t)(len >> 8), (uint8_t)len, (uint8_t)(6 + strlen(label)) };
	size_t info_len = 3 + (size_t)sprintf((char *)info + 3, "tls13 %s", label) + 1; /* and an empty context */
	int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)secret, secret_len),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, info_len),
		OSSL_PARAM_construct_end(),
	};

	ck_assert_int_eq(EVP_KDF_derive(ctx, out, len, params), 1);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
}

START_TEST(each_suite_expands_with_its_hash)
{
	static const uint16_t suites[] = { 0x1301, 0x1302, 0x1303 };
	const struct cipher_suite *suite = cipher_suite_find(suites[_i / TLS_ALGORITHMS_COUNT]);
	struct direction_keys d = { .secret_len = suite->hash_len };
	uint8_t expected[48], next[48];

	memset(d.secret, 0x5a, d.secret_len);
	ck_assert_int_eq(key_schedule_derive(schedule, suite, &d), 0);
	expand_by_hkdf(suite->digest, d.secret, d.secret_len, "key", expected, suite->key_len);
	ck_assert_mem_eq(d.key, expected, suite->key_len);
	expand_by_hkdf(suite->digest, d.secret, d.secret_len, "iv", expected, 12);
	ck_assert_mem_eq(d.iv, expected, 12);
	ck_assert_int_eq(key_schedule_next_secret(schedule, suite, d.secret, next), 0);
	expand_by_hkdf(suite->digest, d.secret, d.secret_len, "traffic upd", expected, suite->hash_len);
	ck_assert_mem_eq(next, expected, suite->hash_len);
}
END_TEST

START_TEST(a_secret_can_be_stepped_in_place)
{
	const struct cipher_suite *suite = cipher_suite_find(0x1302);
	uint8_t secret[48] = { 1, 2, 3 }, next[48];

	ck_assert_int_eq(key_schedule_next_secret(schedule, suite, secret, next), 0);
	ck_assert_int_eq(key_schedule_next_secret(schedule, suite, secret, secret), 0);
	ck_assert_mem_eq(secret, next, 48);
}
END_TEST

/* The seed in three parts, as RFC 5246 6.3 writes it. */
START_TEST(tls12_key_blocks_are_cut_in_the_order_of_rfc_5246)
{
	static const uint16_t suites[] = { 0xc02b, 0xc02c, 0xcca9 };
	const struct cipher_suite *suite = cipher_suite_find(suites[_i / 2]);
	const enum tls_algorithms algorithms = _i % 2 ? TLS_ALGORITHMS_OPENSSL : TLS_ALGORITHMS_OWN;
	uint8_t master[48], client[32], server[32], block[128];
	struct direction_keys c = { 0 }, s = { 0 };
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);

	memset(master, 1, 48);
	memset(client, 2, 32);
	memset(server, 3, 32);
	ck_assert_int_eq(
		key_schedule_expand_block(algorithms, suite, &(struct tls12_secrets){ master, client, server }, &c, &s),
		0);
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)suite->digest, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, master, 48),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, (void *)"key expansion", 13),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, server, 32),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, client, 32),
		OSSL_PARAM_construct_end(),
	};
	size_t k = suite->key_len, v = suite->iv_len;
	ck_assert_int_eq(EVP_KDF_derive(ctx, block, 2 * (k + v), params), 1);
	ck_assert_mem_eq(c.key, block, k);
	ck_assert_mem_eq(s.key, block + k, k);
	ck_assert_mem_eq(c.iv, block + 2 * k, v);
	ck_assert_mem_eq(s.iv, block + 2 * k + v, v);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
}
END_TEST

UNIT(key_schedule)
{
	Suite *s = suite_create("key_schedule");
	TCase *t = tcase_create("key schedule");
	SRunner *r = srunner_create(s);

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, keys_follow_from_secrets_as_in_rfc_8448, 0, 2 * TLS_ALGORITHMS_COUNT);
	tcase_add_loop_test(t, each_suite_expands_with_its_hash, 0, 3 * TLS_ALGORITHMS_COUNT);
	tcase_add_loop_test(t, a_secret_can_be_stepped_in_place, 0, TLS_ALGORITHMS_COUNT);
	tcase_add_loop_test(t, tls12_key_blocks_are_cut_in_the_order_of_rfc_5246, 0, 6);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
