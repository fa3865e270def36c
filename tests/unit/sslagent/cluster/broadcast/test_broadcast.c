/* test_broadcast.c: senders and receivers over a network that does its worst, under virtual time. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "tests/unit/sslagent/cluster/broadcast/virtual_network.h"
#include "tests/unit/unit.h"

static const struct vnet_quality perfect = { 0 };
static const struct vnet_quality lossy = { .loss = 0.2 };
static const struct vnet_quality wild = { .loss = 0.3, .duplicate = 0.2, .delay_ms = 5, .jitter_ms = 40 };

#define RING 512u

static struct vnet *network(unsigned nodes, struct vnet_quality quality)
{
	struct vnet_conf conf = { .nodes = nodes, .ring = RING, .seed = 7, .quality = quality };

	return vnet_create(&conf);
}

/* Proven to each other, nothing told yet. */
static struct vnet *proven(unsigned nodes, struct vnet_quality quality)
{
	struct vnet *v = network(nodes, quality);

	vnet_run(v, 2000);
	return v;
}

static void tell_run(struct vnet *v, unsigned node, unsigned first, unsigned last, unsigned each_ms)
{
	for (unsigned value = first; value <= last; value++) {
		vnet_tell(v, node, value);
		if (each_ms)
			vnet_run(v, each_ms);
	}
}

static void assert_state(struct vnet *v, unsigned at, unsigned from, int state)
{
	ck_assert_int_eq(broadcast_receiver_view(vnet_receiver(v, at), from).state, state);
}

START_TEST(nothing_is_believed_before_the_proof)
{
	struct vnet *v = network(2, perfect);

	vnet_set_way(v, 1, 0, WAY_CUT); /* no question of 1 reaches 0 */
	tell_run(v, 0, 0, 9, 1);
	vnet_run(v, 3000);
	assert_state(v, 1, 0, SENDER_UNPROVEN);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 10), 0);
	ck_assert_uint_ge(vnet_counted(v, 1, COUNT_MESSAGES_UNPROVEN), 10);
	ck_assert_int_eq(broadcast_receiver_view(vnet_receiver(v, 1), 0).heard_ms, INT64_MIN);
	vnet_destroy(v);
}
END_TEST

START_TEST(objects_sent_before_the_proof_are_repaired_after_it)
{
	struct vnet *v = network(2, perfect);

	vnet_set_way(v, 1, 0, WAY_CUT); /* no question of 1 reaches 0: its objects stay unproven there */
	tell_run(v, 0, 0, 49, 1);
	assert_state(v, 1, 0, SENDER_UNPROVEN);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 50), 0);
	vnet_set_way(v, 1, 0, WAY_OPEN);
	vnet_run(v, 1000);
	assert_state(v, 1, 0, SENDER_BELIEVED);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 50), 50);
	vnet_destroy(v);
}
END_TEST

START_TEST(every_object_reaches_everybody_once_over_a_perfect_network)
{
	struct vnet *v = proven(5, perfect);

	for (unsigned node = 0; node < 5; node++)
		tell_run(v, node, 0, 199, 0);
	vnet_run(v, 50);
	for (unsigned at = 0; at < 5; at++)
		for (unsigned from = 0; from < 5; from++)
			for (unsigned value = 0; at != from && value < 200; value++)
				ck_assert_uint_eq(vnet_heard(v, at, from, value), 1);
	vnet_destroy(v);
}
END_TEST

START_TEST(every_object_arrives_at_20_percent_loss)
{
	struct vnet *v = proven(4, lossy);

	for (unsigned round = 0; round < 50; round++)
		for (unsigned node = 0; node < 4; node++)
			tell_run(v, node, round * 20, round * 20 + 19, node == 3 ? 1 : 0);
	vnet_run(v, 1500);
	for (unsigned at = 0; at < 4; at++)
		for (unsigned from = 0; from < 4; from++)
			if (at != from)
				ck_assert_uint_eq(vnet_heard_count(v, at, from, 1000), 1000);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_lost_object_is_repaired_within_some_tens_of_milliseconds)
{
	struct vnet *v = proven(2, perfect);

	vnet_set_way(v, 0, 1, WAY_CUT);
	tell_run(v, 0, 0, 0, 1);
	vnet_set_way(v, 0, 1, WAY_OPEN);
	tell_run(v, 0, 1, 1, 1);
	vnet_run(v, 30);
	ck_assert_uint_eq(vnet_heard(v, 1, 0, 0), 1);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_lost_last_object_is_found_missing_by_the_heartbeat)
{
	struct vnet *v = proven(2, perfect);

	vnet_set_way(v, 0, 1, WAY_CUT);
	tell_run(v, 0, 0, 0, 1);
	vnet_set_way(v, 0, 1, WAY_OPEN);
	vnet_run(v, 200);
	ck_assert_uint_eq(vnet_heard(v, 1, 0, 0), 1);
	vnet_destroy(v);
}
END_TEST

START_TEST(no_object_is_handed_on_twice_whatever_the_network_does)
{
	struct vnet *v = proven(3, wild);

	for (unsigned node = 0; node < 3; node++)
		tell_run(v, node, 0, 499, 1);
	vnet_run(v, 5000);
	for (unsigned at = 0; at < 3; at++)
		for (unsigned from = 0; from < 3; from++)
			for (unsigned value = 0; at != from && value < 500; value++)
				ck_assert_uint_eq(vnet_heard(v, at, from, value), 1);
	vnet_destroy(v);
}
END_TEST

START_TEST(repeats_stay_in_proportion_when_the_way_is_long)
{
	struct vnet *v = proven(2, (struct vnet_quality){ .loss = 0.1, .delay_ms = 200 });
	uint64_t repeated;

	tell_run(v, 0, 0, 1999, 5); /* so that the ring outlives some ways to and fro */
	vnet_run(v, 4000);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 2000), 2000);
	repeated = vnet_counted(v, 0, COUNT_OBJECTS_REPEATED);
	ck_assert_uint_lt(repeated, 2000);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_one_way_partition_heals_without_help)
{
	struct vnet *v = proven(3, perfect);

	vnet_set_way(v, 0, 1, WAY_CUT);
	tell_run(v, 0, 0, 299, 10); /* 3 s */
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 300), 0);
	ck_assert_uint_eq(vnet_heard_count(v, 2, 0, 300), 300);
	vnet_set_way(v, 0, 1, WAY_OPEN);
	vnet_run(v, 1500);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 300), 300);
	vnet_destroy(v);
}
END_TEST

START_TEST(beyond_the_ring_a_snapshot_is_wanted_and_the_rest_repaired)
{
	struct vnet *v = proven(2, perfect);

	vnet_set_way(v, 0, 1, WAY_CUT);
	tell_run(v, 0, 0, 999, 0);
	vnet_run(v, 10);
	vnet_set_way(v, 0, 1, WAY_OPEN);
	vnet_run(v, 2000);
	ck_assert_uint_ge(vnet_snapshots_wanted(v, 1, 0), 1);
	ck_assert_uint_eq(vnet_counted(v, 1, COUNT_OBJECTS_FORGOTTEN), 1000 - RING);
	for (unsigned value = 1000 - RING; value < 1000; value++)
		ck_assert_uint_eq(vnet_heard(v, 1, 0, value), 1);
	ck_assert_uint_eq(broadcast_receiver_view(vnet_receiver(v, 1), 0).missing, 0);
	vnet_destroy(v);
}
END_TEST

START_TEST(what_a_snapshot_had_is_not_asked_for)
{
	struct vnet *v = proven(2, perfect);

	vnet_set_way(v, 0, 1, WAY_CUT);
	tell_run(v, 0, 0, 99, 1);
	broadcast_receiver_repair(vnet_receiver(v, 1), REPAIR_HELD);
	vnet_set_way(v, 0, 1, WAY_OPEN);
	tell_run(v, 0, 100, 109, 1);
	vnet_run(v, 500);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 110), 10);
	broadcast_receiver_complete(
		vnet_receiver(v, 1), 0, broadcast_receiver_view(vnet_receiver(v, 1), 0).boot_id, 0, 60);
	broadcast_receiver_repair(vnet_receiver(v, 1), REPAIR_ON);
	vnet_run(v, 500);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 60), 0);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 110), 50);
	vnet_destroy(v);
}
END_TEST

/* A joining agent has the snapshot before it has links with all. */
START_TEST(what_a_snapshot_had_of_an_unmet_sender_counts_when_it_is_met)
{
	static const struct broadcast_receiver_ops nothing = { 0 };
	struct broadcast_receiver *r = broadcast_receiver_create(3, &nothing, NULL);

	broadcast_receiver_complete(r, 1, 77, 0, 60);
	broadcast_receiver_complete(r, 1, 77, 2, 9);
	broadcast_receiver_complete(r, 1, 77, 5, 1); /* a worker it turns out not to have */
	broadcast_receiver_complete(r, 2, 77, 0, 60);
	ck_assert_uint_eq(broadcast_receiver_heard(r, 1, 0), 0);
	ck_assert_int_eq(broadcast_receiver_meet(r, 1, 77, 2), 0);
	ck_assert_uint_eq(broadcast_receiver_heard(r, 1, 0), 60);
	ck_assert_uint_eq(broadcast_receiver_heard(r, 1, 1), 0);
	ck_assert_uint_eq(broadcast_receiver_heard(r, 1, 2), 9);
	ck_assert_int_eq(broadcast_receiver_meet(r, 2, 78, 2), 0); /* it had started anew */
	ck_assert_uint_eq(broadcast_receiver_heard(r, 2, 0), 0);
	broadcast_receiver_complete(r, 1, 79, 0, 5); /* of its next run, which is not met yet */
	ck_assert_int_eq(broadcast_receiver_meet(r, 1, 79, 2), 0);
	ck_assert_uint_eq(broadcast_receiver_heard(r, 1, 0), 5);
	ck_assert_uint_eq(broadcast_receiver_heard(r, 1, 2), 0);
	broadcast_receiver_destroy(r);
}
END_TEST

START_TEST(a_restarted_sender_is_heard_again)
{
	struct vnet *v = proven(3, lossy);

	tell_run(v, 0, 0, 99, 1);
	vnet_run(v, 500);
	vnet_restart(v, 0);
	tell_run(v, 0, 100, 199, 1);
	vnet_run(v, 3000);
	for (unsigned at = 1; at < 3; at++)
		ck_assert_uint_eq(vnet_heard_count(v, at, 0, 200), 200);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_restarted_receiver_hears_what_is_in_the_ring_and_what_follows)
{
	struct vnet *v = proven(3, lossy);

	tell_run(v, 0, 0, 99, 1);
	vnet_restart(v, 1);
	tell_run(v, 0, 100, 199, 1);
	vnet_run(v, 3000);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 200), 200);
	vnet_destroy(v);
}
END_TEST

START_TEST(key_rotation_under_load_loses_nothing)
{
	struct vnet *v = proven(3, lossy);

	for (unsigned round = 0; round < 20; round++) {
		vnet_roll_key(v, 0, 25);
		tell_run(v, 0, round * 50, round * 50 + 49, 1);
	}
	vnet_run(v, 2000);
	for (unsigned at = 1; at < 3; at++) {
		ck_assert_uint_eq(vnet_heard_count(v, at, 0, 1000), 1000);
		ck_assert_uint_eq(vnet_counted(v, at, COUNT_DATAGRAMS_KEY_UNKNOWN), 0);
		ck_assert_uint_eq(vnet_counted(v, at, COUNT_DATAGRAMS_REPLAYED), 0);
	}
	vnet_destroy(v);
}
END_TEST

START_TEST(a_new_key_needs_no_new_proof)
{
	struct vnet *v = proven(2, perfect);
	uint64_t probes = vnet_counted(v, 1, COUNT_PROBES_SENT);

	vnet_roll_key(v, 0, 10);
	vnet_run(v, 20);
	vnet_set_way(v, 1, 0, WAY_CUT); /* no question could be asked */
	tell_run(v, 0, 0, 9, 1);
	vnet_run(v, 10);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 10), 10);
	ck_assert_uint_eq(vnet_counted(v, 1, COUNT_PROBES_SENT), probes);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_message_of_a_later_release_is_passed_over)
{
	struct vnet *v = proven(2, perfect);
	Cssl__BroadcastMessage unknown = CSSL__BROADCAST_MESSAGE__INIT;

	vnet_say(v, 0, 1, &unknown);
	tell_run(v, 0, 0, 0, 1);
	vnet_run(v, 5);
	ck_assert_uint_eq(vnet_heard(v, 1, 0, 0), 1);
	ck_assert_uint_eq(vnet_counted(v, 1, COUNT_MESSAGES_BAD), 1);
	vnet_destroy(v);
}
END_TEST

START_TEST(twenty_nodes_under_loss_know_everything)
{
	struct vnet *v = proven(20, lossy);

	for (unsigned round = 0; round < 20; round++) {
		for (unsigned node = 0; node < 20; node++)
			tell_run(v, node, round * 5, round * 5 + 4, 0);
		vnet_run(v, 5);
	}
	vnet_run(v, 2000);
	for (unsigned at = 0; at < 20; at++)
		for (unsigned from = 0; from < 20; from++)
			if (at != from)
				ck_assert_uint_eq(vnet_heard_count(v, at, from, 100), 100);
	vnet_destroy(v);
}
END_TEST

UNIT(broadcast)
{
	TCase *proof = tcase_create("proof"), *repair = tcase_create("repair"), *keys = tcase_create("keys");
	Suite *suite = suite_create("broadcast");
	SRunner *runner;
	int failed;

	tcase_add_test(proof, nothing_is_believed_before_the_proof);
	tcase_add_test(proof, objects_sent_before_the_proof_are_repaired_after_it);
	tcase_add_test(proof, a_restarted_sender_is_heard_again);
	tcase_add_test(proof, a_restarted_receiver_hears_what_is_in_the_ring_and_what_follows);
	tcase_add_test(repair, every_object_reaches_everybody_once_over_a_perfect_network);
	tcase_add_test(repair, every_object_arrives_at_20_percent_loss);
	tcase_add_test(repair, a_lost_object_is_repaired_within_some_tens_of_milliseconds);
	tcase_add_test(repair, a_lost_last_object_is_found_missing_by_the_heartbeat);
	tcase_add_test(repair, no_object_is_handed_on_twice_whatever_the_network_does);
	tcase_add_test(repair, repeats_stay_in_proportion_when_the_way_is_long);
	tcase_add_test(repair, a_one_way_partition_heals_without_help);
	tcase_add_test(repair, beyond_the_ring_a_snapshot_is_wanted_and_the_rest_repaired);
	tcase_add_test(repair, what_a_snapshot_had_is_not_asked_for);
	tcase_add_test(repair, what_a_snapshot_had_of_an_unmet_sender_counts_when_it_is_met);
	tcase_add_test(repair, a_message_of_a_later_release_is_passed_over);
	tcase_add_test(repair, twenty_nodes_under_loss_know_everything);
	tcase_add_test(keys, key_rotation_under_load_loses_nothing);
	tcase_add_test(keys, a_new_key_needs_no_new_proof);
	tcase_set_timeout(repair, 60);
	suite_add_tcase(suite, proof);
	suite_add_tcase(suite, repair);
	suite_add_tcase(suite, keys);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
