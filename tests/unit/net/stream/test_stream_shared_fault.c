/* test_stream_shared_fault.c: facts of fault rules on streams whose bytes go through shared memory. */
#include <stdlib.h>

#include "net/points/fault.h"
#include "tests/unit/net/rules.h"
#include "tests/unit/net/shared_pair.h"
#include "tests/unit/unit.h"

#define LEN ((size_t)100000)

static uint8_t bulk[LEN];
static struct owner near, far;

static void open_both(const char *rules)
{
	pattern(bulk, sizeof bulk, 0);
	shared_pair_open(&near, &far);
	rules_set("a1", rules);
	stream_set_fault(&near.s, "link", "a2");
}

static void finish_both(void)
{
	fault_stop();
	shared_pair_finish(&near, &far);
}

static void wait_ms(unsigned ms)
{
	uint64_t until = now_ms() + ms;

	wait_until(now_ms() > until);
}

START_TEST(delayed_bytes_come_late_and_in_order)
{
	open_both("link.write delay 60 peer a2\nlink.read delay 60 peer a2\n");
	uint64_t begin = now_ms();
	for (size_t sent = 0; sent < LEN; sent += 5000) {
		stream_write(&near.s, bulk + sent, 5000);
		turns(1);
	}
	wait_until(far.got_len == LEN);
	assert_pattern(far.got, LEN, 0);
	ck_assert_uint_ge(now_ms() - begin, 50);
	begin = now_ms();
	stream_write(&far.s, bulk, LEN);
	wait_until(near.got_len == LEN);
	assert_pattern(near.got, LEN, 0);
	ck_assert_uint_ge(now_ms() - begin, 50);
	finish_both();
}
END_TEST

START_TEST(dropping_rule_holds_bytes_until_it_is_gone)
{
	open_both("link.write drop peer a2\nlink.read drop peer a2\n");
	stream_write(&near.s, bulk, LEN);
	stream_write(&far.s, bulk, LEN);
	wait_ms(100);
	ck_assert_uint_eq(far.got_len + near.got_len, 0);
	rules_write("");
	wait_until(far.got_len == LEN && near.got_len == LEN);
	assert_pattern(far.got, LEN, 0);
	assert_pattern(near.got, LEN, 0);
	finish_both();
}
END_TEST

START_TEST(held_output_may_outgrow_the_ring)
{
	open_both("link.write drop peer a2\n");
	for (unsigned i = 0; i < 5; i++)
		stream_write(&near.s, bulk, LEN);
	wait_ms(50);
	ck_assert_uint_eq(far.got_len, 0);
	rules_write("");
	wait_until(far.got_len == 5 * LEN);
	for (unsigned i = 0; i < 5; i++)
		assert_pattern(far.got + i * LEN, LEN, 0);
	finish_both();
}
END_TEST

START_TEST(held_bytes_come_before_the_end)
{
	open_both("link.read delay 40 peer a2\n");
	stream_write(&far.s, bulk, LEN);
	stream_flush(&far.s);
	stream_close(&far.s);
	wait_until(near.told[OWNER_END]);
	ck_assert_int_eq(near.end, STREAM_EOF);
	ck_assert_uint_eq(near.got_len, LEN);
	assert_pattern(near.got, LEN, 0);
	finish_both();
}
END_TEST

START_TEST(fin_waits_for_held_bytes)
{
	open_both("link.write drop peer a2\n");
	stream_write(&near.s, bulk, LEN);
	stream_shutdown(&near.s);
	wait_ms(50);
	ck_assert_uint_eq(far.told[OWNER_END], 0);
	rules_write("");
	wait_until(far.told[OWNER_END]);
	ck_assert_int_eq(far.end, STREAM_EOF);
	ck_assert_uint_eq(far.got_len, LEN);
	finish_both();
}
END_TEST

START_TEST(part_of_the_output_goes_and_the_rest_waits)
{
	open_both("link.part drop peer a2\n");
	stream_write(&near.s, bulk, LEN);
	wait_until(far.got_len > 0);
	stream_write(&near.s, bulk, LEN);
	wait_ms(100);
	ck_assert_uint_eq(far.got_len, LEN / 2);
	rules_write("");
	wait_until(far.got_len == 2 * LEN);
	assert_pattern(far.got, LEN, 0);
	assert_pattern(far.got + LEN, LEN, 0);
	finish_both();
}
END_TEST

START_TEST(small_output_has_no_part)
{
	open_both("link.part drop peer a2\n");
	stream_write(&near.s, bulk, 1000);
	wait_until(far.got_len == 1000);
	finish_both();
}
END_TEST

START_TEST(bell_that_is_not_rung_leaves_the_reader_asleep)
{
	open_both("");
	stream_write(&near.s, bulk, 10);
	wait_until(far.got_len == 10); /* and sleeps from here on */
	turns(3);
	rules_write("link.bell drop peer a2\n");
	wait_until(fault_active());
	stream_write(&near.s, bulk + 10, 1000);
	wait_ms(100);
	ck_assert_uint_eq(far.got_len, 10);
	ck_assert_uint_eq(stream_pending(&near.s), 0); /* it is in the ring */
	rules_write("");
	wait_until(far.got_len == 1010);
	assert_pattern(far.got, 1010, 0);
	finish_both();
}
END_TEST

START_TEST(rule_for_another_peer_changes_nothing)
{
	open_both("link.write drop peer a3\nlink.read cut peer a3\n");
	stream_write(&near.s, bulk, LEN);
	stream_write(&far.s, bulk, LEN);
	wait_until(far.got_len == LEN && near.got_len == LEN);
	finish_both();
}
END_TEST

START_TEST(cut_write_ends_both_sides)
{
	open_both("link.write cut\n");
	stream_write(&near.s, "never", 5);
	wait_until(near.told[OWNER_END]);
	ck_assert_int_eq(near.end, STREAM_RESET);
	stream_close(&near.s);
	wait_until(far.told[OWNER_END]);
	ck_assert_uint_eq(far.got_len, 0);
	finish_both();
}
END_TEST

START_TEST(cut_read_ends_both_sides)
{
	open_both("link.read cut\n");
	stream_write(&far.s, "never", 5);
	wait_until(near.told[OWNER_END]);
	ck_assert_int_eq(near.end, STREAM_RESET);
	ck_assert_uint_eq(near.got_len, 0);
	stream_close(&near.s);
	wait_until(far.told[OWNER_END]);
	finish_both();
}
END_TEST

START_TEST(held_stream_can_be_stopped_started_and_closed)
{
	open_both("link.write delay 40\nlink.read delay 40\n");
	stream_write(&far.s, bulk, 1000);
	turns(5);
	stream_read_stop(&near.s);
	wait_ms(80);
	ck_assert_uint_eq(near.got_len, 0);
	stream_read_start(&near.s);
	wait_until(near.got_len == 1000);
	stream_write(&near.s, bulk, 1000);
	turns(3);
	owner_finish(&near);
	wait_ms(80);
	ck_assert_uint_eq(far.got_len, 0);
	finish_both();
}
END_TEST

UNIT(stream_shared_fault)
{
	const TTest *facts[] = {
		delayed_bytes_come_late_and_in_order,
		dropping_rule_holds_bytes_until_it_is_gone,
		held_output_may_outgrow_the_ring,
		held_bytes_come_before_the_end,
		fin_waits_for_held_bytes,
		part_of_the_output_goes_and_the_rest_waits,
		small_output_has_no_part,
		bell_that_is_not_rung_leaves_the_reader_asleep,
		rule_for_another_peer_changes_nothing,
		cut_write_ends_both_sides,
		cut_read_ends_both_sides,
		held_stream_can_be_stopped_started_and_closed,
	};
	return worker_suite_run("stream_shared_fault", facts, FACTS_LEN(facts));
}
