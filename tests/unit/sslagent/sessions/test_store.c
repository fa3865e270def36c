/* test_store.c: bounds, order of eviction, expiry, revocation. */
#include <pthread.h>
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/sslagent/sessions/session_maker.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/store.h"
#include "tests/unit/sslagent/revoke_what.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define LIFETIME_MS (3600 * 1000)
#define SMALL       (256u * 1024u) /* one shard */

static struct tombstones *tombstones;
static struct store *store;
static struct counter_array counters;

static void open_store(uint64_t bytes, unsigned per_source_percent)
{
	struct store_limits limits = { bytes, per_source_percent, LIFETIME_MS };

	ck_assert_int_ge(sodium_init(), 0);
	memset(&counters, 0, sizeof(counters));
	counters_use(&counters);
	tombstones = tombstones_create(LIFETIME_MS, TOMBSTONES_MAX);
	store = store_create(&limits, tombstones);
	ck_assert(tombstones && store);
}

static void close_store(void)
{
	store_destroy(store);
	tombstones_destroy(tombstones);
	counters_use(NULL);
}

static uint64_t counted(enum agent_counter which)
{
	return counter_get(&counters.at[which]);
}

struct putting {
	struct session_wish wish;
	int64_t made_ms, family_made_ms, now_ms;
	enum stored_by by;
};

/* The id of what was put is in *id. */
static int put(struct putting p, uint8_t *id)
{
	static struct made_session made;
	uint8_t encoded[SESS_OBJ_LEN_MAX];
	ptrdiff_t len;

	session_make(&made, &p.wish);
	len = sess_obj_encode(&made.obj, encoded, sizeof(encoded));
	ck_assert_int_gt(len, 0);
	if (id)
		memcpy(id, made.obj.facts.session_id, SESSION_ID_LEN);
	return store_put(store,
		&(struct offer){ &made.obj, encoded, (size_t)len, p.made_ms, p.family_made_ms, p.by, 0 }, p.now_ms);
}

static int is_there_at(const uint8_t *id, int64_t now_ms)
{
	int64_t family_made_ms;
	struct sess_obj obj;

	if (store_find(store, id, now_ms, &obj, &family_made_ms) != 0)
		return 0;
	sess_obj_destroy(&obj);
	return 1;
}

static int is_stored(const uint8_t *id)
{
	return store_peek(store, id, 0, NULL, NULL) == 0;
}

START_TEST(what_was_put_is_found_with_its_ages_as_of_now)
{
	uint8_t id[SESSION_ID_LEN];
	int64_t family_made_ms;
	struct sess_obj obj;

	open_store(SMALL, 100);
	ck_assert_int_eq(put((struct putting){ .wish = { .remaining_s = 100, .server_name = "x.example" },
				     .made_ms = 50000,
				     .family_made_ms = 20500,
				     .now_ms = 51000 },
				 id),
		0);
	ck_assert_int_eq(store_find(store, id, 60000, &obj, &family_made_ms), 0);
	ck_assert_int_eq(family_made_ms, 20500);
	ck_assert_uint_eq(obj.facts.family_age_s, 39);
	ck_assert_uint_eq(obj.session_remaining_s, 90);
	ck_assert_str_eq(obj.facts.server_name, "x.example");
	sess_obj_destroy(&obj);
	close_store();
}
END_TEST

START_TEST(a_session_put_twice_is_known_and_not_renewed)
{
	uint8_t id[SESSION_ID_LEN];

	open_store(SMALL, 100);
	put((struct putting){ .wish = { .remaining_s = 10 } }, id);
	ck_assert_int_eq(
		put((struct putting){ .wish = { .id = id, .remaining_s = 1000 }, .made_ms = 5000, .now_ms = 5000 },
			NULL),
		STORE_KNOWN);
	ck_assert_int_eq(is_there_at(id, 9000), 1);
	ck_assert_int_eq(is_there_at(id, 10000), 0);
	close_store();
}
END_TEST

START_TEST(a_session_expires_by_its_own_lifetime)
{
	uint8_t id[SESSION_ID_LEN];
	uint64_t bytes;

	open_store(SMALL, 100);
	put((struct putting){ .wish = { .remaining_s = 10 }, .made_ms = 1000, .now_ms = 2000 }, id);
	ck_assert_int_eq(is_there_at(id, 10999), 1);
	ck_assert_int_eq(is_there_at(id, 11000), 0);
	ck_assert_uint_eq(shelf_count(store_shelf(store), &bytes), 0);
	ck_assert_uint_eq(bytes, 0);
	close_store();
}
END_TEST

START_TEST(a_session_expires_with_its_family)
{
	uint8_t id[SESSION_ID_LEN];

	open_store(SMALL, 100);
	put((struct putting){ .wish = { .remaining_s = 3600 }, .made_ms = 0, .family_made_ms = 5000 - LIFETIME_MS },
		id);
	ck_assert_int_eq(is_there_at(id, 4999), 1);
	ck_assert_int_eq(is_there_at(id, 5000), 0);
	close_store();
}
END_TEST

START_TEST(what_came_too_late_is_not_stored)
{
	open_store(SMALL, 100);
	ck_assert_int_eq(put((struct putting){ .wish = { .remaining_s = 10 }, .made_ms = 0, .now_ms = 10000 }, NULL),
		CSSL_E_EXPIRED);
	close_store();
}
END_TEST

START_TEST(what_is_over_is_dropped_without_being_looked_for)
{
	open_store(SMALL, 100);
	for (unsigned i = 0; i < 100; i++)
		put((struct putting){ .wish = { .remaining_s = i < 50 ? 10 : 1000 } }, NULL);
	for (unsigned i = 0; i < 10; i++)
		shelf_expire(store_shelf(store), 20000);
	ck_assert_uint_eq(shelf_count(store_shelf(store), NULL), 50);
	ck_assert_uint_eq(counted(COUNT_SESSIONS_EXPIRED), 50);
	close_store();
}
END_TEST

START_TEST(the_store_never_holds_more_than_its_bytes)
{
	uint64_t bytes;

	open_store(1024 * 1024, 100);
	for (unsigned i = 0; i < 10000; i++) {
		put((struct putting){ .wish = { .der_len = 100 + i % 1000 } }, NULL);
		shelf_count(store_shelf(store), &bytes);
		ck_assert_uint_le(bytes, 1024 * 1024);
	}
	ck_assert_uint_gt(bytes, 900 * 1024);
	ck_assert_uint_gt(counted(COUNT_SESSIONS_EVICTED), 5000);
	close_store();
}
END_TEST

START_TEST(sessions_never_resumed_go_first)
{
	uint8_t resumed[50][SESSION_ID_LEN], never[50][SESSION_ID_LEN];

	open_store(SMALL, 100);
	for (unsigned i = 0; i < 50; i++) {
		put((struct putting){ 0 }, resumed[i]);
		put((struct putting){ 0 }, never[i]);
		ck_assert_int_eq(is_there_at(resumed[i], 0), 1);
	}
	for (unsigned i = 0; i < 2000; i++)
		put((struct putting){ 0 }, NULL);
	for (unsigned i = 0; i < 50; i++) {
		ck_assert_int_eq(is_stored(resumed[i]), 1);
		ck_assert_int_eq(is_stored(never[i]), 0);
	}
	close_store();
}
END_TEST

START_TEST(too_many_resumed_sessions_fall_back_oldest_first)
{
	uint8_t first[SESSION_ID_LEN], id[SESSION_ID_LEN];

	open_store(SMALL, 100);
	put((struct putting){ 0 }, first);
	ck_assert_int_eq(is_there_at(first, 0), 1);
	for (unsigned i = 0; i < 2000; i++) {
		put((struct putting){ 0 }, id);
		ck_assert_int_eq(is_there_at(id, 0), 1);
	}
	ck_assert_int_eq(is_stored(first), 0);
	ck_assert_int_eq(is_stored(id), 1);
	close_store();
}
END_TEST

START_TEST(a_source_has_at_most_its_share)
{
	uint8_t others[20][SESSION_ID_LEN];
	uint64_t before, after;

	open_store(SMALL, 20);
	for (unsigned i = 0; i < 20; i++)
		put((struct putting){ .wish = { .client = "192.0.2.1" } }, others[i]);
	shelf_count(store_shelf(store), &before);
	for (unsigned i = 0; i < 5000; i++)
		put((struct putting){ .wish = { .client = "198.51.100.9" } }, NULL);
	shelf_count(store_shelf(store), &after);
	ck_assert_uint_le(after - before, SMALL / 5);
	ck_assert_uint_gt(counted(COUNT_SESSIONS_EVICTED_SOURCE), 4000);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(is_stored(others[i]), 1);
	close_store();
}
END_TEST

START_TEST(an_ipv6_network_is_one_source)
{
	uint64_t bytes;

	open_store(SMALL, 20);
	for (unsigned i = 0; i < 2000; i++) {
		char client[64];

		snprintf(client, sizeof(client), "2001:db8::%x:%x", i, i);
		put((struct putting){ .wish = { .client = client } }, NULL);
	}
	shelf_count(store_shelf(store), &bytes);
	ck_assert_uint_le(bytes, SMALL / 5);
	close_store();
}
END_TEST

START_TEST(a_session_larger_than_a_share_is_refused)
{
	open_store(SMALL, 1);
	ck_assert_int_eq(put((struct putting){ .wish = { .der_len = 20000 } }, NULL), CSSL_E_FULL);
	ck_assert_uint_eq(shelf_count(store_shelf(store), NULL), 0);
	close_store();
}
END_TEST

START_TEST(large_sessions_are_stored_too)
{
	uint8_t id[SESSION_ID_LEN];
	int64_t family_made_ms;
	struct sess_obj obj;

	open_store(SMALL, 100);
	put((struct putting){ .wish = { .der_len = SESSION_DER_MAX } }, id);
	ck_assert_int_eq(store_find(store, id, 0, &obj, &family_made_ms), 0);
	ck_assert_uint_eq(obj.session_len, SESSION_DER_MAX);
	sess_obj_destroy(&obj);
	close_store();
}
END_TEST

static void revoke_at(const revoke_what *what, int64_t now_ms)
{
	ck_assert_int_eq(tombstones_add(tombstones, what, now_ms, now_ms), 0);
}

START_TEST(a_sweep_removes_what_was_revoked_and_nothing_else)
{
	revoke_what what = REVOKE(REVOKE_SERVER_NAME, .server_name = (char *)"a.example");

	open_store(1024 * 1024, 100);
	for (unsigned i = 0; i < 100; i++)
		put((struct putting){ .wish = { .server_name = i % 4 == 0 ? "a.example" : "b.example" } }, NULL);
	revoke_at(&what, 1000);
	ck_assert_uint_eq(store_sweep(store, NULL), 25);
	ck_assert_uint_eq(shelf_count(store_shelf(store), NULL), 75);
	close_store();
}
END_TEST

START_TEST(what_was_revoked_does_not_come_back)
{
	revoke_what what = REVOKE(REVOKE_ALL);
	uint8_t id[SESSION_ID_LEN];

	open_store(SMALL, 100);
	put((struct putting){ .made_ms = 500, .family_made_ms = 500, .now_ms = 500 }, id);
	revoke_at(&what, 1000);
	ck_assert_uint_eq(store_sweep(store, NULL), 1);
	/* a late datagram, or a snapshot of an agent that did not know yet */
	ck_assert_int_eq(
		put((struct putting){ .wish = { .id = id }, .made_ms = 500, .family_made_ms = 500, .now_ms = 2000 },
			NULL),
		CSSL_E_MISMATCH);
	/* a child of it, made elsewhere before the revocation got there */
	ck_assert_int_eq(
		put((struct putting){ .made_ms = 1500, .family_made_ms = 500, .now_ms = 2000 }, NULL), CSSL_E_MISMATCH);
	ck_assert_uint_eq(shelf_count(store_shelf(store), NULL), 0);
	ck_assert_uint_eq(counted(COUNT_SESSIONS_REFUSED_REVOKED), 2);
	/* and what was made after it */
	ck_assert_int_eq(put((struct putting){ .made_ms = 1500, .family_made_ms = 1500, .now_ms = 2000 }, NULL), 0);
	close_store();
}
END_TEST

static enum walk on_walk(void *ctx, const struct shelved *session)
{
	unsigned *met = ctx;

	(*met)++;
	return *met % 7 == 0 ? WALK_PAUSE : WALK_ON;
}

START_TEST(only_what_was_heard_of_is_displaced)
{
	uint8_t own[SESSION_ID_LEN], heard[SESSION_ID_LEN];

	open_store(SMALL, 100);
	ck_assert_int_eq(put((struct putting){ .by = STORED_OWN }, own), 0);
	ck_assert_int_eq(put((struct putting){ .by = STORED_HEARD }, heard), 0);
	ck_assert_int_eq(store_displace(store, own), 0);
	ck_assert_int_eq(store_displace(store, heard), 1);
	ck_assert_int_eq(store_displace(store, heard), 0);
	ck_assert(is_there_at(own, 0) && !is_there_at(heard, 0));
	ck_assert_uint_eq(shelf_count(store_shelf(store), NULL), 1);
	close_store();
}
END_TEST

START_TEST(a_walk_in_steps_meets_each_session_once)
{
	unsigned met = 0, steps = 0;
	uint64_t cursor = 0;

	open_store(4 * 1024 * 1024, 100);
	for (unsigned i = 0; i < 1000; i++)
		put((struct putting){ 0 }, NULL);
	while (shelf_walk(store_shelf(store), &cursor, 0, on_walk, &met) == 1)
		steps++;
	ck_assert_uint_eq(met, 1000);
	ck_assert_uint_gt(steps, 50);
	close_store();
}
END_TEST

struct tumult {
	unsigned seed;
	_Atomic int *stop;
};

static void *make_tumult(void *arg)
{
	struct tumult *t = arg;
	struct counter_array own = { 0 };
	uint8_t ids[64][SESSION_ID_LEN] = { 0 };
	unsigned i = t->seed;

	counters_use(&own);
	while (!*t->stop) {
		struct made_session *made = malloc(sizeof(*made));
		uint8_t encoded[2048];
		ptrdiff_t len;

		session_make(made, &(struct session_wish){ .server_name = "a.example" });
		len = sess_obj_encode(&made->obj, encoded, sizeof(encoded));
		memcpy(ids[i++ % 64], made->obj.facts.session_id, SESSION_ID_LEN);
		/* made before the revocation of time 1000 */
		store_put(store, &(struct offer){ &made->obj, encoded, (size_t)len, 999, 999, STORED_HEARD, 0 }, 999);
		is_there_at(ids[(i * 7) % 64], 999);
		free(made);
	}
	return NULL;
}

START_TEST(nothing_revoked_is_left_by_a_race)
{
	revoke_what what = REVOKE(REVOKE_SERVER_NAME, .server_name = (char *)"a.example");

	for (unsigned round = 0; round < 20; round++) {
		_Atomic int stop = 0;
		struct tumult t[2] = { { 0, &stop }, { 1, &stop } };
		pthread_t threads[2];

		open_store(1024 * 1024, 100);
		for (unsigned i = 0; i < 2; i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, make_tumult, &t[i]), 0);
		while (shelf_count(store_shelf(store), NULL) < 50)
			;
		revoke_at(&what, 1000);
		store_sweep(store, NULL);
		ck_assert_uint_eq(shelf_count(store_shelf(store), NULL), 0);
		stop = 1;
		for (unsigned i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		ck_assert_uint_eq(shelf_count(store_shelf(store), NULL), 0);
		close_store();
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, what_was_put_is_found_with_its_ages_as_of_now);
	tcase_add_test(tcase, a_session_put_twice_is_known_and_not_renewed);
	tcase_add_test(tcase, a_session_expires_by_its_own_lifetime);
	tcase_add_test(tcase, a_session_expires_with_its_family);
	tcase_add_test(tcase, what_came_too_late_is_not_stored);
	tcase_add_test(tcase, what_is_over_is_dropped_without_being_looked_for);
	tcase_add_test(tcase, the_store_never_holds_more_than_its_bytes);
	tcase_add_test(tcase, sessions_never_resumed_go_first);
	tcase_add_test(tcase, too_many_resumed_sessions_fall_back_oldest_first);
	tcase_add_test(tcase, a_source_has_at_most_its_share);
	tcase_add_test(tcase, an_ipv6_network_is_one_source);
	tcase_add_test(tcase, a_session_larger_than_a_share_is_refused);
	tcase_add_test(tcase, large_sessions_are_stored_too);
	tcase_add_test(tcase, a_sweep_removes_what_was_revoked_and_nothing_else);
	tcase_add_test(tcase, what_was_revoked_does_not_come_back);
	tcase_add_test(tcase, only_what_was_heard_of_is_displaced);
	tcase_add_test(tcase, a_walk_in_steps_meets_each_session_once);
	tcase_add_test(tcase, nothing_revoked_is_left_by_a_race);
}

UNIT(store)
{
	return run_suite("store", add);
}
