/* test_stream_fault.c: facts of fault rules on streams. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/points/fault.h"
#include "tests/unit/net/owner.h"
#include "tests/unit/net/rules.h"
#include "tests/unit/unit.h"

static uint8_t bulk[300000], back[300000];

START_TEST(delayed_bytes_come_late_and_in_order)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	rules_set("a1", "link.write delay 60 peer a2\nlink.read delay 60 peer a2\n");
	stream_set_fault(&o.s, "link", "a2");
	pattern(bulk, sizeof bulk, 0);
	uint64_t begin = now_ms();
	for (size_t sent = 0; sent < 100000; sent += 5000) {
		stream_write(&o.s, bulk + sent, 5000);
		turns(1);
	}
	read_exactly(peer, back, 100000);
	assert_pattern(back, 100000, 0);
	ck_assert_uint_ge(now_ms() - begin, 50);
	begin = now_ms();
	write_all(peer, bulk, 100000);
	wait_until(o.got_len == 100000);
	assert_pattern(o.got, 100000, 0);
	ck_assert_uint_ge(now_ms() - begin, 50);
	fault_stop();
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(dropping_rule_holds_bytes_until_it_is_gone)
{
	struct owner o;
	char got[7];
	int end, peer = owner_open(&o, OVER_UNIX);
	rules_set("a1", "peer.write drop on a1 peer a2\npeer.read drop on a1 peer a2\n");
	stream_set_fault(&o.s, "peer", "a2");
	stream_write(&o.s, "outside", 7);
	stream_shutdown(&o.s);
	write_all(peer, "inside", 6);
	uint64_t until = now_ms() + 100;
	wait_until(now_ms() > until);
	ck_assert_int_eq(read_some(peer, got, 7, &end), 0);
	ck_assert(!end);
	ck_assert_uint_eq(o.got_len, 0);
	rules_write("");
	read_exactly(peer, got, 7);
	wait_until(o.got_len == 6);
	ck_assert_int_eq(read_to_end(peer), 0);
	fault_stop();
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(dropping_rule_holds_much_at_once_too)
{
	struct stream_ops plain = owner_ops;
	struct owner o;
	int end, peer = owner_open(&o, OVER_UNIX);
	plain.on_flush = NULL;
	o.s.ops = &plain;
	rules_set("a1", "peer.write drop on a1 peer a2\n");
	stream_set_fault(&o.s, "peer", "a2");
	pattern(bulk, sizeof bulk, 0);
	ck_assert_int_eq(stream_write(&o.s, bulk, 100000), 0);
	uint64_t until = now_ms() + 100;
	wait_until(now_ms() > until);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 0);
	rules_write("");
	read_exactly(peer, back, 100000);
	assert_pattern(back, 100000, 0);
	fault_stop();
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(part_of_the_output_goes_and_the_rest_waits)
{
	struct owner o;
	int end, peer = owner_open(&o, OVER_TCP4);
	rules_set("a1", "link.part drop peer a2\n");
	stream_set_fault(&o.s, "link", "a2");
	pattern(bulk, sizeof bulk, 0);
	stream_write(&o.s, bulk, 10000);
	read_exactly(peer, back, 5000);
	uint64_t until = now_ms() + 100;
	wait_until(now_ms() > until);
	ck_assert_int_eq(read_some(peer, (char *)back, 1, &end), 0);
	rules_write("");
	read_exactly(peer, back + 5000, 5000);
	assert_pattern(back, 10000, 0);
	fault_stop();
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(rule_for_another_peer_changes_nothing)
{
	struct owner o;
	int peer = owner_open(&o, OVER_UNIX);
	rules_set("a1", "peer.write drop peer a3\npeer.read cut peer a3\n");
	stream_set_fault(&o.s, "peer", "a2");
	stream_write(&o.s, "through", 7);
	write_all(peer, "through", 7);
	read_exactly(peer, back, 7);
	wait_until(o.got_len == 7);
	fault_stop();
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(cut_write_resets_both_sides)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	rules_set("a1", "link.write cut\n");
	stream_set_fault(&o.s, "link", "a2");
	stream_write(&o.s, "never", 5);
	wait_until(o.told[OWNER_END]);
	ck_assert_int_eq(o.end, STREAM_RESET);
	stream_close(&o.s);
	ck_assert_int_eq(read_to_end(peer), -1);
	fault_stop();
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(cut_read_resets_both_sides)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	rules_set("a1", "link.read cut\n");
	stream_set_fault(&o.s, "link", "a2");
	write_all(peer, "never", 5);
	wait_until(o.told[OWNER_END]);
	ck_assert_int_eq(o.end, STREAM_RESET);
	ck_assert_uint_eq(o.got_len, 0);
	stream_close(&o.s);
	ck_assert_int_eq(read_to_end(peer), -1);
	fault_stop();
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(fault_name_given_before_opening_holds_while_connecting)
{
	struct sockaddr_storage to;
	struct owner o;
	int listening = socket_listen(OVER_UNIX, &to);
	rules_set("a1", "peer.write cut\n");
	owner_init(&o);
	stream_set_fault(&o.s, "peer", "a2");
	ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL), 0);
	stream_write(&o.s, "never", 5);
	wait_until(o.told[OWNER_END]);
	ck_assert_int_eq(o.end, STREAM_RESET);
	owner_finish(&o);

	owner_init(&o);
	stream_set_fault(&o.s, "peer", "a2");
	ck_assert_int_eq(stream_open_fd(&o.s, w, &owner_ops, -1), UV_EBADF); /* forgets it */
	owner_finish(&o);
	close(listening);
	fault_stop();
}
END_TEST

START_TEST(held_stream_can_be_stopped_started_and_closed)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	rules_set("a1", "link.write delay 40\nlink.read delay 40\n");
	stream_set_fault(&o.s, "link", "a2");
	write_all(peer, "held", 4);
	turns(5);
	stream_read_stop(&o.s);
	uint64_t until = now_ms() + 80;
	wait_until(now_ms() > until);
	ck_assert_uint_eq(o.got_len, 0);
	stream_read_start(&o.s);
	wait_until(o.got_len == 4);
	stream_write(&o.s, "held", 4);
	turns(3);
	owner_finish(&o);
	until = now_ms() + 80;
	wait_until(now_ms() > until);
	fault_stop();
	close(peer);
}
END_TEST

UNIT(stream_fault)
{
	const TTest *facts[] = {
		delayed_bytes_come_late_and_in_order,
		dropping_rule_holds_bytes_until_it_is_gone,
		dropping_rule_holds_much_at_once_too,
		part_of_the_output_goes_and_the_rest_waits,
		rule_for_another_peer_changes_nothing,
		cut_write_resets_both_sides,
		cut_read_resets_both_sides,
		fault_name_given_before_opening_holds_while_connecting,
		held_stream_can_be_stopped_started_and_closed,
	};
	return worker_suite_run("stream_fault", facts, FACTS_LEN(facts));
}
