/* test_storm.c: facts of the times at which handshakes compete with established clients. */
#include "ragent/connection/limits/storm.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static struct storm s;

static void established_sends(uint64_t now_ms)
{
	s = (struct storm){ 0 };
	storm_sends(&s, now_ms - STORM_ESTABLISHED_MS, now_ms);
}

START_TEST(many_handshakes_are_one_while_somebody_established_sends)
{
	established_sends(5000);
	ck_assert_int_eq(storm_look(&s, STORM_BEGINS_AT - 1, 5000), STORM_GOES_ON);
	ck_assert_int_eq(storm_look(&s, STORM_BEGINS_AT, 5000), STORM_BEGINS);
	ck_assert_int_eq(storm_look(&s, STORM_BEGINS_AT, 5000), STORM_GOES_ON);
}
END_TEST

START_TEST(it_ends_with_its_handshakes)
{
	established_sends(5000);
	storm_look(&s, STORM_BEGINS_AT, 5000);
	ck_assert_int_eq(storm_look(&s, STORM_ENDS_AT, 5000), STORM_GOES_ON);
	ck_assert_int_eq(storm_look(&s, STORM_ENDS_AT - 1, 5000), STORM_ENDS);
	ck_assert_int_eq(storm_look(&s, STORM_ENDS_AT, 5000), STORM_GOES_ON);
}
END_TEST

START_TEST(it_ends_when_nobody_would_wait)
{
	established_sends(5000);
	storm_look(&s, STORM_BEGINS_AT, 5000);
	ck_assert_int_eq(storm_look(&s, STORM_BEGINS_AT, 5000 + STORM_QUIET_MS - 1), STORM_GOES_ON);
	ck_assert_int_eq(storm_look(&s, STORM_BEGINS_AT, 5000 + STORM_QUIET_MS), STORM_ENDS);
}
END_TEST

/* Clients with one request each are no reason. */
START_TEST(new_connections_are_not_established)
{
	s = (struct storm){ 0 };
	ck_assert_int_eq(storm_look(&s, 1000, 5), STORM_GOES_ON);
	storm_sends(&s, 5000, 5000 + STORM_ESTABLISHED_MS - 1);
	ck_assert_int_eq(storm_look(&s, 1000, 5000 + STORM_ESTABLISHED_MS), STORM_GOES_ON);
}
END_TEST

UNIT(storm)
{
	const TTest *const facts[] = {
		many_handshakes_are_one_while_somebody_established_sends,
		it_ends_with_its_handshakes,
		it_ends_when_nobody_would_wait,
		new_connections_are_not_established,
	};

	return suite_run("storm", facts, SUITE_LEN(facts));
}
