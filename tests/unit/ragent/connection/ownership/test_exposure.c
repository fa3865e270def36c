/* test_exposure.c: facts of the records that lost owners may have used. */
#include "ragent/connection/ownership/exposure.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

START_TEST(records_that_any_lost_owner_got_are_exposed)
{
	struct exposure e = { 0 };

	exposure_add(&e, 3, 7, PEER_DEAD, LOSS_OF_NOTHING_OPEN);
	ck_assert_uint_eq(e.records, 7);
	exposure_add(&e, 3, 5, PEER_DEAD, LOSS_OF_NOTHING_OPEN); /* its successor had got fewer of them */
	ck_assert_uint_eq(e.records, 7);
	exposure_add(&e, 3, 9, PEER_DEAD, LOSS_OF_NOTHING_OPEN);
	ck_assert_uint_eq(e.records, 9);
}
END_TEST

START_TEST(the_owners_are_dead_when_all_are_that_got_unanswered_records)
{
	struct exposure e = { 0 };

	exposure_add(&e, 3, 7, PEER_FATE_UNKNOWN, LOSS_OF_NOTHING_OPEN);
	exposure_add(&e, 3, 7, PEER_DEAD, LOSS_OF_NOTHING_OPEN);
	ck_assert_int_eq(e.fate, PEER_FATE_UNKNOWN);
	e = (struct exposure){ 0 };
	exposure_add(&e, 3, 7, PEER_DEAD, LOSS_OF_NOTHING_OPEN);
	exposure_add(&e, 3, 7, PEER_FATE_UNKNOWN, LOSS_OF_NOTHING_OPEN);
	ck_assert_int_eq(e.fate, PEER_FATE_UNKNOWN);
	e = (struct exposure){ 0 };
	exposure_add(&e, 3, 7, PEER_DEAD, LOSS_OF_NOTHING_OPEN);
	exposure_add(&e, 3, 7, PEER_DEAD, LOSS_OF_NOTHING_OPEN);
	ck_assert_int_eq(e.fate, PEER_DEAD);
}
END_TEST

START_TEST(an_owner_whose_records_are_answered_matters_no_more)
{
	struct exposure e = { 0 };

	exposure_add(&e, 3, 7, PEER_FATE_UNKNOWN, LOSS_OF_NOTHING_OPEN);
	exposure_add(&e, 7, 9, PEER_DEAD, LOSS_OF_NOTHING_OPEN);
	ck_assert_int_eq(e.fate, PEER_DEAD);
}
END_TEST

START_TEST(an_owner_that_got_nothing_is_no_danger)
{
	struct exposure e = { 0 };

	exposure_add(&e, 3, 7, PEER_DEAD, LOSS_OF_NOTHING_OPEN);
	exposure_add(&e, 3, 3, PEER_FATE_UNKNOWN, LOSS_OF_NOTHING_OPEN);
	ck_assert_int_eq(e.fate, PEER_DEAD);
}
END_TEST

START_TEST(losses_count_until_there_is_progress)
{
	struct exposure e = { 0 };

	for (unsigned i = 0; i < 300; i++)
		exposure_add(&e, 0, 0, PEER_DEAD, LOSS_OF_A_REQUEST);
	ck_assert_uint_eq(e.losses, UINT8_MAX);
	exposure_progress(&e);
	exposure_add(&e, 0, 0, PEER_DEAD, LOSS_OF_A_REQUEST);
	ck_assert_uint_eq(e.losses, 1);
}
END_TEST

START_TEST(several_silent_losses_are_one)
{
	struct exposure e = { 0 };

	for (unsigned i = 1; i < EXPOSURE_SILENT_PER_LOSS; i++)
		exposure_add(&e, 0, 0, PEER_DEAD, LOSS_BEFORE_ANY_WORD);
	ck_assert_uint_eq(e.losses, 0);
	exposure_add(&e, 0, 0, PEER_DEAD, LOSS_BEFORE_ANY_WORD);
	ck_assert_uint_eq(e.losses, 1);
	exposure_add(&e, 0, 0, PEER_DEAD, LOSS_BEFORE_ANY_WORD);
	exposure_progress(&e);
	ck_assert_uint_eq(e.silent, 0);
}
END_TEST

UNIT(exposure)
{
	const TTest *const facts[] = {
		records_that_any_lost_owner_got_are_exposed,
		the_owners_are_dead_when_all_are_that_got_unanswered_records,
		an_owner_whose_records_are_answered_matters_no_more,
		an_owner_that_got_nothing_is_no_danger,
		losses_count_until_there_is_progress,
		several_silent_losses_are_one,
	};

	return suite_run("exposure", facts, SUITE_LEN(facts));
}
