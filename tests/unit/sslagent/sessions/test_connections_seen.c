/* test_connections_seen.c: facts of what an agent remembers of connections, and which ownerships it refuses for it. */
#include <check.h>
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/counters.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define KEEP_MS  1000u
#define START_MS 100000
#define NOW      (START_MS + 10)
#define YOUNG    (START_MS + 5) /* made after all that was forgotten */
#define SHARDS   64u

static struct counter_array counters;
static struct connections_seen *seen;

static void setup(void)
{
	ck_assert_int_ge(sodium_init(), 0);
	memset(&counters, 0, sizeof(counters));
	counters_use(&counters);
	seen = connections_seen_create(64 * 1024, KEEP_MS, START_MS);
	ck_assert_ptr_nonnull(seen);
}

static void teardown(void)
{
	connections_seen_destroy(seen);
}

static uint64_t counted(enum agent_counter which)
{
	return counter_get(&counters.at[which]);
}

static struct connection_id connection(unsigned n)
{
	struct connection_id id;
	uint8_t seed[randombytes_SEEDBYTES] = { (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16) };

	randombytes_buf_deterministic(id.bytes, sizeof(id.bytes), seed);
	return id;
}

/* One of a shard's own. */
static struct connection_id neighbour(unsigned n)
{
	struct connection_id id = connection(n);

	id.bytes[0] = 0;
	return id;
}

static const struct connection_id one = { { 1 } };

static int claim_made(const struct connection_id *id, struct seen_mark at, int64_t made_ms, int64_t now_ms)
{
	const struct seen_claim claim = { .at = at, .start = CLAIM_IN_DOUBT, .made_ms = made_ms };

	return connections_seen_claim(seen, id, &claim, now_ms);
}

static int claim(uint16_t epoch, uint32_t generation, uint64_t sequence)
{
	return claim_made(&one, (struct seen_mark){ epoch, generation, sequence }, YOUNG, NOW);
}

static int go_on(uint16_t epoch, uint16_t part_epoch, uint64_t sequence, int64_t made_ms)
{
	const struct seen_claim claim = {
		.at = { epoch, 0, sequence }, .start = CLAIM_CONTINUES, .part_epoch = part_epoch, .made_ms = made_ms
	};

	return connections_seen_claim(seen, &one, &claim, NOW);
}

static void note(const struct connection_id *id, struct seen_mark at, int64_t now_ms)
{
	connections_seen_note(seen, id, &at, now_ms);
}

static void stop(const struct connection_id *id, struct seen_mark at, enum seen_stop how, int64_t now_ms)
{
	connections_seen_stop(seen, id, &at, how, now_ms);
}

/* --- epochs --- */

START_TEST(an_epoch_is_claimed_once_and_only_upward)
{
	ck_assert_int_eq(claim(5, 0, 0), 0);
	ck_assert_int_eq(claim(5, 0, 0), CSSL_E_REPLAY);
	ck_assert_int_eq(claim(4, 0, 0), CSSL_E_REPLAY);
	ck_assert_uint_eq(counted(COUNT_EPOCHS_REFUSED), 2);
	ck_assert_int_eq(claim(6, 0, 0), 0);
}
END_TEST

START_TEST(an_epoch_of_another_agent_counts)
{
	note(&one, (struct seen_mark){ 9, 0, 0 }, NOW);
	note(&one, (struct seen_mark){ 3, 0, 0 }, NOW);
	ck_assert_int_eq(claim(9, 0, 0), CSSL_E_REPLAY);
	ck_assert_int_eq(claim(10, 0, 0), 0);
}
END_TEST

START_TEST(a_handshake_begins_a_connection_that_nobody_knows)
{
	const struct seen_claim begins = { .at = { 1, 0, 4 }, .start = CLAIM_BEGINS };

	ck_assert_int_eq(connections_seen_claim(seen, &one, &begins, NOW), 0);
	ck_assert_int_eq(connections_seen_claim(seen, &one, &begins, NOW), CSSL_E_REPLAY);
}
END_TEST

/* --- owners of this process --- */

#define OWNER 3u

static int own(uint16_t epoch)
{
	const struct seen_claim claim = {
		.at = { epoch, 0, 0 }, .owner = OWNER, .start = CLAIM_IN_DOUBT, .made_ms = YOUNG
	};

	return connections_seen_claim(seen, &one, &claim, NOW);
}

static unsigned hear(uint16_t epoch, enum seen_word word)
{
	const struct seen_mark at = { epoch, 0, 0 };

	return connections_seen_hear(seen, &one, &at, word, SEEN_NO_DOUBT, NOW);
}

START_TEST(an_owner_gives_way_to_a_later_one_once)
{
	ck_assert_int_eq(own(4), 0);
	ck_assert_uint_eq(hear(3, SEEN_OWN_WORD), SEEN_NO_OWNER);
	ck_assert_uint_eq(hear(5, _i ? SEEN_OWN_WORD : SEEN_HEARSAY), OWNER);
	ck_assert_uint_eq(hear(6, SEEN_OWN_WORD), SEEN_NO_OWNER);
}
END_TEST

START_TEST(of_two_owners_of_one_epoch_each_gives_way_to_the_word_of_the_other)
{
	ck_assert_int_eq(own(4), 0);
	ck_assert_uint_eq(hear(4, SEEN_HEARSAY), SEEN_NO_OWNER); /* others tell of this one */
	ck_assert_uint_eq(hear(4, SEEN_OWN_WORD), OWNER);
}
END_TEST

START_TEST(a_snapshot_tells_an_owner_of_a_later_one)
{
	struct seen_connection told = {
		.id = one, .at = { 4, 0, 0 }, .heard_ms = NOW, .stop = _i ? SEEN_ENDED : SEEN_RESTS
	};

	ck_assert_int_eq(own(4), 0);
	told.at.epoch = 5;
	ck_assert_uint_eq(connections_seen_take(seen, &told, NOW), OWNER);
	ck_assert_uint_eq(connections_seen_take(seen, &told, NOW), SEEN_NO_OWNER);
}
END_TEST

START_TEST(an_end_that_a_snapshot_brings_too_late_is_not_taken)
{
	struct seen_connection told = { .id = one, .at = { 4, 0, 0 }, .heard_ms = NOW - KEEP_MS, .stop = SEEN_ENDED };

	ck_assert_uint_eq(connections_seen_take(seen, &told, NOW), SEEN_NO_OWNER);
	ck_assert_uint_eq(connections_seen_count(seen), 0);
	told.heard_ms++;
	ck_assert_uint_eq(connections_seen_take(seen, &told, NOW), SEEN_NO_OWNER);
	ck_assert_uint_eq(connections_seen_count(seen), 1);
}
END_TEST

START_TEST(what_this_process_owns_it_does_not_take)
{
	ck_assert_int_eq(own(4), 0);
	ck_assert_int_eq(own(5), CSSL_E_BUSY);
	ck_assert_uint_eq(counted(COUNT_ADOPTS_OWNED_HERE), 1);
	connections_seen_leave(seen, &one, 3); /* an earlier one */
	ck_assert_int_eq(own(5), CSSL_E_BUSY);
	connections_seen_leave(seen, &one, 4);
	ck_assert_int_eq(own(5), 0);
}
END_TEST

START_TEST(who_has_stopped_owns_nothing)
{
	ck_assert_int_eq(own(4), 0);
	stop(&one, (struct seen_mark){ 3, 0, 0 }, SEEN_RESTS, NOW); /* the late word of a former owner */
	ck_assert_int_eq(own(5), CSSL_E_BUSY);
	stop(&one, (struct seen_mark){ 4, 0, 0 }, SEEN_RESTS, NOW);
	ck_assert_uint_eq(hear(5, SEEN_OWN_WORD), SEEN_NO_OWNER);
	ck_assert_int_eq(own(6), 0);
}
END_TEST

/* --- sequences --- */

START_TEST(nobody_begins_before_what_was_sealed)
{
	static const struct seen_mark below[] = { { 3, 2, 99 }, { 3, 1, 100 }, { 3, 1, 5000 }, { 3, 0, 0 } };

	note(&one, (struct seen_mark){ 2, 2, 100 }, NOW);
	ck_assert_int_eq(claim(below[_i].epoch, below[_i].write_generation, below[_i].write_sequence), CSSL_E_UNSAFE);
	ck_assert_uint_eq(counted(COUNT_SEQUENCES_REFUSED), 1);
	ck_assert_int_eq(claim(3, 2, 100), 0); /* and the epoch is still free */
}
END_TEST

/* TLS 1.2 with AES-GCM. */
START_TEST(where_the_epoch_is_in_each_nonce_it_may_begin_earlier)
{
	const struct seen_claim fresh = { .at = { 3, 0, 50 }, .start = CLAIM_FRESH, .made_ms = YOUNG };

	note(&one, (struct seen_mark){ 2, 0, 100 }, NOW);
	ck_assert_int_eq(claim(3, 0, 50), CSSL_E_UNSAFE);
	ck_assert_int_eq(connections_seen_claim(seen, &one, &fresh, NOW), 0);
	ck_assert_int_eq(
		connections_seen_claim(seen, &one, &fresh, NOW), CSSL_E_REPLAY); /* the epoch counts all the same */
}
END_TEST

START_TEST(newer_keys_begin_at_their_start)
{
	note(&one, (struct seen_mark){ 2, 2, 100 }, NOW);
	ck_assert_int_eq(claim(3, 3, 0), 0);
	ck_assert_int_eq(claim(4, 2, 101), CSSL_E_UNSAFE);
}
END_TEST

START_TEST(what_was_sealed_is_never_less_than_it_was)
{
	note(&one, (struct seen_mark){ 2, 2, 100 }, NOW);
	note(&one, (struct seen_mark){ 3, 1, 7 }, NOW);
	note(&one, (struct seen_mark){ 3, 0, 0 }, NOW);
	ck_assert_int_eq(claim(4, 2, 99), CSSL_E_UNSAFE);
}
END_TEST

START_TEST(what_an_ownership_began_with_counts)
{
	ck_assert_int_eq(claim(2, 0, 50), 0);
	ck_assert_int_eq(claim(3, 0, 49), CSSL_E_UNSAFE);
}
END_TEST

/* --- continuing --- */

START_TEST(a_state_that_had_a_later_owner_is_not_continued)
{
	note(&one, (struct seen_mark){ 3, 0, 10 }, NOW);
	ck_assert_int_eq(go_on(4, 2, 10, YOUNG), CSSL_E_REPLAY);
	ck_assert_uint_eq(counted(COUNT_ADOPTS_STALE), 1);
	ck_assert_int_eq(go_on(4, 3, 10, YOUNG), 0);
}
END_TEST

START_TEST(in_doubt_the_state_of_an_earlier_owner_will_do)
{
	note(&one, (struct seen_mark){ 3, 0, 10 }, NOW);
	ck_assert_int_eq(claim(4, 0, 10), 0);
}
END_TEST

START_TEST(what_nobody_told_yet_is_continued_when_it_is_young)
{
	ck_assert_int_eq(connections_seen_knows(seen, &one, YOUNG), 1);
	ck_assert_int_eq(go_on(2, 1, 10, YOUNG), 0);
}
END_TEST

/* --- before this agent's time --- */

START_TEST(what_is_from_before_the_start_is_not_continued)
{
	static const int64_t made[] = { START_MS, START_MS - 1, SEEN_MADE_UNKNOWN };

	ck_assert_int_eq(connections_seen_knows(seen, &one, made[_i]), 0);
	ck_assert_int_eq(go_on(2, 1, 10, made[_i]), CSSL_E_EXPIRED);
	ck_assert_uint_eq(counted(COUNT_ADOPTS_FORGOTTEN), 1);
	ck_assert_int_eq(claim_made(&one, (struct seen_mark){ 2, 0, 10 }, made[_i], NOW), 0);
}
END_TEST

START_TEST(it_may_be_taken_over_only_for_a_while)
{
	const struct seen_mark at = { 2, 0, 10 };

	ck_assert_int_eq(claim_made(&one, at, START_MS - 1, START_MS + KEEP_MS), CSSL_E_EXPIRED);
	ck_assert_int_eq(claim_made(&one, at, START_MS - 1, START_MS + KEEP_MS - 1), 0);
}
END_TEST

START_TEST(a_peer_knows_what_was_before)
{
	const struct seen_since since = { START_MS - 5000, SEEN_NOTHING_BEFORE };

	connections_seen_since_take(seen, &since);
	ck_assert_int_eq(go_on(2, 1, 10, START_MS - 4000), 0);
	ck_assert_int_eq(connections_seen_since(seen).ms, START_MS - 5000);
}
END_TEST

START_TEST(what_a_peer_forgot_is_refused)
{
	const struct seen_since since = { START_MS - 100, SEEN_FORGOT };

	connections_seen_since_take(seen, &since);
	ck_assert_int_eq(claim_made(&one, (struct seen_mark){ 2, 0, 10 }, START_MS - 200, NOW), CSSL_E_EXPIRED);
}
END_TEST

START_TEST(a_peer_that_knows_less_changes_nothing)
{
	const struct seen_since since = { START_MS + 3, SEEN_FORGOT };

	connections_seen_since_take(seen, &since);
	ck_assert_int_eq(connections_seen_since(seen).ms, START_MS);
	ck_assert_int_eq(connections_seen_since(seen).before, SEEN_NOTHING_BEFORE);
}
END_TEST

/* --- stops --- */

START_TEST(a_connection_that_stopped_is_known_until_it_goes_on)
{
	enum seen_stop how = _i ? SEEN_ENDED : SEEN_RESTS;

	ck_assert_int_eq(connections_seen_stopped(seen, &one), 0);
	stop(&one, (struct seen_mark){ 2, 0, 5 }, how, NOW);
	ck_assert_int_eq(connections_seen_stopped(seen, &one), 1);
	note(&one, (struct seen_mark){ 2, 0, 5 }, NOW); /* late */
	ck_assert_int_eq(connections_seen_stopped(seen, &one), 1);
	ck_assert_int_eq(claim(3, 0, 4), CSSL_E_UNSAFE);
	ck_assert_int_eq(claim(3, 0, 5), 0);
	ck_assert_int_eq(connections_seen_stopped(seen, &one), 0);
}
END_TEST

START_TEST(a_former_owner_does_not_stop_it)
{
	note(&one, (struct seen_mark){ 3, 0, 0 }, NOW);
	stop(&one, (struct seen_mark){ 2, 0, 5 }, SEEN_ENDED, NOW);
	ck_assert_int_eq(connections_seen_stopped(seen, &one), 0);
	ck_assert_int_eq(claim(4, 0, 4), CSSL_E_UNSAFE); /* but what it sealed counts */
}
END_TEST

/* An agent of the release before tells no epoch. */
START_TEST(an_end_without_an_epoch_counts)
{
	note(&one, (struct seen_mark){ 3, 0, 7 }, NOW);
	stop(&one, (struct seen_mark){ 0 }, SEEN_ENDED, NOW);
	ck_assert_int_eq(connections_seen_stopped(seen, &one), 1);
	ck_assert_int_eq(claim(4, 0, 6), CSSL_E_UNSAFE);
}
END_TEST

/* --- forgetting --- */

START_TEST(what_is_over_is_forgotten_after_its_time_and_refused_then)
{
	struct connection_id ended = neighbour(1), other = neighbour(2);
	const struct seen_mark at = { 2, 0, 10 }, next = { 3, 0, 10 };
	const int64_t later = NOW + KEEP_MS;

	stop(&ended, at, SEEN_ENDED, NOW);
	note(&other, at, later - 1);
	ck_assert_uint_eq(connections_seen_count(seen), 2);
	note(&(struct connection_id){ { 0, 3 } }, at, later);
	ck_assert_uint_eq(connections_seen_count(seen), 2);
	ck_assert_uint_eq(counted(COUNT_CONNECTIONS_FORGOTTEN_EARLY), 0);
	ck_assert_int_eq(claim_made(&ended, next, NOW, later), CSSL_E_EXPIRED);
	ck_assert_int_eq(claim_made(&ended, next, NOW + 1, later), 0); /* it cannot be that one */
}
END_TEST

START_TEST(what_is_not_over_is_never_forgotten_while_there_is_room)
{
	for (unsigned n = 0; n < 20000; n++) {
		struct connection_id id = connection(n);
		stop(&id, (struct seen_mark){ 2, 0, 10 }, n % 2 ? SEEN_RESTS : SEEN_ENDED, NOW + n);
	}
	for (unsigned n = 1; n < 20000; n += 2) {
		struct connection_id id = connection(n);
		ck_assert_int_eq(claim_made(&id, (struct seen_mark){ 3, 0, 9 }, INT64_MAX, NOW + 20000), CSSL_E_UNSAFE);
	}
	ck_assert_uint_lt(connections_seen_count(seen), 11500); /* of the others, those of the last second are left */
}
END_TEST

/* First those that are over, then the oldest; and what may be one of them is refused. */
START_TEST(too_many_are_counted_and_what_was_forgotten_stays_safe)
{
	struct connection_id ended = neighbour(100);
	const unsigned room = 16;
	const struct seen_mark at = { 2, 0, 10 }, next = { 3, 0, 10 };

	connections_seen_destroy(seen);
	seen = connections_seen_create(room * SHARDS, KEEP_MS, START_MS);
	note(&(struct connection_id){ { 0, 1 } }, at, NOW);
	stop(&ended, at, SEEN_ENDED, NOW + 1);
	for (unsigned n = 1; n < room; n++) {
		struct connection_id id = neighbour(n);
		note(&id, at, NOW + 1 + n);
	}
	ck_assert_uint_eq(counted(COUNT_CONNECTIONS_FORGOTTEN_EARLY), 1);
	ck_assert_int_eq(claim_made(&ended, next, NOW, NOW + 50), CSSL_E_EXPIRED);
	struct connection_id more = neighbour(room);
	note(&more, at, NOW + 60);
	ck_assert_uint_eq(counted(COUNT_CONNECTIONS_FORGOTTEN_EARLY), 2);
	ck_assert_uint_eq(connections_seen_count(seen), room);
	ck_assert_int_eq(claim_made(&(struct connection_id){ { 0, 1 } }, next, NOW, NOW + 61), CSSL_E_EXPIRED);
	ck_assert_int_eq(claim_made(&more, (struct seen_mark){ 3, 0, 9 }, NOW, NOW + 62), CSSL_E_UNSAFE);
}
END_TEST

START_TEST(places_follow_from_bytes)
{
	ck_assert_uint_gt(connections_seen_places(64 << 20), 900000);
	ck_assert_uint_lt(connections_seen_places(64 << 20), 2000000);
}
END_TEST

/* --- snapshots --- */

static struct connections_seen *taker;

static unsigned give_all(void)
{
	struct seen_connection some[7];
	uint64_t cursor = 0;
	unsigned given = 0;
	size_t count;

	do {
		count = connections_seen_list(seen, &cursor, some, 7);
		for (size_t i = 0; i < count; i++)
			connections_seen_take(taker, &some[i], NOW + 10);
		given += (unsigned)count;
	} while (count == 7);
	return given;
}

START_TEST(a_snapshot_brings_what_a_peer_remembers)
{
	for (unsigned n = 0; n < 500; n++) {
		struct connection_id id = connection(n);
		if (n % 3 == 0)
			stop(&id, (struct seen_mark){ 2, 1, n }, SEEN_ENDED, NOW);
		else
			note(&id, (struct seen_mark){ 2, 1, n }, NOW);
	}
	taker = connections_seen_create(64 * 1024, KEEP_MS, NOW);
	ck_assert_uint_eq(give_all(), 500);
	ck_assert_uint_eq(connections_seen_count(taker), 500);
	connections_seen_destroy(seen);
	seen = taker;
	for (unsigned n = 1; n < 500; n++) {
		struct connection_id id = connection(n);
		ck_assert_int_eq(
			claim_made(&id, (struct seen_mark){ 3, 1, n - 1 }, INT64_MAX, NOW + 20), CSSL_E_UNSAFE);
		ck_assert_int_eq(connections_seen_stopped(seen, &id), n % 3 == 0);
	}
}
END_TEST

static void doubt(uint64_t sequence, enum seen_doubt told)
{
	connections_seen_hear(seen, &one, &(struct seen_mark){ 2, 0, sequence }, SEEN_OWN_WORD, told, NOW);
}

START_TEST(what_others_took_over_in_doubt_counts)
{
	doubt(5, SEEN_DOUBT_AT_MARK);
	ck_assert_int_eq(claim(3, 0, 6), CSSL_E_UNSAFE);
	ck_assert_int_eq(claim(3, 0, 5), 0);
	doubt(5, SEEN_DOUBT_AT_MARK); /* said again */
	ck_assert_int_eq(claim(4, 0, 5), 0);
	doubt(6, SEEN_DOUBT_AT_MARK); /* two at once: there is no third */
	ck_assert_int_eq(claim(5, 0, 6), CSSL_E_UNSAFE);
	ck_assert_int_eq(claim(5, 1, 0), 0);
	doubt(9, SEEN_DOUBT_BEFORE_MARK); /* of a generation that is over */
	ck_assert_int_eq(claim(6, 1, 0), 0);
}
END_TEST

START_TEST(a_snapshot_brings_the_doubt)
{
	doubt(5, _i ? SEEN_DOUBT_BEFORE_MARK : SEEN_DOUBT_AT_MARK);
	taker = connections_seen_create(64 * 1024, KEEP_MS, NOW);
	give_all();
	connections_seen_destroy(seen);
	seen = taker;
	ck_assert_int_eq(claim(3, 0, 6), CSSL_E_UNSAFE);
	ck_assert_int_eq(claim(3, 0, 5), _i ? CSSL_E_UNSAFE : 0);
}
END_TEST

/* A RAgent that lies about a loss would get a KeyUpdate under the nonce of each record of a living owner. */
START_TEST(one_position_of_a_generation_is_taken_over_in_doubt)
{
	ck_assert_int_eq(claim(2, 0, 5), 0);
	ck_assert_int_eq(claim(3, 0, 5), 0); /* the KeyUpdate of epoch 2 was lost */
	ck_assert_int_eq(claim(4, 0, 6), CSSL_E_UNSAFE);
	ck_assert_uint_eq(counted(COUNT_SEQUENCES_REFUSED), 1);
	ck_assert_int_eq(go_on(4, 3, 6, YOUNG), 0);
	ck_assert_int_eq(claim(5, 0, 6), CSSL_E_UNSAFE); /* the mark moved within the generation */
	ck_assert_int_eq(claim(5, 1, 3), 0);
	ck_assert_int_eq(claim(6, 1, 4), CSSL_E_UNSAFE);
	ck_assert_uint_eq(counted(COUNT_SEQUENCES_REFUSED), 3);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, an_epoch_is_claimed_once_and_only_upward);
	tcase_add_test(tcase, an_epoch_of_another_agent_counts);
	tcase_add_test(tcase, a_handshake_begins_a_connection_that_nobody_knows);
	tcase_add_loop_test(tcase, an_owner_gives_way_to_a_later_one_once, 0, 2);
	tcase_add_test(tcase, of_two_owners_of_one_epoch_each_gives_way_to_the_word_of_the_other);
	tcase_add_loop_test(tcase, a_snapshot_tells_an_owner_of_a_later_one, 0, 2);
	tcase_add_test(tcase, an_end_that_a_snapshot_brings_too_late_is_not_taken);
	tcase_add_test(tcase, what_this_process_owns_it_does_not_take);
	tcase_add_test(tcase, who_has_stopped_owns_nothing);
	tcase_add_loop_test(tcase, nobody_begins_before_what_was_sealed, 0, 4);
	tcase_add_test(tcase, where_the_epoch_is_in_each_nonce_it_may_begin_earlier);
	tcase_add_test(tcase, newer_keys_begin_at_their_start);
	tcase_add_test(tcase, what_was_sealed_is_never_less_than_it_was);
	tcase_add_test(tcase, what_an_ownership_began_with_counts);
	tcase_add_test(tcase, a_state_that_had_a_later_owner_is_not_continued);
	tcase_add_test(tcase, in_doubt_the_state_of_an_earlier_owner_will_do);
	tcase_add_test(tcase, what_nobody_told_yet_is_continued_when_it_is_young);
	tcase_add_loop_test(tcase, what_is_from_before_the_start_is_not_continued, 0, 3);
	tcase_add_test(tcase, it_may_be_taken_over_only_for_a_while);
	tcase_add_test(tcase, a_peer_knows_what_was_before);
	tcase_add_test(tcase, what_a_peer_forgot_is_refused);
	tcase_add_test(tcase, a_peer_that_knows_less_changes_nothing);
	tcase_add_loop_test(tcase, a_connection_that_stopped_is_known_until_it_goes_on, 0, 2);
	tcase_add_test(tcase, a_former_owner_does_not_stop_it);
	tcase_add_test(tcase, an_end_without_an_epoch_counts);
	tcase_add_test(tcase, what_is_over_is_forgotten_after_its_time_and_refused_then);
	tcase_add_test(tcase, what_is_not_over_is_never_forgotten_while_there_is_room);
	tcase_add_test(tcase, too_many_are_counted_and_what_was_forgotten_stays_safe);
	tcase_add_test(tcase, one_position_of_a_generation_is_taken_over_in_doubt);
	tcase_add_test(tcase, what_others_took_over_in_doubt_counts);
	tcase_add_loop_test(tcase, a_snapshot_brings_the_doubt, 0, 2);
	tcase_add_test(tcase, places_follow_from_bytes);
	tcase_add_test(tcase, a_snapshot_brings_what_a_peer_remembers);
}

UNIT(connections_seen)
{
	return run_suite("connections_seen", add);
}
