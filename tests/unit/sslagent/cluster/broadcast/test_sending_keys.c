/* test_sending_keys.c: when a key is used. */
#include <sodium.h>

#include "proto/error.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

#define PEERS 3u

static int first_two(void *ctx, unsigned peer)
{
	return peer < 2;
}

static int nobody(void *ctx, unsigned peer)
{
	return 0;
}

static uint64_t current_id(struct sending_keys *k)
{
	struct sending_key keys[2];

	sending_keys_list(k, keys);
	return keys[0].id;
}

/* 0: there is none. */
static uint64_t next_id(struct sending_keys *k)
{
	struct sending_key keys[2];

	return sending_keys_list(k, keys) == 2 ? keys[1].id : 0;
}

START_TEST(the_next_key_is_used_when_all_have_confirmed_it)
{
	struct sending_keys *k = sending_keys_create(PEERS);
	uint64_t first = current_id(k), next;

	ck_assert_uint_eq(next_id(k), 0);
	ck_assert_int_eq(sending_keys_roll(k, 0), 0);
	next = next_id(k);
	ck_assert_uint_ne(next, 0);
	ck_assert_uint_ne(next, first);
	ck_assert_int_eq(sending_keys_step(k, first_two, NULL, 10), 0);
	sending_keys_confirmed(k, 0, next);
	ck_assert_int_eq(sending_keys_step(k, first_two, NULL, 20), 0);
	sending_keys_confirmed(k, 1, first); /* not that one */
	ck_assert_int_eq(sending_keys_step(k, first_two, NULL, 30), 0);
	ck_assert_uint_eq(current_id(k), first);
	sending_keys_confirmed(k, 1, next);
	ck_assert_int_eq(sending_keys_step(k, first_two, NULL, 40), 1);
	ck_assert_uint_eq(current_id(k), next);
	ck_assert_uint_eq(sending_keys_generation(k), 2);
	sending_keys_destroy(k);
}
END_TEST

START_TEST(a_silent_peer_does_not_hold_a_key_up_for_long)
{
	struct sending_keys *k = sending_keys_create(PEERS);

	sending_keys_roll(k, 1000);
	ck_assert_int_eq(sending_keys_step(k, first_two, NULL, 1000 + SENDING_KEY_PATIENCE_MS - 1), 0);
	ck_assert_int_eq(sending_keys_step(k, first_two, NULL, 1000 + SENDING_KEY_PATIENCE_MS), 1);
	sending_keys_destroy(k);
}
END_TEST

START_TEST(one_key_is_on_its_way_at_a_time)
{
	struct sending_keys *k = sending_keys_create(PEERS);

	ck_assert_int_eq(sending_keys_roll(k, 0), 0);
	ck_assert_int_eq(sending_keys_roll(k, 0), CSSL_E_BUSY);
	ck_assert_int_eq(sending_keys_step(k, nobody, NULL, 0), 1);
	ck_assert_int_eq(sending_keys_roll(k, 0), 0);
	sending_keys_destroy(k);
}
END_TEST

START_TEST(who_confirmed_holds_the_key_until_the_next_is_used)
{
	struct sending_keys *k = sending_keys_create(PEERS);

	ck_assert_int_eq(sending_keys_held_by(k, 0), 0);
	sending_keys_confirmed(k, 0, current_id(k));
	sending_keys_confirmed(k, 1, current_id(k));
	ck_assert_int_eq(sending_keys_held_by(k, 0), 1);
	sending_keys_roll(k, 0);
	sending_keys_confirmed(k, 0, next_id(k));
	sending_keys_step(k, nobody, NULL, 0);
	ck_assert_int_eq(sending_keys_held_by(k, 0), 1);
	ck_assert_int_eq(sending_keys_held_by(k, 1), 0);
	sending_keys_forget_peer(k, 0);
	ck_assert_int_eq(sending_keys_held_by(k, 0), 0);
	sending_keys_destroy(k);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_next_key_is_used_when_all_have_confirmed_it);
	tcase_add_test(tcase, a_silent_peer_does_not_hold_a_key_up_for_long);
	tcase_add_test(tcase, one_key_is_on_its_way_at_a_time);
	tcase_add_test(tcase, who_confirmed_holds_the_key_until_the_next_is_used);
}

UNIT(sending_keys)
{
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return run_suite("sending_keys", add);
}
