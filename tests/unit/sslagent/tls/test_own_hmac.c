/* test_own_hmac.c: our HMAC gives the same bytes as OpenSSL's own, however it is asked. */
#include <check.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "sslagent/tls/tls_library.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static uint8_t bytes[512]; /* keys from its beginning, what is signed behind them */

static void load(void)
{
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
	ck_assert_int_eq(tls_library_best(), TLS_ALGORITHMS_OWN);
}

static const size_t key_lens[] = { 1, 32, 48, 64, 65, 128, 129, 300 };
static const char *const mac_digests[] = { "SHA2-256", "SHA2-384", "SHA256", "SHA384" };

static size_t mac_of(const char *query, const char *digest, size_t key_len, uint8_t out[static 64])
{
	size_t len = 0;

	ck_assert_ptr_nonnull(
		EVP_Q_mac(tls_library(), "HMAC", query, digest, NULL, bytes, key_len, bytes + 300, 77, out, 64, &len));
	return len;
}

START_TEST(macs_are_those_of_openssl)
{
	for (size_t i = 0; i < sizeof(key_lens) / sizeof(key_lens[0]); i++) {
		uint8_t ours[64], its[64];
		size_t len = mac_of("provider=cssl", mac_digests[_i], key_lens[i], ours);
		ck_assert_uint_eq(len, mac_of("provider=default", mac_digests[_i], key_lens[i], its));
		ck_assert_mem_eq(ours, its, len);
	}
}
END_TEST

static EVP_MAC_CTX *mac_with_key_among_its_parameters(const char *query)
{
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, bytes, 32),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC *mac = EVP_MAC_fetch(tls_library(), "HMAC", query);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(mac);

	EVP_MAC_free(mac);
	ck_assert_int_eq(EVP_MAC_CTX_set_params(ctx, params), 1);
	return ctx;
}

/* OpenSSL asks for tickets in this way. */
START_TEST(a_mac_may_have_its_key_by_parameter_and_be_begun_anew)
{
	uint8_t out[2][2][32];
	static const char *const queries[] = { "provider=cssl", "provider=default" };

	for (unsigned q = 0; q < 2; q++) {
		EVP_MAC_CTX *ctx = mac_with_key_among_its_parameters(queries[q]);
		size_t len;
		ck_assert_uint_eq(EVP_MAC_CTX_get_mac_size(ctx), 32);
		ck_assert_int_eq(EVP_MAC_update(ctx, bytes, 100), 1);
		ck_assert_int_eq(EVP_MAC_final(ctx, out[q][0], &len, 32), 1);
		ck_assert_int_eq(EVP_MAC_init(ctx, NULL, 0, NULL), 1);
		ck_assert_int_eq(EVP_MAC_final(ctx, out[q][1], &len, 32), 1);
		EVP_MAC_CTX_free(ctx);
	}
	ck_assert_mem_eq(out[0], out[1], sizeof(out[0]));
	ck_assert_mem_ne(out[0][0], out[0][1], 32);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_checked_fixture(t, load, NULL);
	tcase_add_loop_test(t, macs_are_those_of_openssl, 0, 4);
	tcase_add_test(t, a_mac_may_have_its_key_by_parameter_and_be_begun_anew);
}

UNIT(own_hmac)
{
	return run_suite("own_hmac", add);
}
