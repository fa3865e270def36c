/* test_broadcast_attacks.c: recorded, forged, broken or delayed datagrams change nothing at a receiver. */
#include <check.h>
#include <string.h>

#include "sslagent/cluster/broadcast/broadcast_message.h"
#include "tests/unit/sslagent/suite_of.h"
#include "tests/unit/sslagent/cluster/broadcast/virtual_network.h"
#include "tests/unit/unit.h"

static const struct vnet_quality perfect = { 0 };

static struct vnet *network(unsigned nodes, struct vnet_quality quality)
{
	struct vnet_conf conf = { .nodes = nodes, .ring = 512, .seed = 7, .quality = quality };

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

/* What a receiver knows of a sender, to be compared before and after an attack. */
struct knowledge {
	struct receiver_view view;
	uint64_t complete;
	int64_t heard_ms;
	unsigned values, times;
};

static struct knowledge knowledge_of(struct vnet *v, unsigned at, unsigned from)
{
	struct knowledge k = { .view = broadcast_receiver_view(vnet_receiver(v, at), from),
		.complete = broadcast_receiver_heard(vnet_receiver(v, at), from, 0),
		.heard_ms = broadcast_receiver_view(vnet_receiver(v, at), from).heard_ms };

	for (unsigned value = 0; value < VALUES_MAX; value++) {
		k.values += vnet_heard(v, at, from, value) > 0;
		k.times += vnet_heard(v, at, from, value);
	}
	return k;
}

static void assert_unchanged(struct vnet *v, unsigned at, unsigned from, const struct knowledge *before)
{
	struct knowledge now = knowledge_of(v, at, from);

	ck_assert_int_eq(now.view.state, before->view.state);
	ck_assert_uint_eq(now.view.boot_id, before->view.boot_id);
	ck_assert_uint_eq(now.view.missing, before->view.missing);
	ck_assert_uint_eq(now.complete, before->complete);
	ck_assert_int_eq(now.heard_ms, before->heard_ms);
	ck_assert_uint_eq(now.values, before->values);
	ck_assert_uint_eq(now.times, before->times);
}

/* How many datagrams were captured so far, all of them delivered when this returns. */
static size_t captured_and_delivered(struct vnet *v)
{
	size_t captured = vnet_captured(v);

	vnet_run(v, 5);
	return captured;
}

/* The last captured datagram that @from's worker sealed. */
static const uint8_t *last_of_worker(struct vnet *v, unsigned from, size_t *len)
{
	for (size_t i = vnet_captured(v); i-- > 0;) {
		struct datagram_header h;
		unsigned sender;
		const uint8_t *datagram = vnet_captured_at(v, i, len, &sender);

		if (sender == from && datagram_peek(datagram, *len, &h) == 0 && h.worker == 0)
			return datagram;
	}
	ck_abort_msg("nothing captured");
	return NULL;
}

/* Everything that 0 ever sent, given to 1 again. */
static void replay_all(struct vnet *v, unsigned from, unsigned to, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		unsigned sender;
		size_t len;
		const uint8_t *datagram = vnet_captured_at(v, i, &len, &sender);

		if (sender == from)
			vnet_inject(v, to, datagram, len);
	}
}

START_TEST(replays_change_nothing_and_are_counted)
{
	struct vnet *v = network(2, perfect);
	struct knowledge before;
	size_t count;

	vnet_capture(v);
	vnet_run(v, 1000);
	tell_run(v, 0, 0, 99, 10);
	vnet_run(v, 1000);
	count = captured_and_delivered(v);
	before = knowledge_of(v, 1, 0);
	replay_all(v, 0, 1, count);
	assert_unchanged(v, 1, 0, &before);
	ck_assert_uint_gt(vnet_counted(v, 1, COUNT_DATAGRAMS_REPLAYED), 20);
	vnet_run(v, 100);
	ck_assert_uint_eq(vnet_heard_count(v, 1, 0, 100), 100);
	vnet_destroy(v);
}
END_TEST

START_TEST(replays_change_nothing_at_a_receiver_that_has_just_restarted)
{
	struct vnet *v = network(2, perfect);
	struct knowledge before;
	size_t count;

	vnet_capture(v);
	vnet_run(v, 1000);
	tell_run(v, 0, 0, 99, 10);
	count = vnet_captured(v);
	vnet_set_way(v, 0, 1, WAY_CUT);
	vnet_restart(v, 1);
	before = knowledge_of(v, 1, 0);
	replay_all(v, 0, 1, count); /* sealed under the key that it was just given, and nothing proven yet */
	assert_unchanged(v, 1, 0, &before);
	ck_assert_int_eq(before.view.state, SENDER_UNPROVEN);
	ck_assert_uint_gt(vnet_counted(v, 1, COUNT_MESSAGES_UNPROVEN), 50);
	vnet_set_way(v, 0, 1, WAY_OPEN);
	vnet_run(v, 500);
	assert_state(v, 1, 0, SENDER_BELIEVED);
	before = knowledge_of(v, 1, 0);
	replay_all(v, 0, 1, count); /* and now it is */
	assert_unchanged(v, 1, 0, &before);
	vnet_destroy(v);
}
END_TEST

START_TEST(datagrams_of_an_old_boot_change_nothing_and_are_counted)
{
	struct vnet *v = network(2, perfect);
	struct knowledge before;
	size_t count;

	vnet_capture(v);
	vnet_run(v, 500);
	tell_run(v, 0, 0, 49, 1);
	count = vnet_captured(v);
	vnet_restart(v, 0);
	vnet_run(v, 1000);
	before = knowledge_of(v, 1, 0);
	replay_all(v, 0, 1, count);
	assert_unchanged(v, 1, 0, &before);
	ck_assert_uint_gt(vnet_counted(v, 1, COUNT_DATAGRAMS_OLD_BOOT), 10);
	vnet_destroy(v);
}
END_TEST

START_TEST(no_flipped_bit_is_believed)
{
	struct vnet *v = network(2, perfect);
	struct knowledge before;
	const uint8_t *datagram;
	size_t len;

	vnet_run(v, 500);
	vnet_set_way(v, 0, 1, WAY_CUT);
	vnet_capture(v);
	tell_run(v, 0, 0, 0, 5);
	datagram = last_of_worker(v, 0, &len);
	before = knowledge_of(v, 1, 0);
	for (size_t bit = 0; bit < len * 8; bit++) {
		uint8_t copy[DATAGRAM_MAX];

		memcpy(copy, datagram, len);
		copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
		vnet_inject(v, 1, copy, len);
		assert_unchanged(v, 1, 0, &before);
	}
	ck_assert_uint_ge(vnet_counted(v, 1, COUNT_DATAGRAMS_FORGED), (len - DATAGRAM_HEADER_LEN) * 8);
	vnet_inject(v, 1, datagram, len); /* and unhurt it is */
	ck_assert_uint_eq(vnet_heard(v, 1, 0, 0), 1);
	vnet_destroy(v);
}
END_TEST

START_TEST(no_truncated_or_lengthened_datagram_is_believed)
{
	struct vnet *v = network(2, perfect);
	uint8_t longer[DATAGRAM_MAX + 1] = { 0 };
	struct knowledge before;
	const uint8_t *datagram;
	size_t len;

	vnet_run(v, 500);
	vnet_set_way(v, 0, 1, WAY_CUT);
	vnet_capture(v);
	tell_run(v, 0, 0, 0, 5);
	before = knowledge_of(v, 1, 0);
	datagram = last_of_worker(v, 0, &len);
	memcpy(longer, datagram, len);
	for (size_t part = 0; part <= len + 1; part++) {
		if (part != len)
			vnet_inject(v, 1, longer, part);
		assert_unchanged(v, 1, 0, &before);
	}
	ck_assert_uint_eq(vnet_counted(v, 1, COUNT_DATAGRAMS_MALFORMED), DATAGRAM_HEADER_LEN + DATAGRAM_TAG_LEN);
	ck_assert_uint_gt(vnet_counted(v, 1, COUNT_DATAGRAMS_FORGED), 0);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_stranger_is_counted_and_changes_nothing)
{
	struct vnet *v = network(2, perfect), *other = network(2, perfect);
	unsigned from;
	size_t len;

	vnet_run(v, 500);
	vnet_restart(other, 0);
	vnet_capture(other);
	vnet_run(other, 500);
	for (size_t i = 0; i < vnet_captured(other); i++) {
		struct knowledge before = knowledge_of(v, 1, 0);

		vnet_inject(v, 1, vnet_captured_at(other, i, &len, &from), len);
		if (from == 0)
			assert_unchanged(v, 1, 0, &before);
	}
	ck_assert_uint_gt(vnet_counted(v, 1, COUNT_DATAGRAMS_KEY_UNKNOWN), 5);
	vnet_destroy(other);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_heartbeat_held_back_renews_nothing)
{
	struct vnet *v = network(2, perfect);
	int64_t heard_ms;
	unsigned from;
	size_t len, held;

	vnet_run(v, 1000);
	vnet_set_way(v, 0, 1, WAY_CUT);
	vnet_capture(v);
	vnet_run(v, 250); /* some heartbeats, held back by somebody on the way */
	held = vnet_captured(v);
	vnet_run(v, 10000);
	heard_ms = broadcast_receiver_view(vnet_receiver(v, 1), 0).heard_ms;
	for (size_t i = 0; i < held; i++) {
		const uint8_t *datagram = vnet_captured_at(v, i, &len, &from);

		if (from == 0)
			vnet_inject(v, 1, datagram, len);
	}
	ck_assert_int_eq(broadcast_receiver_view(vnet_receiver(v, 1), 0).heard_ms, heard_ms);
	ck_assert_uint_gt(vnet_counted(v, 1, COUNT_MESSAGES_STALE), 0);
	vnet_destroy(v);
}
END_TEST

START_TEST(an_object_held_back_is_known_to_be_old)
{
	struct vnet *v = network(2, perfect);
	uint8_t held_back[DATAGRAM_MAX];
	const uint8_t *datagram;
	size_t len;

	vnet_run(v, 1000);
	vnet_set_way(v, 0, 1, WAY_CUT);
	vnet_capture(v);
	tell_run(v, 0, 0, 0, 5);
	datagram = last_of_worker(v, 0, &len);
	memcpy(held_back, datagram, len);
	vnet_run(v, 60000);
	vnet_inject(v, 1, held_back, len);
	ck_assert_uint_eq(vnet_heard(v, 1, 0, 0), 1);
	ck_assert_int_ge(vnet_age_ms(v, 1, 0, 0), 60000);
	ck_assert_int_lt(vnet_age_ms(v, 1, 0, 0), 60200);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_repeated_object_is_as_old_as_it_is)
{
	struct vnet *v = proven(2, perfect);

	vnet_set_way(v, 0, 1, WAY_CUT);
	tell_run(v, 0, 0, 0, 5000);
	vnet_set_way(v, 0, 1, WAY_OPEN);
	vnet_run(v, 1500);
	ck_assert_uint_eq(vnet_heard(v, 1, 0, 0), 1);
	ck_assert_int_ge(vnet_age_ms(v, 1, 0, 0), 5000);
	vnet_destroy(v);
}
END_TEST

START_TEST(a_proof_of_another_challenge_proves_nothing)
{
	struct vnet *v = network(2, perfect);
	struct knowledge before;
	size_t count;

	vnet_capture(v);
	vnet_run(v, 500); /* has proofs that 0 gave to 1 */
	count = vnet_captured(v);
	vnet_set_way(v, 0, 1, WAY_CUT);
	vnet_restart(v, 1);
	vnet_run(v, 100); /* 1 asks anew */
	before = knowledge_of(v, 1, 0);
	replay_all(v, 0, 1, count);
	assert_unchanged(v, 1, 0, &before);
	ck_assert_int_eq(before.view.state, SENDER_UNPROVEN);
	vnet_destroy(v);
}
END_TEST

START_TEST(replays_of_the_old_key_change_nothing_after_a_rotation)
{
	struct vnet *v = network(2, perfect);
	struct knowledge before;
	size_t count;

	vnet_capture(v);
	vnet_run(v, 500);
	tell_run(v, 0, 0, 49, 1);
	count = vnet_captured(v);
	vnet_roll_key(v, 0, 5);
	tell_run(v, 0, 50, 99, 1);
	vnet_run(v, 5);
	before = knowledge_of(v, 1, 0);
	replay_all(v, 0, 1, count);
	assert_unchanged(v, 1, 0, &before);
	vnet_destroy(v);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, replays_change_nothing_and_are_counted);
	tcase_add_test(tcase, replays_change_nothing_at_a_receiver_that_has_just_restarted);
	tcase_add_test(tcase, datagrams_of_an_old_boot_change_nothing_and_are_counted);
	tcase_add_test(tcase, no_flipped_bit_is_believed);
	tcase_add_test(tcase, no_truncated_or_lengthened_datagram_is_believed);
	tcase_add_test(tcase, a_stranger_is_counted_and_changes_nothing);
	tcase_add_test(tcase, a_heartbeat_held_back_renews_nothing);
	tcase_add_test(tcase, an_object_held_back_is_known_to_be_old);
	tcase_add_test(tcase, a_repeated_object_is_as_old_as_it_is);
	tcase_add_test(tcase, a_proof_of_another_challenge_proves_nothing);
	tcase_add_test(tcase, replays_of_the_old_key_change_nothing_after_a_rotation);
}

UNIT(broadcast_attacks)
{
	return run_suite("broadcast_attacks", add);
}
