/* test_batch.c */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#include "proto/batch.h"
#include "proto/error.h"
#include "proto/wire.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

#define TEXT_LEN 40u

static const enum aead both[] = { AEAD_AES_256_GCM, AEAD_CHACHA20_POLY1305 };
static const uint8_t key[AEAD_SECRET_LEN] = "a secret of exactly thirty-two b";

/* Both ends of a direction. */
struct link {
	struct batch_cipher *sealing, *opening;
};

static struct link link_create(enum aead aead, uint32_t batches_per_key)
{
	struct link l = { batch_cipher_create(aead, key, batches_per_key),
		batch_cipher_create(aead, key, batches_per_key) };

	ck_assert_ptr_nonnull(l.sealing);
	ck_assert_ptr_nonnull(l.opening);
	return l;
}

static void link_destroy(struct link *l)
{
	batch_cipher_destroy(l->sealing);
	batch_cipher_destroy(l->opening);
}

/* A batch with a text that names its number. */
static void seal_numbered(struct batch_cipher *c, unsigned number, uint8_t out[static TEXT_LEN + BATCH_OVERHEAD])
{
	memset(out, 0, TEXT_LEN + BATCH_OVERHEAD);
	snprintf((char *)out + BATCH_HEADER_LEN, TEXT_LEN, "batch number %u", number);
	ck_assert_int_eq(batch_seal(c, out, TEXT_LEN), 0);
}

static int open_any(struct batch_cipher *c, uint8_t *in, size_t len)
{
	uint8_t *plain;
	size_t plain_len, taken;

	return batch_open(c, in, len, &plain, &plain_len, &taken);
}

static void open_numbered(struct batch_cipher *c, unsigned number, uint8_t in[static TEXT_LEN + BATCH_OVERHEAD])
{
	char expected[TEXT_LEN] = "";
	uint8_t *plain = NULL;
	size_t plain_len = 0, taken = 0;

	snprintf(expected, sizeof(expected), "batch number %u", number);
	ck_assert_int_eq(batch_open(c, in, TEXT_LEN + BATCH_OVERHEAD, &plain, &plain_len, &taken), 0);
	ck_assert_ptr_eq(plain, in + BATCH_HEADER_LEN);
	ck_assert_uint_eq(plain_len, TEXT_LEN);
	ck_assert_uint_eq(taken, TEXT_LEN + BATCH_OVERHEAD);
	ck_assert_mem_eq(plain, expected, TEXT_LEN);
}

static void carry(struct link *l, unsigned from, unsigned count)
{
	uint8_t batch[TEXT_LEN + BATCH_OVERHEAD];

	for (unsigned i = from; i < from + count; i++) {
		seal_numbered(l->sealing, i, batch);
		open_numbered(l->opening, i, batch);
	}
}

/* The fields of a saved state. */
static uint64_t state_count(const uint8_t state[static BATCH_STATE_LEN])
{
	return wire_load_u64(state + 8);
}

static const uint8_t *state_key(const uint8_t state[static BATCH_STATE_LEN])
{
	return state + BATCH_STATE_LEN - AEAD_SECRET_LEN;
}

START_TEST(batches_arrive_as_they_were_sent)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct link l = link_create(both[i], BATCHES_PER_KEY);
		carry(&l, 0, 20);
		link_destroy(&l);
	}
}
END_TEST

START_TEST(a_batch_from_elsewhere_is_the_same_batch)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		uint8_t here[TEXT_LEN + BATCH_OVERHEAD], there[TEXT_LEN + BATCH_OVERHEAD];
		uint8_t plain[TEXT_LEN] = "batch number 0", before[TEXT_LEN];
		struct link l = link_create(both[i], BATCHES_PER_KEY);
		struct link other = link_create(both[i], BATCHES_PER_KEY);
		memcpy(before, plain, sizeof(plain));
		seal_numbered(l.sealing, 0, here);
		ck_assert_int_eq(batch_seal_from(other.sealing, there, plain, TEXT_LEN), 0);
		ck_assert_mem_eq(there, here, sizeof(here));
		ck_assert_mem_eq(plain, before, sizeof(plain));
		open_numbered(other.opening, 0, there);
		seal_numbered(other.sealing, 1, there);
		open_numbered(other.opening, 1, there);
		link_destroy(&l);
		link_destroy(&other);
	}
}
END_TEST

START_TEST(a_batch_may_be_64_KiB_and_not_more_or_empty)
{
	static uint8_t batch[BATCH_PLAINTEXT_MAX + BATCH_OVERHEAD + 1];
	struct link l = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);
	struct link longer = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);

	ck_assert_int_eq(batch_seal(l.sealing, batch, BATCH_PLAINTEXT_MAX), 0);
	ck_assert_int_eq(open_any(l.opening, batch, BATCH_PLAINTEXT_MAX + BATCH_OVERHEAD), 0);
	ck_assert_int_lt(batch_seal(l.sealing, batch, BATCH_PLAINTEXT_MAX + 1), 0);
	ck_assert_int_lt(batch_seal(longer.sealing, batch, 0), 0);
	link_destroy(&l);
	link_destroy(&longer);
}
END_TEST

START_TEST(a_length_out_of_range_is_refused_before_the_body_comes)
{
	static const uint32_t lengths[] = { 0, BATCH_PLAINTEXT_MAX + 1, UINT32_MAX };
	uint8_t header[BATCH_HEADER_LEN];

	for (size_t i = 0; i < SUITE_LEN(lengths); i++) {
		struct link l = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);
		wire_store_u32(header, lengths[i]);
		ck_assert_int_eq(open_any(l.opening, header, sizeof(header)), CSSL_E_RANGE);
		link_destroy(&l);
	}
}
END_TEST

START_TEST(a_part_of_a_batch_is_incomplete_and_changes_nothing)
{
	uint8_t batch[TEXT_LEN + BATCH_OVERHEAD];
	struct link l = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);

	seal_numbered(l.sealing, 1, batch);
	for (size_t len = 0; len < sizeof(batch); len++)
		ck_assert_int_eq(open_any(l.opening, batch, len), BATCH_INCOMPLETE);
	open_numbered(l.opening, 1, batch);
	link_destroy(&l);
}
END_TEST

START_TEST(bytes_behind_a_batch_are_left)
{
	uint8_t batches[2 * (TEXT_LEN + BATCH_OVERHEAD)];
	struct link l = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);
	uint8_t *plain;
	size_t plain_len, taken;

	seal_numbered(l.sealing, 1, batches);
	seal_numbered(l.sealing, 2, batches + TEXT_LEN + BATCH_OVERHEAD);
	ck_assert_int_eq(batch_open(l.opening, batches, sizeof(batches), &plain, &plain_len, &taken), 0);
	ck_assert_uint_eq(taken, TEXT_LEN + BATCH_OVERHEAD);
	open_numbered(l.opening, 2, batches + taken);
	link_destroy(&l);
}
END_TEST

/* A flipped bit in the length can make the batch longer than the received bytes: then it is never delivered either. */
START_TEST(a_flipped_bit_anywhere_is_refused)
{
	uint8_t batch[TEXT_LEN + BATCH_OVERHEAD];

	for (size_t bit = 0; bit < 8 * sizeof(batch); bit++) {
		struct link l = link_create(both[bit % 2], BATCHES_PER_KEY);
		seal_numbered(l.sealing, 1, batch);
		batch[bit / 8] ^= (uint8_t)(1 << bit % 8);
		int result = open_any(l.opening, batch, sizeof(batch));
		ck_assert(result < 0 || (bit < 8 * BATCH_HEADER_LEN && result == BATCH_INCOMPLETE));
		link_destroy(&l);
	}
}
END_TEST

START_TEST(a_replayed_or_skipped_or_swapped_batch_is_refused)
{
	uint8_t batches[3][TEXT_LEN + BATCH_OVERHEAD], again[TEXT_LEN + BATCH_OVERHEAD];
	struct link replayed = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);
	struct link skipped = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);

	for (unsigned i = 0; i < 3; i++)
		seal_numbered(replayed.sealing, i, batches[i]);
	memcpy(again, batches[0], sizeof(again));
	open_numbered(replayed.opening, 0, batches[0]);
	ck_assert_int_eq(open_any(replayed.opening, again, sizeof(again)), CSSL_E_AUTH);
	ck_assert_int_eq(open_any(skipped.opening, batches[1], sizeof(batches[1])), CSSL_E_AUTH);
	link_destroy(&replayed);
	link_destroy(&skipped);
}
END_TEST

START_TEST(after_a_refused_batch_the_link_is_over)
{
	uint8_t batch[TEXT_LEN + BATCH_OVERHEAD], good[TEXT_LEN + BATCH_OVERHEAD], state[BATCH_STATE_LEN];
	struct link l = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);

	seal_numbered(l.sealing, 0, batch);
	memcpy(good, batch, sizeof(good));
	batch[10] ^= 1;
	ck_assert_int_eq(open_any(l.opening, batch, sizeof(batch)), CSSL_E_AUTH);
	ck_assert_int_eq(open_any(l.opening, good, sizeof(good)), CSSL_E_STATE);
	ck_assert_int_eq(batch_cipher_save(l.opening, state), CSSL_E_STATE);
	link_destroy(&l);
}
END_TEST

START_TEST(the_default_changes_the_key_before_2_to_the_24)
{
	ck_assert_uint_lt(BATCHES_PER_KEY, UINT32_C(1) << 24);
	ck_assert_uint_lt(BATCHES_PER_KEY_MAX, UINT32_C(1) << 24);
	ck_assert_ptr_null(batch_cipher_create(AEAD_AES_256_GCM, key, 0));
	ck_assert_ptr_null(batch_cipher_create(AEAD_AES_256_GCM, key, BATCHES_PER_KEY_MAX + 1));
}
END_TEST

/* RFC 5869 2.3 with one block of output: HMAC(key, info | 0x01). */
static void expected_next_key(const uint8_t *from, uint8_t out[static AEAD_SECRET_LEN])
{
	static const uint8_t info[] = "cssl link: next batch key\x01";
	unsigned len;

	ck_assert_ptr_nonnull(HMAC(EVP_sha256(), from, AEAD_SECRET_LEN, info, sizeof(info) - 1, out, &len));
	ck_assert_uint_eq(len, AEAD_SECRET_LEN);
}

START_TEST(rekey_happens_before_the_limit)
{
	uint8_t state[BATCH_STATE_LEN], next[AEAD_SECRET_LEN];
	struct link l = link_create(AEAD_AES_256_GCM, 3);

	carry(&l, 0, 2);
	ck_assert_int_eq(batch_cipher_save(l.sealing, state), 0);
	ck_assert_mem_eq(state_key(state), key, AEAD_SECRET_LEN);
	batch_cipher_resume(l.sealing);
	carry(&l, 2, 1);
	ck_assert_int_eq(batch_cipher_save(l.sealing, state), 0);
	expected_next_key(key, next);
	ck_assert_mem_eq(state_key(state), next, AEAD_SECRET_LEN);
	link_destroy(&l);
}
END_TEST

START_TEST(both_ends_go_on_over_many_keys)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct link every = link_create(both[i], 1), third = link_create(both[i], 3);
		carry(&every, 0, 30);
		carry(&third, 0, 100);
		link_destroy(&every);
		link_destroy(&third);
	}
}
END_TEST

START_TEST(the_nonce_counter_goes_on_over_key_changes)
{
	uint8_t state[BATCH_STATE_LEN];
	struct link l = link_create(AEAD_AES_256_GCM, 3);

	for (unsigned i = 0; i < 10; i++) {
		ck_assert_int_eq(batch_cipher_save(l.sealing, state), 0);
		batch_cipher_resume(l.sealing);
		ck_assert_uint_eq(state_count(state), i);
		carry(&l, i, 1);
	}
	link_destroy(&l);
}
END_TEST

START_TEST(ends_that_change_keys_at_different_batches_do_not_understand_each_other)
{
	uint8_t batch[TEXT_LEN + BATCH_OVERHEAD];
	struct link l = { batch_cipher_create(AEAD_AES_256_GCM, key, 3),
		batch_cipher_create(AEAD_AES_256_GCM, key, 4) };

	carry(&l, 0, 3);
	seal_numbered(l.sealing, 3, batch);
	ck_assert_int_eq(open_any(l.opening, batch, sizeof(batch)), CSSL_E_AUTH);
	link_destroy(&l);
}
END_TEST

/* Replace a cipher by one restored from its saved state. */
static void reload(struct batch_cipher **c)
{
	uint8_t state[BATCH_STATE_LEN];

	ck_assert_int_eq(batch_cipher_save(*c, state), 0);
	batch_cipher_destroy(*c);
	*c = batch_cipher_restore(state);
	ck_assert_ptr_nonnull(*c);
}

START_TEST(a_restored_cipher_goes_on_exactly_there)
{
	for (size_t i = 0; i < SUITE_LEN(both); i++) {
		struct link l = link_create(both[i], 4);
		for (unsigned n = 0; n < 12; n++) {
			carry(&l, n, 1);
			reload(n % 2 ? &l.sealing : &l.opening);
		}
		link_destroy(&l);
	}
}
END_TEST

START_TEST(a_saved_cipher_seals_and_opens_nothing_until_resumed)
{
	uint8_t state[BATCH_STATE_LEN], batch[TEXT_LEN + BATCH_OVERHEAD];
	struct link l = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);

	seal_numbered(l.sealing, 0, batch);
	ck_assert_int_eq(batch_cipher_save(l.sealing, state), 0);
	ck_assert_int_eq(batch_cipher_save(l.sealing, state), CSSL_E_STATE);
	ck_assert_int_eq(batch_cipher_save(l.opening, state), 0);
	ck_assert_int_eq(batch_seal(l.sealing, batch, TEXT_LEN), CSSL_E_STATE);
	ck_assert_int_eq(open_any(l.opening, batch, sizeof(batch)), CSSL_E_STATE);
	batch_cipher_resume(l.sealing);
	batch_cipher_resume(l.opening);
	open_numbered(l.opening, 0, batch);
	carry(&l, 1, 2);
	link_destroy(&l);
}
END_TEST

START_TEST(a_malformed_state_is_not_restored)
{
	uint8_t state[BATCH_STATE_LEN];
	struct link l = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);
	static const size_t offsets[] = { 0, 1, 2, 3, 4 }; /* algorithm, zero, and the limit beyond its maximum */

	ck_assert_int_eq(batch_cipher_save(l.sealing, state), 0);
	for (size_t i = 0; i < SUITE_LEN(offsets); i++) {
		state[offsets[i]] ^= 0xff;
		ck_assert_ptr_null(batch_cipher_restore(state));
		state[offsets[i]] ^= 0xff;
	}
	link_destroy(&l);
}
END_TEST

START_TEST(the_counter_never_wraps)
{
	uint8_t state[BATCH_STATE_LEN], batch[TEXT_LEN + BATCH_OVERHEAD];
	struct link l = link_create(AEAD_AES_256_GCM, BATCHES_PER_KEY);

	ck_assert_int_eq(batch_cipher_save(l.sealing, state), 0);
	wire_store_u64(state + 8, UINT64_MAX);
	struct batch_cipher *last = batch_cipher_restore(state);
	ck_assert_int_eq(batch_seal(last, batch, TEXT_LEN), CSSL_E_EXHAUSTED);
	batch_cipher_destroy(last);
	link_destroy(&l);
}
END_TEST

UNIT(batch)
{
	const TTest *const facts[] = {
		batches_arrive_as_they_were_sent,
		a_batch_from_elsewhere_is_the_same_batch,
		a_batch_may_be_64_KiB_and_not_more_or_empty,
		a_length_out_of_range_is_refused_before_the_body_comes,
		a_part_of_a_batch_is_incomplete_and_changes_nothing,
		bytes_behind_a_batch_are_left,
		a_flipped_bit_anywhere_is_refused,
		a_replayed_or_skipped_or_swapped_batch_is_refused,
		after_a_refused_batch_the_link_is_over,
		the_default_changes_the_key_before_2_to_the_24,
		rekey_happens_before_the_limit,
		both_ends_go_on_over_many_keys,
		the_nonce_counter_goes_on_over_key_changes,
		ends_that_change_keys_at_different_batches_do_not_understand_each_other,
		a_restored_cipher_goes_on_exactly_there,
		a_saved_cipher_seals_and_opens_nothing_until_resumed,
		a_malformed_state_is_not_restored,
		the_counter_never_wraps,
	};
	return suite_run("batch", facts, SUITE_LEN(facts));
}
