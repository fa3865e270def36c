/* test_stream_write.c: facts of output: collecting, flushing, waiting for the kernel, FIN. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/error.h"
#include "tests/unit/net/owner.h"
#include "tests/unit/net/segments.h"
#include "tests/unit/unit.h"

#define BULK ((size_t)4 << 20)

static uint8_t bulk[BULK], back[BULK];

START_TEST(bytes_go_in_order)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		size_t sent = 0;
		shrink_buffers(o.s.uv.tcp.io_watcher.fd);
		pattern(bulk, sizeof bulk, 0);
		for (unsigned i = 0; sent < 1000000; i++) {
			size_t len = 1 + (i * 7919) % 40000;
			ck_assert_int_eq(stream_write(&o.s, bulk + sent, len), 0);
			sent += len;
		}
		ck_assert_uint_gt(stream_pending(&o.s), 0);
		read_exactly(peer, back, sent);
		assert_pattern(back, sent, 0);
		wait_until(o.written == sent);
		ck_assert_uint_eq(stream_pending(&o.s), 0);
		close(peer);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(output_is_flushed_at_the_end_of_the_turn_in_one_piece)
{
	struct owner o;
	int end, peer = owner_open(&o, OVER_TCP4);
	stream_write(&o.s, "one ", 4);
	stream_write(&o.s, "two ", 4);
	stream_write(&o.s, "three", 5);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 0);
	turns(1);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 13);
	ck_assert_uint_eq(o.told[OWNER_FLUSH], 1);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(output_is_flushed_at_once_at_the_mark)
{
	struct owner o;
	int end, peer = owner_open(&o, OVER_TCP4);
	stream_set_flush_mark(&o.s, 1000);
	stream_write(&o.s, bulk, 999);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 0);
	stream_write(&o.s, bulk, 1);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 1000);
	ck_assert_uint_eq(o.told[OWNER_WRITTEN], 0); /* the loop reports it */
	wait_until(o.told[OWNER_WRITTEN]);
	ck_assert_uint_eq(o.written, 1000);
	close(peer);
	owner_finish(&o);
}
END_TEST

/* Of an owner that adds nothing to its output. */
static int open_plain(struct owner *o, enum transport over)
{
	static struct stream_ops plain;
	int peer = owner_open(o, over);

	plain = owner_ops;
	plain.on_flush = NULL;
	o->s.ops = &plain;
	return peer;
}

START_TEST(a_write_that_reaches_the_mark_is_made_from_where_it_stands)
{
	struct owner o;
	int end, peer = open_plain(&o, OVER_TCP4);
	size_t len;
	pattern(bulk, 3000, 0);
	stream_set_flush_mark(&o.s, 1000);
	stream_write(&o.s, bulk, 999);
	stream_write(&o.s, bulk + 999, 1500);
	ck_assert_ptr_null(stream_output(&o.s, &len));
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 2499);
	assert_pattern(back, 2499, 0);
	stream_write(&o.s, bulk, 1000);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 1000);
	ck_assert_uint_eq(o.told[OWNER_WRITTEN], 0); /* the loop reports it */
	wait_until(o.written == 3499);
	close(peer);
	owner_finish(&o);
}
END_TEST

/* The kernel takes all of it, a part of the bytes in front, or nothing. */
START_TEST(the_rest_that_the_kernel_does_not_take_is_kept_in_order)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = open_plain(&o, over);
		size_t sent = 0;
		shrink_buffers(o.s.uv.tcp.io_watcher.fd);
		pattern(bulk, sizeof bulk, 0);
		while (sent + 400000 < BULK) {
			size_t waits = sent % 7 * 5000;
			stream_set_flush_mark(&o.s, UINT32_MAX);
			ck_assert_int_eq(stream_write(&o.s, bulk + sent, waits), 0);
			stream_set_flush_mark(&o.s, 100000);
			ck_assert_int_eq(stream_write(&o.s, bulk + sent + waits, 300001 - waits), 0);
			sent += 300001;
			ck_assert_uint_gt(stream_pending(&o.s), 0);
			read_exactly(peer, back + sent - 300001, 300001);
			wait_until(stream_pending(&o.s) == 0);
		}
		assert_pattern(back, sent, 0);
		wait_until(o.written == sent);
		close(peer);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(a_connection_that_breaks_while_much_is_written_is_told_from_the_loop)
{
	struct owner o;
	int peer = open_plain(&o, OVER_TCP4);
	reset(OVER_TCP4, peer);
	ck_assert_int_eq(stream_write(&o.s, bulk, 300000), 0);
	ck_assert_int_eq(stream_write(&o.s, bulk, 300000), CSSL_E_STATE);
	ck_assert_uint_eq(o.told[OWNER_END], 0);
	wait_until(o.told[OWNER_END]);
	ck_assert_int_eq(o.end, STREAM_RESET);
	owner_finish(&o);
}
END_TEST

START_TEST(one_write_waits_for_the_kernel_and_nothing_is_flushed_meanwhile)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	shrink_buffers(o.s.uv.tcp.io_watcher.fd);
	pattern(bulk, sizeof bulk, 0);
	stream_write(&o.s, bulk, 3000000);
	wait_until(o.s.writes == 1);
	unsigned flushes = o.told[OWNER_FLUSH];
	for (unsigned i = 0; i < 10; i++) {
		stream_write(&o.s, bulk + 3000000 + i * 100, 100);
		stream_flush(&o.s);
		turns(1);
	}
	ck_assert_uint_eq(o.s.writes, 1);
	ck_assert_uint_eq(o.told[OWNER_FLUSH], flushes);
	read_exactly(peer, back, 3001000);
	assert_pattern(back, 3001000, 0);
	ck_assert_uint_gt(o.told[OWNER_FLUSH], flushes);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(reserved_room_is_written_in_place)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	size_t len, total = 0;
	pattern(bulk, sizeof bulk, 0);
	for (size_t step = 1; step < 30000; step += 1777) {
		uint8_t *room = stream_reserve(&o.s, step + 100);
		ck_assert_ptr_nonnull(room);
		memcpy(room, bulk + total, step);
		stream_commit(&o.s, step);
		total += step;
	}
	stream_flush(&o.s);
	ck_assert_ptr_null(stream_output(&o.s, &len));
	ck_assert_uint_eq(len, 0);
	read_exactly(peer, back, total);
	assert_pattern(back, total, 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void add_tail(struct owner *o, enum owner_event event)
{
	size_t len;
	uint8_t *out = stream_output(&o->s, &len);

	if (event != OWNER_FLUSH || len == 0)
		return;
	out[0] = (uint8_t)len; /* in place, as a seal does */
	ck_assert_ptr_nonnull(stream_reserve(&o->s, 70000));
	out = stream_output(&o->s, &len);
	memcpy(out + len, "tail", 4);
	stream_commit(&o->s, 4);
}

START_TEST(owner_may_add_and_change_just_before_a_flush)
{
	struct owner o;
	char got[9];
	int peer = owner_open(&o, OVER_TCP4);
	o.react = add_tail;
	stream_write(&o.s, "?body", 5);
	stream_shutdown(&o.s);
	read_exactly(peer, got, 9);
	ck_assert_mem_eq(got, "\5bodytail", 9);
	ck_assert_int_eq(read_to_end(peer), 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void write_more(struct owner *o, enum owner_event event)
{
	if (event == OWNER_WRITTEN && o->written < BULK)
		stream_write(&o->s, bulk, 50000);
}

START_TEST(producer_driven_by_written_bytes_does_not_starve_reading)
{
	struct owner o, other;
	int peer = owner_open(&o, OVER_UNIX), other_peer = owner_open(&other, OVER_UNIX), end;
	o.react = write_more;
	stream_write(&o.s, bulk, 50000);
	write_all(other_peer, "hello", 5);
	while (other.got_len < 5) {
		while (read_some(peer, back, sizeof back, &end) > 0)
			;
		ck_assert_uint_lt(o.written, BULK / 2);
		turns(1);
	}
	close(peer);
	close(other_peer);
	owner_finish(&o);
	owner_finish(&other);
}
END_TEST

START_TEST(idle_streams_hold_no_buffer)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	shrink_buffers(o.s.uv.tcp.io_watcher.fd);
	stream_write(&o.s, bulk, 1000000);
	write_all(peer, "abc", 3);
	read_exactly(peer, back, 1000000);
	wait_until(o.written == 1000000 && o.got_len == 3);
	ck_assert_ptr_null(o.s.out.data);
	ck_assert_ptr_null(o.s.kept.data);
	ck_assert_uint_eq(o.s.writes, 0);
	ck_assert_ptr_nonnull(stream_reserve(&o.s, 100)); /* and commits nothing */
	turns(2);
	ck_assert_ptr_null(o.s.out.data);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void assert_fin_follows(enum transport over, uint32_t mark)
{
	struct owner o;
	int peer = owner_open(&o, over), end = 0;
	size_t len = 0;

	shrink_buffers(o.s.uv.tcp.io_watcher.fd);
	stream_set_flush_mark(&o.s, mark);
	pattern(bulk, 500000, 0);
	stream_write(&o.s, bulk, 500000);
	stream_shutdown(&o.s);
	stream_shutdown(&o.s);
	ck_assert_int_eq(stream_write(&o.s, "x", 1), CSSL_E_STATE);
	while (!end) {
		ssize_t n = read_some(peer, back + len, sizeof back - len, &end);
		ck_assert_int_ge(n, 0);
		len += (size_t)n;
		turns(1);
	}
	ck_assert_uint_eq(len, 500000);
	assert_pattern(back, len, 0);
	ck_assert_int_eq(o.s.state, STREAM_SHUT);
	close(peer);
	owner_finish(&o);
}

START_TEST(fin_follows_pending_output)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		assert_fin_follows(over, STREAM_FLUSH_MARK_DEFAULT);
		assert_fin_follows(over, UINT32_MAX); /* flushed only when the FIN is due already */
	}
}
END_TEST

START_TEST(fin_and_the_last_output_share_a_segment)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	const unsigned before = segments_in(peer);

	stream_write(&o.s, "bye", 3);
	stream_shutdown(&o.s);
	read_exactly(peer, back, 3);
	ck_assert_int_eq(read_to_end(peer), 0);
	ck_assert_uint_eq(segments_in(peer), before + 1);
	close(peer);
	owner_finish(&o);
}
END_TEST

UNIT(stream_write)
{
	const TTest *facts[] = {
		bytes_go_in_order,
		output_is_flushed_at_the_end_of_the_turn_in_one_piece,
		output_is_flushed_at_once_at_the_mark,
		a_write_that_reaches_the_mark_is_made_from_where_it_stands,
		the_rest_that_the_kernel_does_not_take_is_kept_in_order,
		a_connection_that_breaks_while_much_is_written_is_told_from_the_loop,
		one_write_waits_for_the_kernel_and_nothing_is_flushed_meanwhile,
		reserved_room_is_written_in_place,
		owner_may_add_and_change_just_before_a_flush,
		producer_driven_by_written_bytes_does_not_starve_reading,
		idle_streams_hold_no_buffer,
		fin_follows_pending_output,
		fin_and_the_last_output_share_a_segment,
	};
	return worker_suite_run("stream_write", facts, FACTS_LEN(facts));
}
