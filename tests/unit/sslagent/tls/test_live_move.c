/* test_live_move.c: facts of one owner after another: moving, taking over, and the nonces of each. */
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/sslagent/tls/live_owners.h"
#include "tests/unit/unit.h"

/* Through SESS_OBJ's bytes into another pool. */
static struct live *move(struct live *from, struct live_pool *to, uint16_t epoch)
{
	static uint8_t bytes[SESS_OBJ_LEN_MAX];
	struct live_part part;
	struct sess_obj obj = { .live = &part }, got;

	live_freeze(from, &part);
	obj.facts.protocol_version = pair.suite->protocol_version;
	obj.facts.cipher_suite = pair.suite->id;
	strcpy(obj.facts.origin, "a1");
	strcpy(obj.facts.listener, "web");
	ptrdiff_t n = sess_obj_encode(&obj, bytes, sizeof(bytes));
	ck_assert_int_gt(n, 0);
	live_destroy(from);
	ck_assert_int_eq(sess_obj_decode(bytes, (size_t)n, &got), 0);
	struct live *l = adopt(to, got.live, epoch, LIVE_CONTINUES);
	sess_obj_destroy(&got);
	return l;
}

START_TEST(a_connection_moves_to_another_agent_and_back_as_bytes)
{
	start(suite_at(_i)->id);
	struct live_pool *other = live_pool_create(tls_library_best());
	for (uint16_t epoch = 2; epoch < 6; epoch++) {
		if (is_tls13(&pair))
			client_updates_keys(pair.agent, epoch % 2);
		if (live_due(pair.agent) == LIVE_KEY_UPDATE_DUE && epoch == 3)
			agent_updates_keys(pair.agent);
		pair.agent = move(pair.agent, epoch % 2 ? pair.pool : other, epoch);
		if (live_due(pair.agent) == LIVE_KEY_UPDATE_DUE)
			agent_updates_keys(pair.agent);
		agent_says(pair.agent, 1000);
		client_says(pair.agent, 1000);
	}
	live_destroy(pair.agent);
	pair.agent = NULL;
	live_pool_destroy(other);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(an_answer_owed_to_the_client_moves_along)
{
	struct live_part part;

	start(TLS13_AES_128);
	client_updates_keys(pair.agent, 1);
	live_freeze(pair.agent, &part);
	ck_assert_int_eq(part.key_update, KEY_UPDATE_OWED);
	struct live *next = adopt(pair.pool, &part, 2, LIVE_CONTINUES);
	ck_assert_int_eq(live_due(next), LIVE_KEY_UPDATE_DUE);
	live_destroy(next);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_part_of_older_generations_is_ratcheted_forward)
{
	struct live_position at;
	struct live *next;

	start(TLS13_AES_256);
	for (int i = 0; i < 7; i++)
		client_updates_keys(pair.agent, 0);
	for (int i = 0; i < 3; i++)
		agent_updates_keys(pair.agent);
	at = live_position(pair.agent);
	ck_assert_int_eq(live_create(pair.pool, &pair.part, pair.suite->id, &at, 2, LIVE_CONTINUES, &next), 0);
	client_says(next, 50);
	agent_says(next, 50);
	live_destroy(next);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_part_newer_than_the_position_is_refused)
{
	struct live *next = NULL;
	struct live_position at;

	start(TLS13_AES_128);
	pair.part.write_generation = 2;
	at = live_part_position(&pair.part);
	at.write_generation = 1;
	ck_assert_int_eq(
		live_create(pair.pool, &pair.part, pair.suite->id, &at, 2, LIVE_CONTINUES, &next), CSSL_E_MISMATCH);
	at.write_generation = 2 + LIVE_RATCHET_MAX + 1;
	ck_assert_int_eq(
		live_create(pair.pool, &pair.part, pair.suite->id, &at, 2, LIVE_CONTINUES, &next), CSSL_E_MISMATCH);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_part_that_does_not_fit_its_suite_is_refused)
{
	start(suite_at(_i)->id);
	if (is_tls13(&pair))
		pair.part.server_write.secret_len--;
	else
		pair.part.server_write.iv_len--;
	ck_assert_int_eq(adopt_result(&pair.part, 2, LIVE_CONTINUES), CSSL_E_RANGE);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(an_epoch_serves_once)
{
	start(suite_at(_i)->id);
	pair.part.epoch = 5;
	ck_assert_int_eq(adopt_result(&pair.part, 0, LIVE_CONTINUES), CSSL_E_UNSAFE);
	ck_assert_int_eq(adopt_result(&pair.part, 4, LIVE_CONTINUES), CSSL_E_UNSAFE);
	ck_assert_int_eq(adopt_result(&pair.part, 5, LIVE_CONTINUES), CSSL_E_UNSAFE);
	ck_assert_int_eq(adopt_result(&pair.part, 6, LIVE_CONTINUES), 0);
	pair.part.epoch = 1;
	ck_assert_int_eq(adopt_result(&pair.part, 1, LIVE_TAKES_OVER), CSSL_E_UNSAFE);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_position_before_the_frozen_owners_is_refused)
{
	struct live *next = NULL;
	struct live_position at;

	start(suite_at(_i)->id);
	pair.part.write_sequence = 10;
	at = live_part_position(&pair.part);
	at.write_sequence = 9;
	ck_assert_int_eq(
		live_create(pair.pool, &pair.part, pair.suite->id, &at, 2, LIVE_CONTINUES, &next), CSSL_E_UNSAFE);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(tls13_takeover_says_key_update_before_anything)
{
	start(suite_at(_i)->id);
	if (is_tls13(&pair)) {
		struct live *next = adopt(pair.pool, &pair.part, 2, LIVE_TAKES_OVER);
		ck_assert_int_eq(live_due(next), LIVE_KEY_UPDATE_DUE);
		ck_assert_int_eq(live_seal(next, plain, 10, record), CSSL_E_STATE);
		agent_updates_keys(next);
		agent_says(next, 10);
		live_destroy(next);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(tls13_takeover_may_say_one_alert_and_nothing_more)
{
	struct live_record got;

	start(TLS13_CHACHA20);
	struct live *next = adopt(pair.pool, &pair.part, 2, LIVE_TAKES_OVER);
	ptrdiff_t n = live_seal_alert(next, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR, record);
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_ALERT);
	ck_assert_int_eq(got.alert, TLS_ALERT_INTERNAL_ERROR);
	ck_assert_int_eq(live_seal_key_update(next, record), CSSL_E_STATE);
	ck_assert_int_eq(live_seal_alert(next, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR, record), CSSL_E_STATE);
	ck_assert_int_eq(live_seal(next, plain, 10, record), CSSL_E_STATE);
	live_destroy(next);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_takeovers_key_update_repeats_at_most_one_record_of_constant_content)
{
	uint8_t first[LIVE_SMALL_RECORD_MAX];

	start(TLS13_AES_128);
	pair.pool->limit = 3;
	struct live *one = adopt(pair.pool, &pair.part, 2, LIVE_TAKES_OVER);
	pair.part.read_sequence = 5; /* where another owner would ask for an update */
	struct live *two = adopt(pair.pool, &pair.part, 3, LIVE_TAKES_OVER);
	ptrdiff_t n = live_seal_key_update(one, first);
	ck_assert_int_eq(live_seal_key_update(two, record), n);
	ck_assert_mem_eq(first, record, (size_t)n);
	live_destroy(one);
	live_destroy(two);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_takeover_frozen_before_its_key_update_still_owes_it)
{
	struct live_part part;

	start(TLS13_AES_128);
	struct live *one = adopt(pair.pool, &pair.part, 2, LIVE_TAKES_OVER);
	live_freeze(one, &part);
	struct live *two = adopt(pair.pool, &part, 3, LIVE_CONTINUES);
	ck_assert_int_eq(live_seal(two, plain, 10, record), CSSL_E_STATE);
	ck_assert_int_eq(live_due(two), LIVE_KEY_UPDATE_DUE);
	live_destroy(one);
	live_destroy(two);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(tls12_gcm_takeover_goes_on_at_once_and_chacha20_never)
{
	start(suite_at(_i)->id);
	if (!is_tls13(&pair) && pair.suite->iv_len == AEAD_IV_LEN) {
		ck_assert_int_eq(adopt_result(&pair.part, 2, LIVE_TAKES_OVER), CSSL_E_UNSAFE);
		ck_assert_int_eq(adopt_result(&pair.part, 2, LIVE_CONTINUES), 0);
	} else if (!is_tls13(&pair)) {
		struct live *next = adopt(pair.pool, &pair.part, 2, LIVE_TAKES_OVER);
		ck_assert_int_eq(live_due(next), LIVE_NOTHING_DUE);
		agent_says(next, 10);
		live_destroy(next);
	}
	live_pair_stop(&pair);
}
END_TEST

static int compare_nonces(const void *a, const void *b)
{
	return memcmp(a, b, 8);
}

START_TEST(nonces_of_two_epochs_never_meet)
{
	enum { EPOCHS = 6, RECORDS = 50 };
	static const uint16_t epochs[EPOCHS] = { 1, 2, 3, 255, 256, 65535 };
	static uint8_t nonces[EPOCHS * RECORDS + 1][8];

	start(TLS12_AES_128); /* R near 2^64: the sum wraps */
	for (int e = 0; e < EPOCHS; e++) {
		struct live *l = adopt(pair.pool, &pair.part, epochs[e], e == 0 ? LIVE_CONTINUES : LIVE_TAKES_OVER);
		for (int i = 0; i < RECORDS; i++) {
			ck_assert_int_gt(live_seal(l, plain, 10, record), 0);
			memcpy(nonces[e * RECORDS + i], record + TLS_RECORD_HEADER_LEN, 8);
		}
		live_destroy(l);
	}
	memcpy(nonces[EPOCHS * RECORDS], pair.part.record_nonce, 8); /* OpenSSL's Finished */
	qsort(nonces, EPOCHS * RECORDS + 1, 8, compare_nonces);
	for (int i = 0; i < EPOCHS * RECORDS; i++)
		ck_assert_mem_ne(nonces[i], nonces[i + 1], 8);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(explicit_nonce_is_r_plus_epoch_plus_sequence)
{
	static const uint8_t r[8] = { 0xff, 0xff, 0, 0, 0, 0, 0, 0xf0 };
	static const uint8_t expected[8] = { 0x00, 0x02, 0, 0, 0, 0, 0x01, 0x03 }; /* epoch 3 and sequence 0x13 */

	start(TLS12_AES_256);
	memcpy(pair.part.record_nonce, r, 8);
	pair.part.write_sequence = 0x13;
	struct live *l = adopt(pair.pool, &pair.part, 3, LIVE_CONTINUES);
	ck_assert_int_gt(live_seal(l, plain, 10, record), 0);
	ck_assert_mem_eq(record + TLS_RECORD_HEADER_LEN, expected, 8);
	live_destroy(l);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(tls12_sequences_end_below_the_epochs_bits)
{
	start(suite_at(_i)->id);
	pair.pool->limit = UINT64_MAX;
	pair.part.write_sequence = (1ull << 48) - 1;
	if (!is_tls13(&pair)) {
		struct live *l = adopt(pair.pool, &pair.part, 2, LIVE_CONTINUES);
		ck_assert_int_gt(live_seal(l, plain, 10, record), 0);
		ck_assert_int_eq(live_seal(l, plain, 10, record), CSSL_E_EXHAUSTED);
		ck_assert_int_eq(live_seal(l, plain, 10, record), CSSL_E_STATE);
		live_destroy(l);
		pair.part.write_sequence = 1ull << 48;
		ck_assert_int_eq(adopt_result(&pair.part, 2, LIVE_CONTINUES), CSSL_E_UNSAFE);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(ends_move_along)
{
	struct live_part part;
	struct live_record got;

	start(suite_at(_i)->id);
	ck_assert_int_gt(live_seal_alert(pair.agent, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY, record), 0);
	ck_assert_int_eq(
		client_sends(pair.agent,
			&(struct forged_record){ .type = TLS_ALERT, .content = (uint8_t[]){ 1, 0 }, .len = 2 }, &got),
		0);
	ck_assert_int_eq(got.content, LIVE_CLOSE_NOTIFY);
	live_freeze(pair.agent, &part);
	unsigned ends = live_ends(pair.agent);
	ck_assert_uint_eq(ends, LIVE_READ_CLOSED | LIVE_WRITE_CLOSED);
	struct live *next = adopt(pair.pool, &part, 2, LIVE_CONTINUES);
	live_restore_ends(next, ends);
	ck_assert_uint_eq(live_ends(next), ends);
	ck_assert_int_eq(live_seal(next, plain, 5, record), CSSL_E_STATE);
	live_destroy(next);
	live_pair_stop(&pair);
}
END_TEST

UNIT(live_move)
{
	const TTest *const each[] = {
		a_connection_moves_to_another_agent_and_back_as_bytes,
		a_part_that_does_not_fit_its_suite_is_refused,
		an_epoch_serves_once,
		a_position_before_the_frozen_owners_is_refused,
		tls13_takeover_says_key_update_before_anything,
		tls12_gcm_takeover_goes_on_at_once_and_chacha20_never,
		tls12_sequences_end_below_the_epochs_bits,
		ends_move_along,
	};
	const TTest *const one[] = {
		an_answer_owed_to_the_client_moves_along,
		a_part_of_older_generations_is_ratcheted_forward,
		a_part_newer_than_the_position_is_refused,
		tls13_takeover_may_say_one_alert_and_nothing_more,
		a_takeovers_key_update_repeats_at_most_one_record_of_constant_content,
		a_takeover_frozen_before_its_key_update_still_owes_it,
		nonces_of_two_epochs_never_meet,
		explicit_nonce_is_r_plus_epoch_plus_sequence,
	};

	return live_suite_run("live_move", each, sizeof each / sizeof each[0], one, sizeof one / sizeof one[0]);
}
