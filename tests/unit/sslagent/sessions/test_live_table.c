/* test_live_table.c: which live part stays, and which goes. */
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "tests/unit/sslagent/sessions/session_maker.h"
#include "sslagent/counters.h"
#include "sslagent/sessions/connections_seen.h"
#include "sslagent/sessions/live_table.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define BYTES (256u * 1024u)

static struct connections_seen *seen;
static struct shelf *table;
static struct counter_array counters;

static void setup(void)
{
	ck_assert_int_ge(sodium_init(), 0);
	memset(&counters, 0, sizeof(counters));
	counters_use(&counters);
	seen = connections_seen_create(1024, 1000, 0);
	table = live_table_create(BYTES);
	ck_assert(seen && table);
}

static void teardown(void)
{
	shelf_destroy(table);
	connections_seen_destroy(seen);
}

static struct connection_id connection(unsigned n)
{
	struct connection_id id;
	uint8_t seed[randombytes_SEEDBYTES] = { (uint8_t)n, (uint8_t)(n >> 8) };

	randombytes_buf_deterministic(id.bytes, sizeof(id.bytes), seed);
	return id;
}

static int put_at(struct live_wish wish, agent_index owner, int64_t now_ms)
{
	static struct made_session made;
	uint8_t encoded[2048];
	ptrdiff_t len;

	live_make(&made, &wish);
	len = sess_obj_encode(&made.obj, encoded, sizeof(encoded));
	ck_assert_int_gt(len, 0);
	return live_table_put(table, seen,
		&(struct offer){ .obj = &made.obj,
			.encoded = encoded,
			.len = (size_t)len,
			.made_ms = now_ms,
			.family_made_ms = now_ms,
			.from = owner },
		now_ms);
}

static int put(unsigned n, uint16_t epoch, uint32_t generation)
{
	return put_at((struct live_wish){ .connection = connection(n),
			      .epoch = epoch,
			      .read_generation = generation,
			      .write_generation = generation },
		0, 0);
}

static int has_at(unsigned n, uint32_t generation, int64_t now_ms)
{
	struct connection_id id = connection(n);
	struct live_wanted wanted = { &id, 100, generation, generation };
	struct sess_obj obj;

	if (live_table_find(table, &wanted, now_ms, &obj) != 0)
		return 0;
	sess_obj_destroy(&obj);
	return 1;
}

START_TEST(only_the_right_generations_and_an_older_epoch_are_found)
{
	struct connection_id id = connection(1);
	struct live_wanted wanted = { &id, 3, 7, 7 };
	struct sess_obj obj;

	put(1, 2, 7);
	ck_assert_int_eq(live_table_find(table, &wanted, 0, &obj), 0);
	sess_obj_destroy(&obj);
	wanted.epoch_below = 2;
	ck_assert_int_eq(live_table_find(table, &wanted, 0, &obj), CSSL_E_NOT_FOUND);
	wanted = (struct live_wanted){ &id, 3, 8, 7 };
	ck_assert_int_eq(live_table_find(table, &wanted, 0, &obj), CSSL_E_NOT_FOUND);
	wanted = (struct live_wanted){ &id, 3, 7, 6 };
	ck_assert_int_eq(live_table_find(table, &wanted, 0, &obj), CSSL_E_NOT_FOUND);
}
END_TEST

START_TEST(the_newest_stays_in_whatever_order_they_come)
{
	ck_assert_int_eq(put(1, 2, 1), 0);
	ck_assert_int_eq(put(1, 2, 0), CSSL_E_REPLAY);
	ck_assert_int_eq(put(1, 2, 1), CSSL_E_REPLAY);
	ck_assert_int_eq(put(1, 1, 9), CSSL_E_REPLAY);
	ck_assert_int_eq(has_at(1, 1, 0), 1);
	ck_assert_int_eq(put(1, 2, 2), 0);
	ck_assert_int_eq(put(1, 3, 2), 0);
	ck_assert_int_eq(has_at(1, 1, 0), 0);
	ck_assert_int_eq(has_at(1, 2, 0), 1);
	ck_assert_uint_eq(shelf_count(table, NULL), 1);
}
END_TEST

/* What an owner exports when it freezes takes the place of what it exported before. */
START_TEST(under_the_same_keys_the_later_export_stays)
{
	static const struct {
		int64_t made_ms;
		int result;
	} exports[] = { { 1000, 0 }, { 1001, 0 }, { 1001, CSSL_E_REPLAY }, { 1000, CSSL_E_REPLAY } };

	for (size_t i = 0; i < sizeof(exports) / sizeof(exports[0]); i++)
		ck_assert_int_eq(put_at((struct live_wish){ .connection = connection(1),
						.epoch = 1,
						.exported_ms = exports[i].made_ms },
					 0, 0),
			exports[i].result);
	ck_assert_uint_eq(shelf_count(table, NULL), 1);
}
END_TEST

START_TEST(an_adoption_under_newer_keys_drops_it_and_under_the_same_does_not)
{
	struct connection_id id = connection(1);

	put(1, 1, 0);
	live_table_adopted(table, &(struct live_adopted){ &id, 2, 0, 0, 5 });
	ck_assert_int_eq(has_at(1, 0, 0), 1);
	live_table_adopted(table, &(struct live_adopted){ &id, 3, 0, 1, 5 });
	ck_assert_int_eq(has_at(1, 0, 0), 0);
}
END_TEST

START_TEST(a_lost_owner_takes_its_live_parts_along_but_not_those_adopted_since)
{
	struct connection_id id = connection(2);

	put_at((struct live_wish){ .connection = connection(1), .epoch = 1 }, 4, 0);
	put_at((struct live_wish){ .connection = id, .epoch = 1 }, 4, 0);
	put_at((struct live_wish){ .connection = connection(3), .epoch = 1 }, 6, 0);
	live_table_adopted(table, &(struct live_adopted){ &id, 2, 0, 0, 6 });
	live_table_drop_owner(table, 4);
	ck_assert_int_eq(has_at(1, 0, 0), 0);
	ck_assert_int_eq(has_at(2, 0, 0), 1);
	ck_assert_int_eq(has_at(3, 0, 0), 1);
}
END_TEST

START_TEST(a_live_part_expires)
{
	put_at((struct live_wish){ .connection = connection(1), .epoch = 1, .remaining_s = 10 }, 0, 1000);
	ck_assert_int_eq(has_at(1, 0, 10999), 1);
	ck_assert_int_eq(has_at(1, 0, 11000), 0);
	for (unsigned i = 0; i < 4; i++)
		shelf_expire(table, 11000);
	ck_assert_uint_eq(shelf_count(table, NULL), 0);
	ck_assert_int_eq(
		put_at((struct live_wish){ .connection = connection(2), .epoch = 1, .remaining_s = 0 }, 0, 0), 0);
}
END_TEST

START_TEST(what_comes_after_the_end_of_its_connection_is_refused)
{
	struct connection_id id = connection(1);

	const struct seen_mark at = { .epoch = 1 };

	connections_seen_stop(seen, &id, &at, SEEN_ENDED, 0);
	ck_assert_int_eq(put(1, 1, 0), CSSL_E_EXPIRED);
	ck_assert_uint_eq(shelf_count(table, NULL), 0);
}
END_TEST

START_TEST(the_table_is_bounded_and_the_oldest_go_first)
{
	for (unsigned n = 0; n < 2000; n++)
		ck_assert_int_eq(put(n, 1, 0), 0);
	ck_assert_uint_lt(shelf_count(table, NULL), BYTES / 200);
	ck_assert_int_eq(has_at(0, 0, 0), 0);
	ck_assert_int_eq(has_at(1999, 0, 0), 1);
	ck_assert_uint_eq(counter_get(&counters.at[COUNT_LIVE_EVICTED]), 2000 - shelf_count(table, NULL));
}
END_TEST

START_TEST(bytes_are_those_of_the_parts_that_are_there)
{
	struct connection_id id = connection(1);

	put(1, 1, 0);
	uint64_t one, bytes;
	shelf_count(table, &one);
	ck_assert_uint_gt(one, 0);
	put(2, 1, 0);
	shelf_count(table, &bytes);
	ck_assert_uint_eq(bytes, 2 * one);
	live_table_drop(table, &id);
	shelf_count(table, &bytes);
	ck_assert_uint_eq(bytes, one);
}
END_TEST

static enum walk on_walk(void *ctx, const struct shelved *held)
{
	unsigned *met = ctx;

	return ++*met % 5 == 0 ? WALK_PAUSE : WALK_ON;
}

START_TEST(a_walk_in_steps_meets_each_once)
{
	uint64_t cursor = 0;
	unsigned met = 0;

	for (unsigned n = 0; n < 100; n++)
		put(n, 1, 0);
	while (shelf_walk(table, &cursor, 0, on_walk, &met) == 1)
		;
	ck_assert_uint_eq(met, 100);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, only_the_right_generations_and_an_older_epoch_are_found);
	tcase_add_test(tcase, the_newest_stays_in_whatever_order_they_come);
	tcase_add_test(tcase, under_the_same_keys_the_later_export_stays);
	tcase_add_test(tcase, an_adoption_under_newer_keys_drops_it_and_under_the_same_does_not);
	tcase_add_test(tcase, a_lost_owner_takes_its_live_parts_along_but_not_those_adopted_since);
	tcase_add_test(tcase, a_live_part_expires);
	tcase_add_test(tcase, what_comes_after_the_end_of_its_connection_is_refused);
	tcase_add_test(tcase, the_table_is_bounded_and_the_oldest_go_first);
	tcase_add_test(tcase, bytes_are_those_of_the_parts_that_are_there);
	tcase_add_test(tcase, a_walk_in_steps_meets_each_once);
}

UNIT(live_table)
{
	return run_suite("live_table", add);
}
