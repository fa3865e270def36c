/* test_stream_read.c: facts of input: reading, keeping, stopping, ends. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/error.h"
#include "tests/unit/net/owner.h"
#include "tests/unit/unit.h"

#define BULK ((size_t)4 << 20)

static uint8_t bulk[BULK];

START_TEST(bytes_come_in_order)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		pattern(bulk, sizeof bulk, 0);
		write_all(peer, bulk, sizeof bulk);
		wait_until(o.got_len == sizeof bulk);
		assert_pattern(o.got, o.got_len, 0);
		close(peer);
		wait_until(o.told[OWNER_END]);
		ck_assert_int_eq(o.end, STREAM_EOF);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(unused_bytes_stand_in_front_of_the_next)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.use_max = 0;
	write_all(peer, "abc", 3);
	wait_until(o.told[OWNER_DATA] == 1);
	ck_assert_uint_eq(stream_kept(&o.s), 3);
	ck_assert_mem_eq(stream_kept_data(&o.s), "abc", 3);
	o.use_max = SIZE_MAX;
	write_all(peer, "def", 3);
	wait_until(o.told[OWNER_DATA] == 2);
	ck_assert_uint_eq(o.data_len, 6);
	ck_assert_mem_eq(o.got, "abcdef", 6);
	ck_assert_uint_eq(stream_kept(&o.s), 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(partly_used_input_is_never_lost_or_doubled)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		o.use_max = 600;
		size_t sent = 0;
		pattern(bulk, sizeof bulk, 0);
		for (unsigned i = 0; i < 200; i++) {
			write_all(peer, bulk + sent, 997);
			sent += 997;
			turns(1);
			if (i % 3 == 0)
				stream_read_again(&o.s);
		}
		while (o.got_len < sent) {
			turn();
			stream_read_again(&o.s);
		}
		assert_pattern(o.got, sent, 0);
		close(peer);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(kept_bytes_come_again_when_asked_for)
{
	struct owner o;
	int peer = owner_open(&o, OVER_UNIX);
	o.use_max = 1;
	write_all(peer, "xyz", 3);
	wait_until(o.told[OWNER_DATA] == 1);
	stream_read_again(&o.s);
	ck_assert_uint_eq(o.told[OWNER_DATA], 2);
	stream_read_again(&o.s);
	ck_assert_mem_eq(o.got, "xyz", 3);
	stream_read_again(&o.s); /* nothing is kept: no call */
	ck_assert_uint_eq(o.told[OWNER_DATA], 3);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void stop_reading(struct owner *o, enum owner_event event)
{
	if (event == OWNER_DATA)
		stream_read_stop(&o->s);
}

START_TEST(stopped_stream_gets_nothing_more)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		o.react = stop_reading;
		write_all(peer, "one", 3);
		wait_until(o.told[OWNER_DATA] == 1);
		write_all(peer, "two", 3);
		close(peer);
		turns(20);
		ck_assert_uint_eq(o.told[OWNER_DATA], 1);
		ck_assert_uint_eq(o.told[OWNER_END], 0);
		o.react = NULL;
		stream_read_start(&o.s);
		wait_until(o.told[OWNER_END]);
		ck_assert_mem_eq(o.got, "onetwo", 6);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(start_delivers_what_a_stopping_owner_left)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.react = stop_reading;
	o.use_max = 1;
	write_all(peer, "abc", 3);
	wait_until(o.told[OWNER_DATA] == 1);
	o.react = NULL;
	o.use_max = SIZE_MAX;
	stream_read_start(&o.s);
	ck_assert_uint_eq(o.told[OWNER_DATA], 1); /* not called from within the call */
	wait_until(o.told[OWNER_DATA] == 2);
	ck_assert_mem_eq(o.got, "abc", 3);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void ask_again(struct owner *o, enum owner_event event)
{
	if (event == OWNER_DATA)
		stream_read_again(&o->s);
}

START_TEST(asking_again_from_within_on_data_does_not_nest)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.react = ask_again;
	o.use_max = 2;
	write_all(peer, "abcd", 4);
	wait_until(o.told[OWNER_DATA] == 1);
	stream_read_again(&o.s);
	ck_assert_uint_eq(o.told[OWNER_DATA], 2);
	ck_assert_mem_eq(o.got, "abcd", 4);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(bytes_put_back_come_first)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	ck_assert_int_eq(stream_keep(&o.s, "middle-", 7), 0);
	ck_assert_int_eq(stream_keep(&o.s, "first-", 6), 0);
	write_all(peer, "last", 4);
	wait_until(o.got_len == 17);
	ck_assert_mem_eq(o.got, "first-middle-last", 17);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(bytes_put_back_come_without_any_new_ones)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	ck_assert_int_eq(stream_keep(&o.s, "early", 5), 0);
	wait_until(o.got_len == 5);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(an_owner_that_uses_nothing_is_ended_at_the_buffer_s_size)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.use_max = 0;
	while (!o.told[OWNER_END]) {
		(void)!write(peer, bulk, 65536);
		turn();
	}
	ck_assert_int_eq(o.end, STREAM_ERROR);
	ck_assert_int_eq(o.end_error, UV_ENOBUFS);
	ck_assert_uint_eq(o.data_max, WORKER_READ_BUFFER_LEN);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(one_read_a_turn_and_no_more_than_the_read_size)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	stream_set_read_max(&o.s, 10000);
	write_all(peer, bulk, 60000);
	wait_until(o.told[OWNER_DATA]);
	while (o.got_len < 60000) {
		unsigned before = o.told[OWNER_DATA];
		turns(1);
		ck_assert_uint_le(o.told[OWNER_DATA], before + 1);
	}
	ck_assert_uint_le(o.data_max, 10000);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(a_sender_without_end_does_not_starve_another)
{
	struct owner loud, quiet;
	int loud_peer = owner_open(&loud, OVER_UNIX), quiet_peer = owner_open(&quiet, OVER_UNIX);
	int big = 4 << 20;
	setsockopt(loud_peer, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof big);
	(void)!write(loud_peer, bulk, sizeof bulk);
	write_all(quiet_peer, "hello", 5);
	size_t loud_before = loud.got_len;
	wait_until(quiet.got_len == 5);
	ck_assert_uint_le(loud.got_len - loud_before, 2 * WORKER_READ_BUFFER_LEN);
	close(loud_peer);
	close(quiet_peer);
	owner_finish(&loud);
	owner_finish(&quiet);
}
END_TEST

/* Ends */

START_TEST(data_before_a_reset_is_not_taken_for_a_whole)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		stream_write(&o.s, "unread", 6); /* makes a UNIX close a reset */
		turns(2);
		write_all(peer, "half an answ", 12);
		reset(over, peer);
		wait_until(o.told[OWNER_END]);
		ck_assert_int_eq(o.end, STREAM_RESET);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(bytes_before_a_failed_write_are_delivered_and_then_the_reset)
{
	struct owner o;
	int peer = owner_open(&o, OVER_UNIX);
	stream_read_stop(&o.s);
	write_all(peer, "last words", 10);
	close(peer);
	ck_assert_int_eq(stream_write(&o.s, "to nobody", 9), 0);
	stream_read_start(&o.s);
	wait_until(o.told[OWNER_END]);
	ck_assert_mem_eq(o.got, "last words", 10);
	ck_assert_int_eq(o.end, STREAM_RESET);
	ck_assert_uint_eq(o.told[OWNER_END], 1);
	ck_assert_uint_eq(stream_pending(&o.s), 0);
	owner_finish(&o);
}
END_TEST

START_TEST(a_failed_write_of_a_stopped_stream_is_told)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		stream_read_stop(&o.s);
		reset(over, peer);
		while (!o.told[OWNER_END]) {
			stream_write(&o.s, "x", 1);
			turn();
		}
		ck_assert_int_eq(o.end, STREAM_RESET);
		ck_assert_int_eq(stream_write(&o.s, "x", 1), CSSL_E_STATE);
		ck_assert_ptr_null(stream_reserve(&o.s, 1));
		owner_finish(&o);
	}
}
END_TEST

START_TEST(a_failed_write_is_told_when_reading_stops_after_it)
{
	struct owner o;
	int peer = owner_open(&o, OVER_UNIX);
	o.react = stop_reading;
	write_all(peer, "last words", 10);
	close(peer);
	stream_write(&o.s, "to nobody", 9);
	stream_flush(&o.s);
	ck_assert_int_eq(o.s.state, STREAM_FAILED);
	wait_until(o.told[OWNER_END]);
	ck_assert_uint_eq(o.told[OWNER_DATA], 1);
	ck_assert_int_eq(o.end, STREAM_RESET);
	owner_finish(&o);
}
END_TEST

START_TEST(writing_goes_on_after_the_peer_s_end)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		char got[5];
		int peer = owner_open(&o, over);
		shutdown(peer, SHUT_WR);
		wait_until(o.told[OWNER_END]);
		ck_assert_int_eq(o.end, STREAM_EOF);
		ck_assert_int_eq(stream_write(&o.s, "later", 5), 0);
		read_exactly(peer, got, 5);
		ck_assert_mem_eq(got, "later", 5);
		stream_shutdown(&o.s);
		ck_assert_int_eq(read_to_end(peer), 0);
		owner_finish(&o);
		close(peer);
	}
}
END_TEST

START_TEST(kept_bytes_can_be_read_after_the_end)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.use_max = 1;
	write_all(peer, "abc", 3);
	close(peer);
	wait_until(o.told[OWNER_END]);
	o.use_max = SIZE_MAX;
	stream_read_again(&o.s);
	ck_assert_mem_eq(o.got, "abc", 3);
	owner_finish(&o);
}
END_TEST

/* Pauses: stopped with more to come at once. */

static void pause_in_data(struct owner *o, enum owner_event event)
{
	if (event == OWNER_DATA)
		stream_read_pause(&o->s);
}

START_TEST(a_paused_stream_gets_nothing_until_it_starts_and_then_all_in_order)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		size_t before = 0;
		int peer = owner_open(&o, over);
		o.react = pause_in_data;
		stream_set_read_max(&o.s, 1000);
		pattern(bulk, 64000, 0);
		write_all(peer, bulk, 64000);
		wait_until(o.got_len > 0);
		while (o.got_len < 64000) {
			ck_assert_uint_le(o.got_len - before, 1000);
			before = o.got_len;
			turns(3);
			ck_assert_uint_eq(o.got_len, before);
			stream_read_start(&o.s);
			ck_assert_uint_eq(o.got_len, before); /* never from within */
			wait_until(o.got_len > before);
		}
		assert_pattern(o.got, o.got_len, 0);
		close(peer);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(a_paused_stream_that_starts_too_early_waits_for_what_comes)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		stream_read_pause(&o.s);
		stream_read_start(&o.s);
		turns(3);
		write_all(peer, "abc", 3);
		wait_until(o.got_len == 3);
		stream_read_pause(&o.s);
		close(peer);
		turns(3);
		ck_assert_uint_eq(o.told[OWNER_END], 0);
		stream_read_start(&o.s);
		wait_until(o.told[OWNER_END]);
		ck_assert_int_eq(o.end, STREAM_EOF);
		owner_finish(&o);
	}
}
END_TEST

/* libuv polls again in the same turn as long as it gets 1024 events. */
#define MANY 1100u

START_TEST(many_readable_streams_get_one_read_a_turn_each)
{
	const struct rlimit enough = { .rlim_cur = 4096, .rlim_max = 4096 };
	struct owner *o = calloc(MANY, sizeof *o);
	int peers[MANY];
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &enough), 0);
	for (unsigned i = 0; i < MANY; i++) {
		peers[i] = owner_open(&o[i], OVER_UNIX);
		stream_set_read_max(&o[i].s, 100);
		write_all(peers[i], bulk, 6000);
	}
	for (unsigned i = 1; i <= 3; i++) {
		turns(1);
		for (unsigned k = 0; k < MANY; k++)
			ck_assert_uint_le(o[k].told[OWNER_DATA], i);
	}
	for (unsigned k = 0; k < MANY; k++) {
		wait_until(o[k].got_len == 6000);
		ck_assert_uint_eq(o[k].told[OWNER_DATA], 60);
		close(peers[k]);
		owner_finish(&o[k]);
	}
	free(o);
}
END_TEST

START_TEST(a_reset_of_a_paused_stream_is_no_end)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		stream_write(&o.s, "unread", 6); /* makes a UNIX close a reset */
		wait_until(o.told[OWNER_WRITTEN]);
		stream_read_pause(&o.s);
		reset(over, peer);
		turns(3);
		stream_read_start(&o.s);
		wait_until(o.told[OWNER_END]);
		ck_assert_int_eq(o.end, STREAM_RESET);
		owner_finish(&o);
	}
}
END_TEST

UNIT(stream_read)
{
	const TTest *facts[] = {
		bytes_come_in_order,
		unused_bytes_stand_in_front_of_the_next,
		partly_used_input_is_never_lost_or_doubled,
		kept_bytes_come_again_when_asked_for,
		stopped_stream_gets_nothing_more,
		start_delivers_what_a_stopping_owner_left,
		asking_again_from_within_on_data_does_not_nest,
		bytes_put_back_come_first,
		bytes_put_back_come_without_any_new_ones,
		an_owner_that_uses_nothing_is_ended_at_the_buffer_s_size,
		one_read_a_turn_and_no_more_than_the_read_size,
		a_sender_without_end_does_not_starve_another,
		data_before_a_reset_is_not_taken_for_a_whole,
		bytes_before_a_failed_write_are_delivered_and_then_the_reset,
		a_failed_write_of_a_stopped_stream_is_told,
		a_failed_write_is_told_when_reading_stops_after_it,
		writing_goes_on_after_the_peer_s_end,
		kept_bytes_can_be_read_after_the_end,
		a_paused_stream_gets_nothing_until_it_starts_and_then_all_in_order,
		a_paused_stream_that_starts_too_early_waits_for_what_comes,
		many_readable_streams_get_one_read_a_turn_each,
		a_reset_of_a_paused_stream_is_no_end,
	};
	return worker_suite_run("stream_read", facts, FACTS_LEN(facts));
}
