/* test_ticket_keys.c: which key seals tickets, and which still open them. */
#include <sodium.h>
#include <string.h>

#include "proto/error.h"
#include "sslagent/sessions/ticket_keys.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static const uint8_t salt[16] = "one ticket's iv", other_salt[16] = "another ticket";

START_TEST(without_a_key_there_are_no_tickets)
{
	struct ticket_keys *t = ticket_keys_create(10000);
	struct ticket_key key;

	ck_assert_int_eq(ticket_keys_derive(t, NULL, salt, 0, &key), CSSL_E_KEY_UNKNOWN);
	ck_assert_int_eq(ticket_keys_newest_age_ms(t, 5) == INT64_MAX, 1);
	ticket_keys_destroy(t);
}
END_TEST

START_TEST(each_ticket_has_keys_of_its_own_and_they_are_found_by_name)
{
	struct ticket_keys *t = ticket_keys_create(10000);
	struct ticket_key sealing, opening, other;

	ticket_keys_make(t, 0);
	ck_assert_int_eq(ticket_keys_derive(t, NULL, salt, 0, &sealing), 0);
	ck_assert_int_eq(ticket_keys_derive(t, sealing.name, salt, 0, &opening), 0);
	ck_assert_mem_eq(&sealing, &opening, sizeof(sealing));
	ck_assert_int_eq(ticket_keys_derive(t, sealing.name, other_salt, 0, &other), 0);
	ck_assert_mem_ne(sealing.cipher_key, other.cipher_key, sizeof(other.cipher_key));
	ck_assert_mem_ne(sealing.mac_key, other.mac_key, sizeof(other.mac_key));
	ck_assert_mem_ne(sealing.cipher_key, sealing.mac_key, sizeof(other.mac_key));
	ticket_keys_destroy(t);
}
END_TEST

/* All keys of @from go to @to. */
static void give_all(struct ticket_keys *from, struct ticket_keys *to, int64_t now_ms)
{
	struct cluster_ticket_key keys[TICKET_KEYS_MAX];
	unsigned count = ticket_keys_list(from, keys);

	for (unsigned i = 0; i < count; i++)
		ticket_keys_add(to, &keys[i], now_ms);
}

START_TEST(agents_that_merged_their_keys_seal_with_the_same)
{
	struct ticket_keys *a = ticket_keys_create(100000), *b = ticket_keys_create(100000);
	struct ticket_key of_a, of_b;

	ticket_keys_make(a, 0);
	ticket_keys_make(b, 0);
	ticket_keys_make(a, 500);
	give_all(a, b, 600);
	give_all(b, a, 600);
	for (int64_t now_ms = 600; now_ms < 10000; now_ms += 100) {
		ck_assert_int_eq(ticket_keys_derive(a, NULL, salt, now_ms, &of_a), 0);
		ck_assert_int_eq(ticket_keys_derive(b, NULL, salt, now_ms, &of_b), 0);
		ck_assert_mem_eq(&of_a, &of_b, sizeof(of_a));
	}
	ticket_keys_destroy(a);
	ticket_keys_destroy(b);
}
END_TEST

START_TEST(a_new_key_seals_only_when_it_had_time_to_reach_all)
{
	struct ticket_keys *t = ticket_keys_create(100000);
	struct ticket_key old, fresh;

	ticket_keys_make(t, 0);
	ticket_keys_derive(t, NULL, salt, 5000, &old);
	ticket_keys_make(t, 5000);
	ticket_keys_derive(t, NULL, salt, 5100, &fresh);
	ck_assert_mem_eq(old.name, fresh.name, sizeof(old.name));
	ticket_keys_derive(t, NULL, salt, 7000, &fresh);
	ck_assert_mem_ne(old.name, fresh.name, sizeof(old.name));
	ck_assert_int_eq(ticket_keys_derive(t, old.name, salt, 7000, &fresh), 0);
	ticket_keys_destroy(t);
}
END_TEST

START_TEST(an_old_key_opens_nothing)
{
	struct ticket_keys *t = ticket_keys_create(10000);
	struct ticket_key key, again;

	ticket_keys_make(t, 0);
	ticket_keys_derive(t, NULL, salt, 0, &key);
	ck_assert_int_eq(ticket_keys_derive(t, key.name, salt, 9999, &again), 0);
	ck_assert_int_eq(ticket_keys_derive(t, key.name, salt, 10000, &again), CSSL_E_KEY_UNKNOWN);
	ticket_keys_expire(t, 10000);
	ck_assert_int_eq(ticket_keys_newest_age_ms(t, 10000) == INT64_MAX, 1);
	ticket_keys_destroy(t);
}
END_TEST

START_TEST(of_too_many_keys_the_oldest_go)
{
	struct ticket_keys *t = ticket_keys_create(1000000);
	struct cluster_ticket_key keys[TICKET_KEYS_MAX];

	for (unsigned i = 0; i < TICKET_KEYS_MAX + 10; i++)
		ticket_keys_make(t, i);
	ck_assert_uint_eq(ticket_keys_list(t, keys), TICKET_KEYS_MAX);
	ck_assert_int_eq(keys[TICKET_KEYS_MAX - 1].made_ms, 10);
	ck_assert_int_eq(keys[0].made_ms, TICKET_KEYS_MAX + 9);
	ticket_keys_destroy(t);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, without_a_key_there_are_no_tickets);
	tcase_add_test(tcase, each_ticket_has_keys_of_its_own_and_they_are_found_by_name);
	tcase_add_test(tcase, agents_that_merged_their_keys_seal_with_the_same);
	tcase_add_test(tcase, a_new_key_seals_only_when_it_had_time_to_reach_all);
	tcase_add_test(tcase, an_old_key_opens_nothing);
	tcase_add_test(tcase, of_too_many_keys_the_oldest_go);
}

UNIT(ticket_keys)
{
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return run_suite("ticket_keys", add);
}
