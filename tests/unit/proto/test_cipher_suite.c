/* test_cipher_suite.c: compares the table with the libraries. */
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <string.h>

#include "proto/cipher_suite.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(every_suite_is_found_by_its_id)
{
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	ck_assert_uint_eq(count, 9);
	for (unsigned i = 0; i < count; i++)
		ck_assert_ptr_eq(cipher_suite_find(suites[i].id), &suites[i]);
}
END_TEST

START_TEST(cbc_ccm_and_static_rsa_suites_are_unknown)
{
	static const uint16_t unknown[] = { 0x0000, 0x002f, 0x009c, 0x1304, 0x1305, 0xc009, 0xc013, 0xc0ac, 0xffff };

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		ck_assert_ptr_null(cipher_suite_find(unknown[i]));
}
END_TEST

START_TEST(each_suite_is_what_libssl_knows_under_its_id)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	SSL *ssl = SSL_new(context);
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	for (unsigned i = 0; i < count; i++) {
		uint8_t id[2] = { suites[i].id >> 8, suites[i].id & 0xff };
		const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, id);

		ck_assert_ptr_nonnull(cipher);
		ck_assert_str_eq(SSL_CIPHER_standard_name(cipher), suites[i].name);
		ck_assert_str_eq(
			SSL_CIPHER_get_version(cipher), suites[i].protocol_version == 0x0304 ? "TLSv1.3" : "TLSv1.2");
		ck_assert_int_eq(EVP_MD_get_size(SSL_CIPHER_get_handshake_digest(cipher)), suites[i].hash_len);
	}
	SSL_free(ssl);
	SSL_CTX_free(context);
}
END_TEST

START_TEST(each_suite_names_algorithms_of_libcrypto_with_its_lengths)
{
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	for (unsigned i = 0; i < count; i++) {
		EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, suites[i].aead, NULL);
		EVP_MD *digest = EVP_MD_fetch(NULL, suites[i].digest, NULL);

		ck_assert_ptr_nonnull(cipher);
		ck_assert_ptr_nonnull(digest);
		ck_assert_int_eq(EVP_CIPHER_get_key_length(cipher), suites[i].key_len);
		ck_assert_int_eq(EVP_MD_get_size(digest), suites[i].hash_len);
		EVP_CIPHER_free(cipher);
		EVP_MD_free(digest);
	}
}
END_TEST

START_TEST(only_aes_gcm_of_tls12_has_an_explicit_nonce)
{
	unsigned count;
	const struct cipher_suite *suites = cipher_suites(&count);

	for (unsigned i = 0; i < count; i++) {
		int explicit_nonce = suites[i].protocol_version == 0x0303 && strstr(suites[i].aead, "GCM");
		ck_assert_uint_eq(suites[i].iv_len, explicit_nonce ? 4 : 12);
	}
}
END_TEST

UNIT(cipher_suite)
{
	const TTest *const facts[] = {
		every_suite_is_found_by_its_id,
		cbc_ccm_and_static_rsa_suites_are_unknown,
		each_suite_is_what_libssl_knows_under_its_id,
		each_suite_names_algorithms_of_libcrypto_with_its_lengths,
		only_aes_gcm_of_tls12_has_an_explicit_nonce,
	};
	return suite_run("cipher_suite", facts, SUITE_LEN(facts));
}
