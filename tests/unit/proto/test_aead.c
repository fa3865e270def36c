/* test_aead.c */
#include <openssl/err.h>
#include <string.h>

#include "proto/aead.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static const enum aead both[] = { AEAD_AES_256_GCM, AEAD_CHACHA20_POLY1305 };

static const uint8_t secret[AEAD_SECRET_LEN] = "a secret of exactly thirty-two b";
static const uint8_t secret_2[AEAD_SECRET_LEN] = "another secret of thirty-two byt";
static const uint8_t nonce[AEAD_NONCE_LEN] = "twelve bytes";
static const uint8_t ad[5] = "bound";
static const uint8_t plain[24] = "attack at dawn, or later";

static struct aead_message message(const uint8_t *in, size_t len)
{
	return (struct aead_message){ nonce, ad, sizeof(ad), in, len };
}

START_TEST(sealed_bytes_open)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct aead_key *k = aead_key_create(both[i], secret);
		uint8_t sealed[sizeof(plain)], tag[AEAD_TAG_LEN], opened[sizeof(plain)];
		struct aead_message out = message(plain, sizeof(plain)), in = message(sealed, sizeof(sealed));

		ck_assert_int_eq(aead_seal(k, &out, sealed, tag), 0);
		ck_assert_mem_ne(sealed, plain, sizeof(plain));
		ck_assert_int_eq(aead_open(k, &in, tag, opened), 0);
		ck_assert_mem_eq(opened, plain, sizeof(plain));
		aead_key_destroy(k);
	}
}
END_TEST

/* RFC 8439 2.8.2. */
START_TEST(chacha20_poly1305_gives_the_bytes_of_the_rfc)
{
	static const char text[] =
		"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
		"future, sunscreen would be it.";
	static const uint8_t rfc_nonce[AEAD_NONCE_LEN] = { 7, 0, 0, 0, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47 };
	static const uint8_t rfc_ad[] = { 0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7 };
	static const uint8_t rfc_tag[] = { 0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a, 0x7e, 0x90, 0x2e, 0xcb, 0xd0,
		0x60, 0x06, 0x91 };
	uint8_t key[AEAD_SECRET_LEN], sealed[sizeof(text)], tag[AEAD_TAG_LEN];
	struct aead_message m = { rfc_nonce, rfc_ad, sizeof(rfc_ad), (const uint8_t *)text, sizeof(text) - 1 };

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(0x80 + i);
	struct aead_key *k = aead_key_create(AEAD_CHACHA20_POLY1305, key);
	ck_assert_int_eq(aead_seal(k, &m, sealed, tag), 0);
	ck_assert_mem_eq(tag, rfc_tag, sizeof(tag));
	aead_key_destroy(k);
}
END_TEST

/* Test case 14 of the GCM specification: zero key, zero nonce, one zero block, no associated data. */
START_TEST(aes_256_gcm_gives_the_bytes_of_its_specification)
{
	static const uint8_t zero[AEAD_SECRET_LEN];
	static const uint8_t expected[] = { 0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e, 0x07, 0x4e, 0xc5, 0xd3,
		0xba, 0xf3, 0x9d, 0x18 };
	static const uint8_t expected_tag[] = { 0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0, 0x26, 0x5b, 0x98, 0xb5,
		0xd4, 0x8a, 0xb9, 0x19 };
	uint8_t sealed[16], tag[AEAD_TAG_LEN];
	struct aead_key *k = aead_key_create(AEAD_AES_256_GCM, zero);
	struct aead_message m = { zero, NULL, 0, zero, sizeof(sealed) };

	ck_assert_int_eq(aead_seal(k, &m, sealed, tag), 0);
	ck_assert_mem_eq(sealed, expected, sizeof(expected));
	ck_assert_mem_eq(tag, expected_tag, sizeof(tag));
	aead_key_destroy(k);
}
END_TEST

START_TEST(a_refused_message_leaves_no_plaintext_and_no_error_for_others)
{
	static const uint8_t zero[sizeof(plain)];

	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct aead_key *k = aead_key_create(both[i], secret);
		uint8_t sealed[sizeof(plain)], tag[AEAD_TAG_LEN];
		struct aead_message out = message(plain, sizeof(plain)), in = message(sealed, sizeof(sealed));

		ck_assert_int_eq(aead_seal(k, &out, sealed, tag), 0);
		tag[0] ^= 1;
		ck_assert_int_eq(aead_open(k, &in, tag, sealed), CSSL_E_AUTH);
		ck_assert_mem_eq(sealed, zero, sizeof(zero));
		/* SSL_get_error() of a handshake on this thread looks there */
		ck_assert_uint_eq(ERR_peek_error(), 0);
		aead_key_destroy(k);
	}
}
END_TEST

START_TEST(associated_data_and_nonce_are_bound)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct aead_key *k = aead_key_create(both[i], secret);
		uint8_t sealed[sizeof(plain)], tag[AEAD_TAG_LEN], opened[sizeof(plain)];
		struct aead_message out = message(plain, sizeof(plain)), in = message(sealed, sizeof(sealed));

		ck_assert_int_eq(aead_seal(k, &out, sealed, tag), 0);
		in.ad_len--;
		ck_assert_int_eq(aead_open(k, &in, tag, opened), CSSL_E_AUTH);
		in.ad_len++;
		in.nonce = secret;
		ck_assert_int_eq(aead_open(k, &in, tag, opened), CSSL_E_AUTH);
		aead_key_destroy(k);
	}
}
END_TEST

START_TEST(an_empty_message_has_a_tag_too)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct aead_key *k = aead_key_create(both[i], secret);
		uint8_t tag[AEAD_TAG_LEN];
		struct aead_message m = message(NULL, 0);

		ck_assert_int_eq(aead_seal(k, &m, NULL, tag), 0);
		ck_assert_int_eq(aead_open(k, &m, tag, NULL), 0);
		tag[15] ^= 0x80;
		ck_assert_int_eq(aead_open(k, &m, tag, NULL), CSSL_E_AUTH);
		aead_key_destroy(k);
	}
}
END_TEST

START_TEST(sealing_goes_on_right_after_a_refused_message)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct aead_key *k = aead_key_create(both[i], secret);
		uint8_t first[sizeof(plain)], second[sizeof(plain)], tag[AEAD_TAG_LEN], tag_2[AEAD_TAG_LEN];
		uint8_t opened[sizeof(plain)], wrong[AEAD_TAG_LEN] = { 0 };
		struct aead_message out = message(plain, sizeof(plain)), in = message(first, sizeof(first));

		ck_assert_int_eq(aead_seal(k, &out, first, tag), 0);
		ck_assert_int_eq(aead_open(k, &in, wrong, opened), CSSL_E_AUTH);
		ck_assert_int_eq(aead_seal(k, &out, second, tag_2), 0);
		ck_assert_mem_eq(second, first, sizeof(first));
		ck_assert_mem_eq(tag_2, tag, sizeof(tag));
		aead_key_destroy(k);
	}
}
END_TEST

START_TEST(a_replaced_secret_is_like_a_new_key)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct aead_key *replaced = aead_key_create(both[i], secret),
				*fresh = aead_key_create(both[i], secret_2);
		uint8_t sealed[sizeof(plain)], tag[AEAD_TAG_LEN], opened[sizeof(plain)];
		struct aead_message out = message(plain, sizeof(plain)), in = message(sealed, sizeof(sealed));

		ck_assert_int_eq(aead_key_replace(replaced, secret_2), 0);
		ck_assert_int_eq(aead_seal(replaced, &out, sealed, tag), 0);
		ck_assert_int_eq(aead_open(fresh, &in, tag, opened), 0);
		aead_key_destroy(replaced);
		aead_key_destroy(fresh);
	}
}
END_TEST

START_TEST(an_unknown_algorithm_has_no_key)
{
	ck_assert_ptr_null(aead_key_create((enum aead)0, secret));
	ck_assert_ptr_null(aead_key_create((enum aead)3, secret));
	aead_key_destroy(NULL);
}
END_TEST

START_TEST(two_sides_use_aes_only_when_both_prefer_it)
{
	ck_assert_int_eq(aead_agree(AEAD_AES_256_GCM, AEAD_AES_256_GCM), AEAD_AES_256_GCM);
	ck_assert_int_eq(aead_agree(AEAD_AES_256_GCM, AEAD_CHACHA20_POLY1305), AEAD_CHACHA20_POLY1305);
	ck_assert_int_eq(aead_agree(AEAD_CHACHA20_POLY1305, AEAD_AES_256_GCM), AEAD_CHACHA20_POLY1305);
	ck_assert_int_eq(aead_agree(AEAD_CHACHA20_POLY1305, AEAD_CHACHA20_POLY1305), AEAD_CHACHA20_POLY1305);
}
END_TEST

UNIT(aead)
{
	const TTest *const facts[] = {
		sealed_bytes_open,
		chacha20_poly1305_gives_the_bytes_of_the_rfc,
		aes_256_gcm_gives_the_bytes_of_its_specification,
		a_refused_message_leaves_no_plaintext_and_no_error_for_others,
		associated_data_and_nonce_are_bound,
		an_empty_message_has_a_tag_too,
		sealing_goes_on_right_after_a_refused_message,
		a_replaced_secret_is_like_a_new_key,
		an_unknown_algorithm_has_no_key,
		two_sides_use_aes_only_when_both_prefer_it,
	};
	return suite_run("aead", facts, SUITE_LEN(facts));
}
