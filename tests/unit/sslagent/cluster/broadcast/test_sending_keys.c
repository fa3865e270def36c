/* test_sending_keys.c: when a key is used. */
#include <sodium.h>

#include "proto/error.h"
#include "sslagent/cluster/broadcast/sending_keys.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

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

START_TEST(the_next_key_is_used_when_all_hold_it)
{
	struct sending_keys *k = sending_keys_create();
	uint64_t first = current_id(k), next;

	ck_assert_uint_eq(next_id(k), 0);
	ck_assert(!sending_keys_step(k, true, 0));
	ck_assert_int_eq(sending_keys_roll(k, 0), 0);
	next = next_id(k);
	ck_assert_uint_ne(next, 0);
	ck_assert_uint_ne(next, first);
	ck_assert(!sending_keys_step(k, false, 10));
	ck_assert_uint_eq(current_id(k), first);
	ck_assert(sending_keys_step(k, true, 20));
	ck_assert_uint_eq(current_id(k), next);
	ck_assert_uint_eq(sending_keys_generation(k), 2);
	sending_keys_destroy(k);
}
END_TEST

START_TEST(a_silent_peer_does_not_hold_a_key_up_for_long)
{
	struct sending_keys *k = sending_keys_create();

	sending_keys_roll(k, 1000);
	ck_assert(!sending_keys_step(k, false, 1000 + SENDING_KEY_PATIENCE_MS - 1));
	ck_assert(sending_keys_step(k, false, 1000 + SENDING_KEY_PATIENCE_MS));
	sending_keys_destroy(k);
}
END_TEST

START_TEST(one_key_is_on_its_way_at_a_time)
{
	struct sending_keys *k = sending_keys_create();

	ck_assert_int_eq(sending_keys_roll(k, 0), 0);
	ck_assert_int_eq(sending_keys_roll(k, 0), CSSL_E_BUSY);
	ck_assert(sending_keys_step(k, true, 0));
	ck_assert_int_eq(sending_keys_roll(k, 0), 0);
	sending_keys_destroy(k);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_next_key_is_used_when_all_hold_it);
	tcase_add_test(tcase, a_silent_peer_does_not_hold_a_key_up_for_long);
	tcase_add_test(tcase, one_key_is_on_its_way_at_a_time);
}

UNIT(sending_keys)
{
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return run_suite("sending_keys", add);
}
