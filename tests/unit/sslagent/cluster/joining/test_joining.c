/* test_joining.c: when an agent is ready, and what it asks for again. */
#include <sodium.h>
#include <string.h>

#include "tests/unit/sslagent/cluster/joining/lone_joining.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/unit.h"

static struct lone_joining l;

static void setup(void)
{
	lone_joining_start(&l, 1, 0);
}

static void teardown(void)
{
	lone_joining_stop(&l);
}

START_TEST(an_agent_without_others_is_ready_when_it_was_alone_long_enough)
{
	joining_tick(&l.joining, LONE_ALONE_AFTER_MS - 1);
	ck_assert_uint_eq(l.ready, 0);
	ck_assert(!l.joining.is_ready);
	joining_tick(&l.joining, LONE_ALONE_AFTER_MS);
	ck_assert_uint_eq(l.ready, 1);
	ck_assert(l.joining.is_ready);
	joining_tick(&l.joining, 2 * LONE_ALONE_AFTER_MS);
	ck_assert_uint_eq(l.ready, 1); /* once */
	ck_assert_int_eq(l.joining.state, JOINING_ALONE);
}
END_TEST

START_TEST(a_lost_source_is_asked_again_unless_it_has_given_all)
{
	l.joining.with[0].source = SOURCE_ASKED;
	l.joining.with[2].source = SOURCE_TAKEN;
	for (struct peer *p = peers_next(&l.peers, NULL); p; p = peers_next(&l.peers, p))
		joining_peer_lost(&l.joining, p);
	ck_assert_int_eq(l.joining.with[0].source, SOURCE_UNASKED);
	ck_assert_int_eq(l.joining.with[2].source, SOURCE_TAKEN);
}
END_TEST

START_TEST(what_a_peer_without_a_link_has_is_taken_later)
{
	uint8_t id[SESSION_ID_LEN] = { 1 };

	joining_fetch(&l.joining, l.peers.at[0], NULL);
	joining_fetch(&l.joining, l.peers.at[2], id);
	ck_assert_int_eq(l.joining.with[0].own_due, PEER_OWN_DUE);
	ck_assert_int_eq(l.joining.with[2].own_due, PEER_OWN_DUE);
	ck_assert(joining_is_quiet(&l.joining, 0));
}
END_TEST

START_TEST(a_large_object_under_way_is_not_forgotten_with_its_link)
{
	l.joining.with[0].announced = 1;
	ck_assert(!joining_is_quiet(&l.joining, 0));
	ck_assert(joining_is_idle(&l.joining, 0));
	joining_peer_lost(&l.joining, l.peers.at[0]);
	ck_assert_int_eq(l.joining.with[0].own_due, PEER_OWN_DUE);
	ck_assert(joining_is_quiet(&l.joining, 0));
}
END_TEST

START_TEST(a_part_that_nobody_asked_for_changes_nothing)
{
	Cssl__Heard heard = CSSL__HEARD__INIT, *pointer = &heard;
	Cssl__SnapshotPart part = CSSL__SNAPSHOT_PART__INIT;
	Cssl__PeerMessage m = CSSL__PEER_MESSAGE__INIT;
	uint64_t complete = 60;

	heard.agent = (char *)"c";
	heard.boot_id = 77;
	heard.n_complete = 1;
	heard.complete = &complete;
	part.n_heard = 1;
	part.heard = &pointer;
	part.last = 1;
	m.what_case = CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_PART;
	m.snapshot_part = &part;
	ck_assert_int_eq(joining_on_message(&l.joining, l.peers.at[0], &m), 0);
	ck_assert_int_eq(broadcast_receiver_meet(l.receiver, 2, 77, 0), 0);
	ck_assert_uint_eq(broadcast_receiver_heard(l.receiver, 2, 0), 0);
	ck_assert_int_eq(l.joining.with[0].source, SOURCE_UNASKED);
}
END_TEST

START_TEST(a_part_that_was_asked_for_tells_what_was_heard)
{
	Cssl__Heard heard = CSSL__HEARD__INIT, *pointer = &heard;
	Cssl__SnapshotPart part = CSSL__SNAPSHOT_PART__INIT;
	Cssl__PeerMessage m = CSSL__PEER_MESSAGE__INIT;
	uint64_t complete = 60;

	heard.agent = (char *)"c";
	heard.boot_id = 77;
	heard.n_complete = 1;
	heard.complete = &complete;
	part.n_heard = 1;
	part.heard = &pointer;
	part.last = 1;
	m.what_case = CSSL__PEER_MESSAGE__WHAT_SNAPSHOT_PART;
	m.snapshot_part = &part;
	l.joining.with[0].taker.state = TAKING_ALL;
	ck_assert_int_eq(joining_on_message(&l.joining, l.peers.at[0], &m), 0);
	ck_assert_int_eq(broadcast_receiver_meet(l.receiver, 2, 77, 0), 0);
	ck_assert_uint_eq(broadcast_receiver_heard(l.receiver, 2, 0), 60);
	ck_assert_int_eq(l.joining.with[0].source, SOURCE_TAKEN);
	ck_assert_int_eq(l.joining.with[0].taker.state, TAKING_NOTHING);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, an_agent_without_others_is_ready_when_it_was_alone_long_enough);
	tcase_add_test(tcase, a_lost_source_is_asked_again_unless_it_has_given_all);
	tcase_add_test(tcase, what_a_peer_without_a_link_has_is_taken_later);
	tcase_add_test(tcase, a_large_object_under_way_is_not_forgotten_with_its_link);
	tcase_add_test(tcase, a_part_that_nobody_asked_for_changes_nothing);
	tcase_add_test(tcase, a_part_that_was_asked_for_tells_what_was_heard);
}

UNIT(joining)
{
	if (sodium_init() < 0)
		return EXIT_FAILURE;
	return run_suite("joining", add);
}
