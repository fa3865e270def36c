/* test_datagram.c */
#include <string.h>

#include "proto/datagram.h"
#include "proto/error.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define KEY_ID 0x1122334455667788u

static const enum aead both[] = { AEAD_AES_256_GCM, AEAD_CHACHA20_POLY1305 };
static const uint8_t secret[AEAD_SECRET_LEN] = "a secret of exactly thirty-two b";
static const uint8_t secret_2[AEAD_SECRET_LEN] = "another secret of thirty-two byt";
static const struct datagram_header header = { .worker = 3, .key_id = KEY_ID, .boot_id = 99, .counter = 7 };
static const uint8_t payload[] = "the payload of one datagram";

static ptrdiff_t seal(struct datagram_key *k, const struct datagram_header *h, uint8_t out[static DATAGRAM_MAX])
{
	return datagram_seal(k, h, payload, sizeof(payload), out, DATAGRAM_MAX);
}

/* A datagram sealed under @secret by a key of its own. */
static size_t sealed_once(enum aead aead, uint8_t out[static DATAGRAM_MAX])
{
	struct datagram_key *k = datagram_key_create(KEY_ID, aead, secret);
	ptrdiff_t len = seal(k, &header, out);

	ck_assert_int_eq(len, DATAGRAM_HEADER_LEN + sizeof(payload) + DATAGRAM_TAG_LEN);
	datagram_key_destroy(k);
	return (size_t)len;
}

START_TEST(a_sealed_datagram_opens)
{
	uint8_t out[DATAGRAM_MAX], opened[DATAGRAM_PAYLOAD_MAX];

	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct datagram_key *k = datagram_key_create(KEY_ID, both[i], secret);
		size_t len = sealed_once(both[i], out);

		ck_assert_int_eq(datagram_open(k, out, len, opened, sizeof(opened)), sizeof(payload));
		ck_assert_mem_eq(opened, payload, sizeof(payload));
		datagram_key_destroy(k);
	}
}
END_TEST

START_TEST(the_header_stands_in_clear_in_its_fixed_places)
{
	static const uint8_t expected[DATAGRAM_HEADER_LEN] = { 1, 0, 0, 3, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
		0x88, 0, 0, 0, 0, 0, 0, 0, 99, 0, 0, 0, 0, 0, 0, 0, 7 };
	uint8_t out[DATAGRAM_MAX];
	struct datagram_header h;
	size_t len = sealed_once(AEAD_AES_256_GCM, out);

	ck_assert_mem_eq(out, expected, sizeof(expected));
	ck_assert_int_eq(datagram_peek(out, len, &h), 0);
	ck_assert_uint_eq(h.worker, header.worker);
	ck_assert_uint_eq(h.key_id, header.key_id);
	ck_assert_uint_eq(h.boot_id, header.boot_id);
	ck_assert_uint_eq(h.counter, header.counter);
}
END_TEST

START_TEST(a_flipped_bit_anywhere_is_refused)
{
	uint8_t out[DATAGRAM_MAX], opened[DATAGRAM_PAYLOAD_MAX];

	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct datagram_key *k = datagram_key_create(KEY_ID, both[i], secret);
		size_t len = sealed_once(both[i], out);

		for (size_t bit = 0; bit < 8 * len; bit++) {
			out[bit / 8] ^= (uint8_t)(1 << bit % 8);
			ck_assert_int_lt(datagram_open(k, out, len, opened, sizeof(opened)), 0);
			out[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		ck_assert_int_gt(datagram_open(k, out, len, opened, sizeof(opened)), 0);
		datagram_key_destroy(k);
	}
}
END_TEST

START_TEST(a_shorter_or_longer_datagram_is_refused)
{
	uint8_t out[DATAGRAM_MAX + 1] = { 0 }, opened[DATAGRAM_MAX];
	struct datagram_key *k = datagram_key_create(KEY_ID, AEAD_AES_256_GCM, secret);
	size_t len = sealed_once(AEAD_AES_256_GCM, out);

	for (size_t cut = 0; cut < len; cut++)
		ck_assert_int_eq(datagram_open(k, out, cut, opened, sizeof(opened)),
			cut < DATAGRAM_HEADER_LEN + DATAGRAM_TAG_LEN ? CSSL_E_TRUNCATED : CSSL_E_AUTH);
	ck_assert_int_eq(datagram_open(k, out, len + 1, opened, sizeof(opened)), CSSL_E_AUTH);
	ck_assert_int_eq(datagram_open(k, out, DATAGRAM_MAX + 1, opened, sizeof(opened)), CSSL_E_TOO_LONG);
	datagram_key_destroy(k);
}
END_TEST

START_TEST(another_version_or_a_set_reserved_byte_is_refused)
{
	uint8_t out[DATAGRAM_MAX];
	struct datagram_header h;
	size_t len = sealed_once(AEAD_AES_256_GCM, out);

	out[0] = DATAGRAM_VERSION + 1;
	ck_assert_int_eq(datagram_peek(out, len, &h), CSSL_E_VERSION);
	out[0] = DATAGRAM_VERSION;
	out[1] = 1;
	ck_assert_int_eq(datagram_peek(out, len, &h), CSSL_E_RANGE);
}
END_TEST

START_TEST(another_key_opens_nothing)
{
	uint8_t out[DATAGRAM_MAX], opened[DATAGRAM_PAYLOAD_MAX];
	struct datagram_key *other_secret = datagram_key_create(KEY_ID, AEAD_AES_256_GCM, secret_2);
	struct datagram_key *other_id = datagram_key_create(KEY_ID + 1, AEAD_AES_256_GCM, secret);
	struct datagram_key *other_aead = datagram_key_create(KEY_ID, AEAD_CHACHA20_POLY1305, secret);
	size_t len = sealed_once(AEAD_AES_256_GCM, out);

	ck_assert_int_eq(datagram_open(other_secret, out, len, opened, sizeof(opened)), CSSL_E_AUTH);
	ck_assert_int_eq(datagram_open(other_id, out, len, opened, sizeof(opened)), CSSL_E_MISMATCH);
	ck_assert_int_eq(datagram_open(other_aead, out, len, opened, sizeof(opened)), CSSL_E_AUTH);
	datagram_key_destroy(other_secret);
	datagram_key_destroy(other_id);
	datagram_key_destroy(other_aead);
}
END_TEST

START_TEST(a_counter_that_does_not_rise_seals_nothing)
{
	uint8_t out[DATAGRAM_MAX];
	struct datagram_key *k = datagram_key_create(KEY_ID, AEAD_AES_256_GCM, secret);
	struct datagram_header h = header;

	ck_assert_int_gt(seal(k, &h, out), 0);
	memset(out, 0, sizeof(out));
	ck_assert_int_eq(seal(k, &h, out), CSSL_E_UNSAFE);
	h.counter--;
	ck_assert_int_eq(seal(k, &h, out), CSSL_E_UNSAFE);
	ck_assert_uint_eq(out[0], 0);
	h.counter += 2;
	ck_assert_int_gt(seal(k, &h, out), 0);
	datagram_key_destroy(k);
}
END_TEST

START_TEST(one_object_seals_for_one_worker)
{
	uint8_t out[DATAGRAM_MAX];
	struct datagram_key *k = datagram_key_create(KEY_ID, AEAD_AES_256_GCM, secret);
	struct datagram_header h = header;

	ck_assert_int_gt(seal(k, &h, out), 0);
	h.worker++;
	h.counter++;
	ck_assert_int_eq(seal(k, &h, out), CSSL_E_UNSAFE);
	datagram_key_destroy(k);
}
END_TEST

START_TEST(workers_share_a_key_and_count_for_themselves)
{
	uint8_t out[2][DATAGRAM_MAX], opened[DATAGRAM_PAYLOAD_MAX];
	struct datagram_key *receiver = datagram_key_create(KEY_ID, AEAD_AES_256_GCM, secret);

	for (unsigned i = 0; i < 2; i++) {
		struct datagram_key *worker = datagram_key_create(KEY_ID, AEAD_AES_256_GCM, secret);
		struct datagram_header h = header;
		h.worker = (uint16_t)i;
		ptrdiff_t len = seal(worker, &h, out[i]);
		ck_assert_int_eq(datagram_open(receiver, out[i], (size_t)len, opened, sizeof(opened)), sizeof(payload));
		datagram_key_destroy(worker);
	}
	/* not the same key stream: the worker is in the nonce */
	ck_assert_mem_ne(out[0] + DATAGRAM_HEADER_LEN, out[1] + DATAGRAM_HEADER_LEN, sizeof(payload));
	datagram_key_destroy(receiver);
}
END_TEST

START_TEST(a_key_is_exhausted_above_its_limit)
{
	uint8_t out[DATAGRAM_MAX];
	struct datagram_key *k = datagram_key_create(KEY_ID, AEAD_AES_256_GCM, secret);
	struct datagram_header h = header;

	h.counter = DATAGRAM_COUNTER_MAX;
	ck_assert_int_gt(seal(k, &h, out), 0);
	h.counter++;
	ck_assert_int_eq(seal(k, &h, out), CSSL_E_EXHAUSTED);
	h.counter = UINT64_MAX;
	ck_assert_int_eq(seal(k, &h, out), CSSL_E_EXHAUSTED);
	datagram_key_destroy(k);
}
END_TEST

/* No key seals such a counter, so a sender of one should cost nothing. */
START_TEST(a_counter_above_the_limit_is_refused_unopened)
{
	uint8_t out[DATAGRAM_MAX];
	struct datagram_header h;
	size_t len = sealed_once(AEAD_AES_256_GCM, out);

	out[DATAGRAM_HEADER_LEN - 8] = 1;
	ck_assert_int_eq(datagram_peek(out, len, &h), CSSL_E_RANGE);
}
END_TEST

START_TEST(a_header_of_another_key_is_not_sealed)
{
	uint8_t out[DATAGRAM_MAX];
	struct datagram_key *k = datagram_key_create(KEY_ID + 1, AEAD_AES_256_GCM, secret);

	ck_assert_uint_eq(datagram_key_id(k), KEY_ID + 1);
	ck_assert_int_eq(seal(k, &header, out), CSSL_E_MISMATCH);
	datagram_key_destroy(k);
}
END_TEST

START_TEST(the_largest_payload_fits_and_a_larger_one_is_refused)
{
	uint8_t big[DATAGRAM_PAYLOAD_MAX + 1] = { 5 }, out[DATAGRAM_MAX + 1], opened[DATAGRAM_PAYLOAD_MAX];
	struct datagram_key *k = datagram_key_create(KEY_ID, AEAD_AES_256_GCM, secret);
	struct datagram_header h = header;

	ck_assert_int_eq(datagram_seal(k, &h, big, sizeof(big), out, sizeof(out)), CSSL_E_TOO_LONG);
	ck_assert_int_eq(datagram_seal(k, &h, big, sizeof(big) - 1, out, DATAGRAM_MAX - 1), CSSL_E_TOO_LONG);
	ck_assert_int_eq(datagram_seal(k, &h, big, sizeof(big) - 1, out, DATAGRAM_MAX), DATAGRAM_MAX);
	ck_assert_int_eq(datagram_open(k, out, DATAGRAM_MAX, opened, sizeof(opened) - 1), CSSL_E_TOO_LONG);
	ck_assert_int_eq(datagram_open(k, out, DATAGRAM_MAX, opened, sizeof(opened)), DATAGRAM_PAYLOAD_MAX);
	ck_assert_mem_eq(opened, big, sizeof(opened));
	datagram_key_destroy(k);
}
END_TEST

START_TEST(an_unknown_algorithm_has_no_key)
{
	ck_assert_ptr_null(datagram_key_create(KEY_ID, (enum aead)9, secret));
	datagram_key_destroy(NULL);
}
END_TEST

UNIT(datagram)
{
	const TTest *const facts[] = {
		a_sealed_datagram_opens,
		the_header_stands_in_clear_in_its_fixed_places,
		a_flipped_bit_anywhere_is_refused,
		a_shorter_or_longer_datagram_is_refused,
		another_version_or_a_set_reserved_byte_is_refused,
		another_key_opens_nothing,
		a_counter_that_does_not_rise_seals_nothing,
		one_object_seals_for_one_worker,
		workers_share_a_key_and_count_for_themselves,
		a_key_is_exhausted_above_its_limit,
		a_counter_above_the_limit_is_refused_unopened,
		a_header_of_another_key_is_not_sealed,
		the_largest_payload_fits_and_a_larger_one_is_refused,
		an_unknown_algorithm_has_no_key,
	};
	return suite_run("datagram", facts, SUITE_LEN(facts));
}
