/* test_live.c: ownership: sealing, KeyUpdate and its commit, freezing, moving, taking over. What the client may not do
 * is in test_live_open.c. */
#include <check.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/live_internal.h"
#include "tests/lib/live_pair.h"

static struct live_pair pair;
static uint8_t record[FORGED_RECORD_MAX], plain[TLS_PLAINTEXT_MAX];

static const struct cipher_suite *suite_at(int i)
{
	unsigned count;
	const struct cipher_suite *all = cipher_suites(&count);

	ck_assert_uint_lt((unsigned)i, count);
	return &all[i];
}

static void start(uint16_t suite)
{
	ck_assert_int_eq(live_pair_start(&pair, suite, 0), 0);
	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)(i * 7 + i / 251);
}

static int is_tls13(const struct live_pair *p)
{
	return p->suite->protocol_version == TLS13_VERSION_WIRE;
}

/* The agent says @len bytes of plain[]; the client reads them. */
static void agent_says(struct live *from, size_t len)
{
	struct live_record got;
	ptrdiff_t n = live_seal(from, plain, len, record);

	ck_assert_int_eq(n, (ptrdiff_t)(len + live_overhead(from)));
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_DATA);
	ck_assert_uint_eq(got.len, len);
	ck_assert_mem_eq(got.data, plain, len);
}

static int client_sends(struct live *to, const struct forged_record *r, struct live_record *got)
{
	ptrdiff_t n = record_forge_seal(pair.client, r, record, sizeof(record));

	ck_assert_int_gt(n, 0);
	return live_open_bytes(to, record, (size_t)n, 0, got);
}

static void client_says(struct live *to, size_t len)
{
	struct live_record got;

	ck_assert_int_eq(
		client_sends(to, &(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = plain, .len = len },
			&got),
		0);
	ck_assert_int_eq(got.content, LIVE_DATA);
	ck_assert_uint_eq(got.len, len);
	ck_assert_mem_eq(got.data, plain, len);
}

static void client_updates_keys(struct live *to, uint8_t request)
{
	uint8_t message[5] = { 24, 0, 0, 1, request };
	struct live_record got;

	ck_assert_int_eq(
		client_sends(to, &(struct forged_record){ .type = TLS_HANDSHAKE, .content = message, .len = 5 }, &got),
		0);
	ck_assert_int_eq(got.content, LIVE_KEY_UPDATED);
	ck_assert_int_eq(record_forge_step(pair.client), 0);
}

static void agent_updates_keys(struct live *from)
{
	struct live_record got;
	ptrdiff_t n = live_seal_key_update(from, record);

	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_KEY_UPDATED);
	live_committed(from, live_position(from).write_generation);
}

/* The part continued at its own position by an owner of @epoch. */
static struct live *adopt(struct live_pool *pool, const struct live_part *part, uint16_t epoch, enum live_start how)
{
	struct live_position at = live_part_position(part);
	struct live *l = NULL;

	ck_assert_int_eq(live_create(pool, part, pair.suite->id, &at, epoch, how, &l), 0);
	return l;
}

static int adopt_result(const struct live_part *part, uint16_t epoch, enum live_start how)
{
	struct live_position at = live_part_position(part);
	struct live *l = NULL;
	int r = live_create(pair.pool, part, pair.suite->id, &at, epoch, how, &l);

	live_destroy(l);
	return r;
}

START_TEST(records_of_all_lengths_cross_both_ways)
{
	static const size_t lens[] = { 0, 1, 2, 15, 16, 17, 31, 100, 1000, 4096, 16383, 16384 };

	start(suite_at(_i)->id);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		agent_says(pair.agent, lens[i]);
		client_says(pair.agent, lens[i]);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(sealing_in_place_gives_the_same_record)
{
	static uint8_t other[TLS_RECORD_MAX];

	start(suite_at(_i)->id);
	struct live *twin = adopt(pair.pool, &pair.part, 1, LIVE_CONTINUES);
	uint8_t *inside = other + live_plaintext_offset(twin);
	memcpy(inside, plain, 5000);
	ptrdiff_t n = live_seal(pair.agent, plain, 5000, record);
	ck_assert_int_eq(live_seal(twin, inside, 5000, other), n);
	ck_assert_mem_eq(other, record, (size_t)n);
	live_destroy(twin);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(more_connections_than_contexts_keep_their_keys_apart)
{
	enum { MANY = RECORD_AEAD_CONTEXTS + 10 };
	static struct live *lives[MANY];
	struct live_part mirror;

	start(suite_at(_i)->id);
	for (int i = 0; i < MANY; i++) {
		pair.part.server_write.secret[3] = pair.part.server_write.key[3] = (uint8_t)i;
		pair.part.server_write.secret[4] = pair.part.server_write.key[4] = (uint8_t)(i >> 8);
		lives[i] = adopt(pair.pool, &pair.part, 1, LIVE_CONTINUES);
	}
	for (int i = 0; i < 3 * MANY; i++) {
		struct live *from = lives[i % MANY];
		live_destroy(pair.reader);
		live_describe(from, LIVE_NOW, &pair.part);
		mirror = live_part_mirror(&pair.part);
		pair.reader = adopt(pair.pool, &mirror, 2, LIVE_CONTINUES);
		agent_says(from, 33);
	}
	for (int i = 0; i < MANY; i++)
		live_destroy(lives[i]);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(position_counts_records_of_this_generation)
{
	start(TLS13_AES_128);
	agent_says(pair.agent, 10);
	agent_says(pair.agent, 10);
	client_says(pair.agent, 10);
	struct live_position at = live_position(pair.agent);
	ck_assert_uint_eq(at.write_sequence, 2);
	ck_assert_uint_eq(at.read_sequence, 1);
	client_updates_keys(pair.agent, 0);
	at = live_position(pair.agent);
	ck_assert_uint_eq(at.read_sequence, 0);
	ck_assert_uint_eq(at.read_generation, 1);
	ck_assert_uint_eq(at.write_generation, 0);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(data_goes_on_behind_key_updates_both_ways)
{
	start(suite_at(_i)->id);
	for (int i = 0; i < 5 && is_tls13(&pair); i++) {
		client_updates_keys(pair.agent, 0);
		client_says(pair.agent, 100);
		agent_updates_keys(pair.agent);
		agent_says(pair.agent, 100);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_requested_key_update_is_due_before_the_next_data)
{
	start(TLS13_AES_256);
	client_updates_keys(pair.agent, 1);
	client_updates_keys(pair.agent, 1);
	ck_assert_int_eq(live_due(pair.agent), LIVE_KEY_UPDATE_DUE);
	ck_assert_int_eq(live_seal(pair.agent, plain, 1, record), CSSL_E_STATE);
	agent_updates_keys(pair.agent); /* one answer for both (RFC 8446 4.6.3) */
	ck_assert_int_eq(live_due(pair.agent), LIVE_NOTHING_DUE);
	agent_says(pair.agent, 1);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_key_update_requested_while_one_is_uncommitted_is_due_afterwards)
{
	start(TLS13_AES_128);
	ck_assert_int_gt(live_seal_key_update(pair.agent, record), 0);
	client_updates_keys(pair.agent, 1);
	ck_assert_int_eq(live_due(pair.agent), LIVE_WAITS_FOR_COMMIT);
	live_committed(pair.agent, 1);
	ck_assert_int_eq(live_due(pair.agent), LIVE_KEY_UPDATE_DUE);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(nothing_is_sealed_under_a_new_generation_before_its_commit)
{
	static uint8_t untouched[TLS_RECORD_MAX];

	start(TLS13_AES_128);
	ck_assert_int_gt(live_seal_key_update(pair.agent, record), 0);
	memset(record, 0, sizeof(record));
	for (uint32_t earlier = 0; earlier < 2; earlier++) {
		ck_assert_int_eq(live_due(pair.agent), LIVE_WAITS_FOR_COMMIT);
		ck_assert_int_eq(live_seal(pair.agent, plain, 10, record), CSSL_E_STATE);
		ck_assert_int_eq(
			live_seal_alert(pair.agent, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY, record), CSSL_E_STATE);
		ck_assert_int_eq(
			live_seal_alert(pair.agent, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR, record), CSSL_E_STATE);
		ck_assert_int_eq(live_seal_key_update(pair.agent, record), CSSL_E_STATE);
		live_committed(pair.agent, 0); /* of the generation before */
	}
	ck_assert_mem_eq(record, untouched, sizeof(untouched));
	ck_assert_uint_eq(live_position(pair.agent).write_sequence, 0);
	live_committed(pair.agent, 1);
	ck_assert_int_gt(live_seal(pair.agent, plain, 10, record), 0);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_key_update_of_ours_names_the_part_that_follows_it)
{
	struct live_part before, after;

	start(TLS13_AES_256);
	ck_assert_int_eq(live_describe(pair.agent, LIVE_AFTER_KEY_UPDATE, &before), 0);
	agent_updates_keys(pair.agent);
	ck_assert_int_eq(live_describe(pair.agent, LIVE_NOW, &after), 0);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	live_pair_stop(&pair);
}
END_TEST

START_TEST(tls12_has_no_key_update)
{
	start(TLS12_AES_128);
	ck_assert_int_eq(live_seal_key_update(pair.agent, record), CSSL_E_STATE);
	agent_says(pair.agent, 10);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(frozen_state_seals_nothing_and_opens_nothing)
{
	struct live_part part;
	struct live_record got;

	start(suite_at(_i)->id);
	ptrdiff_t n = record_forge_seal(pair.client,
		&(struct forged_record){ .type = TLS_APPLICATION_DATA, .content = plain, .len = 4 }, record,
		sizeof(record));
	live_freeze(pair.agent, &part);
	ck_assert_int_eq(live_open_bytes(pair.agent, record, (size_t)n, 0, &got), CSSL_E_STATE);
	ck_assert_int_eq(live_seal(pair.agent, plain, 10, record), CSSL_E_STATE);
	ck_assert_int_eq(live_seal_alert(pair.agent, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR, record), CSSL_E_STATE);
	ck_assert_int_eq(live_seal_key_update(pair.agent, record), CSSL_E_STATE);
	ck_assert_int_eq(live_due(pair.agent), LIVE_NOTHING_DUE);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_refused_hand_off_goes_on_under_a_higher_epoch_only)
{
	struct live_part part;

	start(suite_at(_i)->id);
	agent_says(pair.agent, 10);
	live_freeze(pair.agent, &part);
	ck_assert_int_eq(live_thaw(pair.agent, 1), CSSL_E_UNSAFE);
	ck_assert_int_eq(live_seal(pair.agent, plain, 10, record), CSSL_E_STATE);
	ck_assert_int_eq(live_thaw(pair.agent, 2), 0);
	ck_assert_uint_eq(live_epoch(pair.agent), 2);
	agent_says(pair.agent, 10);
	client_says(pair.agent, 10);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_commit_that_comes_while_frozen_counts)
{
	struct live_part part;

	start(TLS13_AES_128);
	ck_assert_int_gt(live_seal_key_update(pair.agent, record), 0);
	live_freeze(pair.agent, &part);
	ck_assert_uint_eq(part.write_generation, 1);
	live_committed(pair.agent, 1);
	ck_assert_int_eq(live_thaw(pair.agent, 2), 0);
	ck_assert_int_gt(live_seal(pair.agent, plain, 10, record), 0);
	live_pair_stop(&pair);
}
END_TEST

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
	live_pool_limit_records(pair.pool, 3);
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
	live_pool_limit_records(pair.pool, UINT64_MAX);
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

START_TEST(at_the_limit_tls13_updates_its_keys)
{
	start(TLS13_AES_128);
	live_pool_limit_records(pair.pool, 3);
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < 3; i++)
			agent_says(pair.agent, 5);
		ck_assert_int_eq(live_due(pair.agent), LIVE_KEY_UPDATE_DUE);
		ck_assert_int_eq(live_seal(pair.agent, plain, 5, record), CSSL_E_STATE);
		agent_updates_keys(pair.agent);
	}
	live_pair_stop(&pair);
}
END_TEST

START_TEST(at_the_clients_limit_tls13_asks_it_once_to_update_its_keys)
{
	struct live_record got;

	start(TLS13_AES_128);
	live_pool_limit_records(pair.pool, 3);
	for (int i = 0; i < 5; i++)
		client_says(pair.agent, 5);
	ck_assert_int_eq(live_due(pair.agent), LIVE_KEY_UPDATE_DUE);
	ptrdiff_t n = live_seal_key_update(pair.agent, record);
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(live_due(pair.reader), LIVE_KEY_UPDATE_DUE); /* it said update_requested */
	live_committed(pair.agent, 1);
	ck_assert_int_eq(live_due(pair.agent), LIVE_NOTHING_DUE);
	client_updates_keys(pair.agent, 0);
	for (int i = 0; i < 3; i++)
		client_says(pair.agent, 5);
	ck_assert_int_eq(live_due(pair.agent), LIVE_KEY_UPDATE_DUE);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(at_the_limit_tls12_closes)
{
	struct live_record got;

	start(TLS12_AES_128);
	live_pool_limit_records(pair.pool, 4); /* it began at 1 */
	for (int i = 0; i < 3; i++)
		agent_says(pair.agent, 5);
	ck_assert_int_eq(live_due(pair.agent), LIVE_LIMIT_REACHED);
	ck_assert_int_eq(live_end_reason(pair.agent), END_KEY_LIMIT);
	ck_assert_int_eq(live_seal(pair.agent, plain, 5, record), CSSL_E_STATE);
	ptrdiff_t n = live_seal_alert(pair.agent, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY, record);
	ck_assert_int_eq(live_open_bytes(pair.reader, record, (size_t)n, 0, &got), 0);
	ck_assert_int_eq(got.content, LIVE_CLOSE_NOTIFY);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(default_limits_stay_below_those_of_rfc_8446)
{
	start(suite_at(_i)->id);
	if (strstr(pair.suite->aead, "GCM"))
		ck_assert_uint_lt(live_limit(pair.agent), 23726566); /* 2^24.5 */
	else
		ck_assert_uint_lt(live_limit(pair.agent), 1ull << 48);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(after_close_notify_of_ours_nothing_is_sealed_but_the_client_is_heard)
{
	start(suite_at(_i)->id);
	ck_assert_int_gt(live_seal_alert(pair.agent, TLS_ALERT_WARNING, TLS_ALERT_CLOSE_NOTIFY, record), 0);
	ck_assert_uint_eq(live_ends(pair.agent), LIVE_WRITE_CLOSED);
	ck_assert_int_eq(live_seal(pair.agent, plain, 5, record), CSSL_E_STATE);
	ck_assert_int_eq(live_seal_alert(pair.agent, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR, record), CSSL_E_STATE);
	client_says(pair.agent, 100);
	if (is_tls13(&pair)) {
		client_updates_keys(pair.agent, 1);
		client_says(pair.agent, 100);
	}
	ck_assert_int_eq(live_due(pair.agent), LIVE_NOTHING_DUE);
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

START_TEST(states_move_as_drawn)
{
	static const char *const drawn = /* from: owns, uncommitted, ended, frozen */
		"0111"
		"1001"
		"0001"
		"1110";

	for (int from = LIVE_OWNS; from <= LIVE_FROZEN; from++)
		for (int to = LIVE_OWNS; to <= LIVE_FROZEN; to++)
			ck_assert_int_eq(
				live_may_move((enum live_state)from, (enum live_state)to), drawn[from * 4 + to] - '0');
}
END_TEST

int main(void)
{
	Suite *s = suite_create("live");
	TCase *each = tcase_create("each suite"), *one = tcase_create("one suite");
	SRunner *r = srunner_create(s);
	unsigned count;
	cipher_suites(&count);
	int n = (int)count;

	tcase_add_loop_test(each, records_of_all_lengths_cross_both_ways, 0, n);
	tcase_add_loop_test(each, sealing_in_place_gives_the_same_record, 0, n);
	tcase_add_loop_test(each, more_connections_than_contexts_keep_their_keys_apart, 0, n);
	tcase_add_loop_test(each, data_goes_on_behind_key_updates_both_ways, 0, n);
	tcase_add_loop_test(each, frozen_state_seals_nothing_and_opens_nothing, 0, n);
	tcase_add_loop_test(each, a_refused_hand_off_goes_on_under_a_higher_epoch_only, 0, n);
	tcase_add_loop_test(each, a_connection_moves_to_another_agent_and_back_as_bytes, 0, n);
	tcase_add_loop_test(each, a_part_that_does_not_fit_its_suite_is_refused, 0, n);
	tcase_add_loop_test(each, an_epoch_serves_once, 0, n);
	tcase_add_loop_test(each, a_position_before_the_frozen_owners_is_refused, 0, n);
	tcase_add_loop_test(each, tls13_takeover_says_key_update_before_anything, 0, n);
	tcase_add_loop_test(each, tls12_gcm_takeover_goes_on_at_once_and_chacha20_never, 0, n);
	tcase_add_loop_test(each, tls12_sequences_end_below_the_epochs_bits, 0, n);
	tcase_add_loop_test(each, default_limits_stay_below_those_of_rfc_8446, 0, n);
	tcase_add_loop_test(each, after_close_notify_of_ours_nothing_is_sealed_but_the_client_is_heard, 0, n);
	tcase_add_loop_test(each, ends_move_along, 0, n);
	tcase_add_test(one, position_counts_records_of_this_generation);
	tcase_add_test(one, a_requested_key_update_is_due_before_the_next_data);
	tcase_add_test(one, a_key_update_requested_while_one_is_uncommitted_is_due_afterwards);
	tcase_add_test(one, nothing_is_sealed_under_a_new_generation_before_its_commit);
	tcase_add_test(one, a_key_update_of_ours_names_the_part_that_follows_it);
	tcase_add_test(one, tls12_has_no_key_update);
	tcase_add_test(one, a_commit_that_comes_while_frozen_counts);
	tcase_add_test(one, an_answer_owed_to_the_client_moves_along);
	tcase_add_test(one, a_part_of_older_generations_is_ratcheted_forward);
	tcase_add_test(one, a_part_newer_than_the_position_is_refused);
	tcase_add_test(one, tls13_takeover_may_say_one_alert_and_nothing_more);
	tcase_add_test(one, a_takeovers_key_update_repeats_at_most_one_record_of_constant_content);
	tcase_add_test(one, a_takeover_frozen_before_its_key_update_still_owes_it);
	tcase_add_test(one, nonces_of_two_epochs_never_meet);
	tcase_add_test(one, explicit_nonce_is_r_plus_epoch_plus_sequence);
	tcase_add_test(one, at_the_limit_tls13_updates_its_keys);
	tcase_add_test(one, at_the_clients_limit_tls13_asks_it_once_to_update_its_keys);
	tcase_add_test(one, at_the_limit_tls12_closes);
	tcase_add_test(one, states_move_as_drawn);
	suite_add_tcase(s, each);
	suite_add_tcase(s, one);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
