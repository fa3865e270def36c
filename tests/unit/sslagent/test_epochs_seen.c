/* test_epochs_seen.c: facts of the epochs of connections that were seen, here or announced. */
#include <sodium.h>

#include "proto/error.h"
#include "sslagent/counters.h"
#include "sslagent/cluster/epochs_seen.h"
#include "suite_of.h"

static struct connection_id random_connection(void)
{
	struct connection_id id;

	randombytes_buf(id.bytes, sizeof(id.bytes));
	return id;
}

START_TEST(an_epoch_is_claimed_once_and_never_below_the_highest)
{
	struct epochs_seen *e = epochs_seen_create(1024, 1000);
	struct connection_id id = random_connection();

	ck_assert_int_eq(epochs_seen_claim(e, &id, 5, 0), 0);
	ck_assert_int_eq(epochs_seen_claim(e, &id, 5, 0), CSSL_E_REPLAY);
	ck_assert_int_eq(epochs_seen_claim(e, &id, 4, 0), CSSL_E_REPLAY);
	ck_assert_int_eq(epochs_seen_claim(e, &id, 6, 0), 0);
	epochs_seen_destroy(e);
}
END_TEST

START_TEST(an_announced_epoch_counts_as_claimed)
{
	struct epochs_seen *e = epochs_seen_create(1024, 1000);
	struct connection_id id = random_connection();

	epochs_seen_note(e, &id, 9, 0);
	epochs_seen_note(e, &id, 3, 0);
	ck_assert_int_eq(epochs_seen_claim(e, &id, 9, 0), CSSL_E_REPLAY);
	ck_assert_int_eq(epochs_seen_claim(e, &id, 10, 0), 0);
	epochs_seen_destroy(e);
}
END_TEST

START_TEST(an_end_is_remembered_and_claims_nothing)
{
	struct epochs_seen *e = epochs_seen_create(1024, 1000);
	struct connection_id id = random_connection();

	ck_assert_int_eq(epochs_seen_ended(e, &id), 0);
	epochs_seen_end(e, &id, 0);
	ck_assert_int_eq(epochs_seen_ended(e, &id), 1);
	ck_assert_int_eq(epochs_seen_claim(e, &id, 1, 0), 0);
	epochs_seen_destroy(e);
}
END_TEST

/* As after a rest. */
START_TEST(a_higher_epoch_shows_that_it_goes_on)
{
	struct epochs_seen *e = epochs_seen_create(1024, 1000);
	struct connection_id id = random_connection();

	epochs_seen_note(e, &id, 2, 0);
	epochs_seen_end(e, &id, 0);
	epochs_seen_note(e, &id, 2, 0);
	ck_assert_int_eq(epochs_seen_ended(e, &id), 1);
	epochs_seen_note(e, &id, 3, 0);
	ck_assert_int_eq(epochs_seen_ended(e, &id), 0);
	epochs_seen_end(e, &id, 0);
	ck_assert_int_eq(epochs_seen_claim(e, &id, 4, 0), 0);
	ck_assert_int_eq(epochs_seen_ended(e, &id), 0);
	epochs_seen_destroy(e);
}
END_TEST

START_TEST(the_oldest_gives_way_and_is_counted_when_early)
{
	struct counter_array counters = { 0 };
	struct epochs_seen *e = epochs_seen_create(8, 1000); /* one set */
	struct connection_id first = random_connection(), id;

	counters_use(&counters);
	epochs_seen_claim(e, &first, 2, 0);
	for (unsigned i = 1; i < 8; i++) {
		id = random_connection();
		epochs_seen_claim(e, &id, 2, i);
	}
	ck_assert_int_eq(epochs_seen_claim(e, &first, 2, 0), CSSL_E_REPLAY);
	id = random_connection();
	epochs_seen_claim(e, &id, 2, 100);
	ck_assert_int_eq(epochs_seen_claim(e, &first, 2, 101), 0);
	ck_assert_uint_eq(counter_get(&counters.at[COUNT_EPOCHS_FORGOTTEN_EARLY]), 2);
	id = random_connection();
	epochs_seen_claim(e, &id, 2, 5000);
	ck_assert_uint_eq(counter_get(&counters.at[COUNT_EPOCHS_FORGOTTEN_EARLY]), 2);
	counters_use(NULL);
	epochs_seen_destroy(e);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, an_epoch_is_claimed_once_and_never_below_the_highest);
	tcase_add_test(tcase, an_announced_epoch_counts_as_claimed);
	tcase_add_test(tcase, an_end_is_remembered_and_claims_nothing);
	tcase_add_test(tcase, a_higher_epoch_shows_that_it_goes_on);
	tcase_add_test(tcase, the_oldest_gives_way_and_is_counted_when_early);
}

int main(void)
{
	return run_suite("epochs_seen", add);
}
