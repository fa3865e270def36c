/* test_live.c: facts of one owner: sealing, KeyUpdate and its commit, freezing, limits of keys. What the client may not
 * do is in test_live_open.c. */
#include <openssl/crypto.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/tls/live_internal.h"
#include "tests/unit/moves.h"
#include "tests/unit/sslagent/tls/live_owners.h"
#include "tests/unit/unit.h"

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

START_TEST(what_was_frozen_goes_on_under_a_higher_epoch_only)
{
	struct live_part part;

	start(suite_at(_i)->id);
	agent_says(pair.agent, 10);
	for (uint16_t epoch = 2; epoch < 4; epoch++) {
		live_freeze(pair.agent, &part);
		ck_assert_int_eq(live_seal(pair.agent, plain, 10, record), CSSL_E_STATE);
		live_destroy(pair.agent);
		pair.agent = adopt(pair.pool, &part, epoch, LIVE_CONTINUES);
		ck_assert_uint_eq(pair.agent->epoch, epoch);
	}
	ck_assert_int_eq(adopt_result(&part, 2, LIVE_CONTINUES), CSSL_E_UNSAFE);
	agent_says(pair.agent, 10);
	client_says(pair.agent, 10);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(a_commit_that_comes_while_frozen_changes_nothing)
{
	struct live_part part;

	start(TLS13_AES_128);
	ck_assert_int_gt(live_seal_key_update(pair.agent, record), 0);
	live_freeze(pair.agent, &part);
	ck_assert_uint_eq(part.write_generation, 1);
	live_committed(pair.agent, 1);
	ck_assert_int_eq(live_seal(pair.agent, plain, 10, record), CSSL_E_STATE);
	live_pair_stop(&pair);
}
END_TEST

START_TEST(at_the_limit_tls13_updates_its_keys)
{
	start(TLS13_AES_128);
	pair.pool->limit = 3;
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
	pair.pool->limit = 3;
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
	pair.pool->limit = 4; /* it began at 1 */
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

static void move_live(int from, int to)
{
	struct live l = { .state = (uint8_t)from };

	live_move(&l, (enum live_state)to);
	if (l.state != to)
		_exit(1);
}

START_TEST(states_move_as_drawn)
{
	static const char *const drawn = /* from: owns, uncommitted, ended, frozen */
		"0111"
		"1001"
		"0001"
		"0000";

	for (int from = LIVE_OWNS; from <= LIVE_FROZEN; from++)
		for (int to = LIVE_OWNS; to <= LIVE_FROZEN; to++)
			ck_assert_int_eq(move_is_allowed(move_live, from, to), drawn[from * 4 + to] - '0');
}
END_TEST

UNIT(live)
{
	const TTest *const each[] = {
		records_of_all_lengths_cross_both_ways,
		sealing_in_place_gives_the_same_record,
		more_connections_than_contexts_keep_their_keys_apart,
		data_goes_on_behind_key_updates_both_ways,
		frozen_state_seals_nothing_and_opens_nothing,
		what_was_frozen_goes_on_under_a_higher_epoch_only,
		default_limits_stay_below_those_of_rfc_8446,
		after_close_notify_of_ours_nothing_is_sealed_but_the_client_is_heard,
	};
	const TTest *const one[] = {
		position_counts_records_of_this_generation,
		a_requested_key_update_is_due_before_the_next_data,
		a_key_update_requested_while_one_is_uncommitted_is_due_afterwards,
		nothing_is_sealed_under_a_new_generation_before_its_commit,
		a_key_update_of_ours_names_the_part_that_follows_it,
		tls12_has_no_key_update,
		a_commit_that_comes_while_frozen_changes_nothing,
		at_the_limit_tls13_updates_its_keys,
		at_the_clients_limit_tls13_asks_it_once_to_update_its_keys,
		at_the_limit_tls12_closes,
		states_move_as_drawn,
	};

	return live_suite_run("live", each, sizeof each / sizeof each[0], one, sizeof one / sizeof one[0]);
}
