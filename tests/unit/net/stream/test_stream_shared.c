/* test_stream_shared.c: facts of streams whose bytes go through shared memory: output, input, another process. */
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/net/shared_bulk.h"
#include "tests/unit/unit.h"

START_TEST(bytes_arrive_whole_and_in_order_both_ways)
{
	size_t there = 0, back = 0, len;
	unsigned state = 1;

	open_both();
	while (there < BULK || back < BULK) {
		len = some_len(&state, BULK - there);
		if (len)
			write_pattern(&near, len, there);
		there += len;
		len = some_len(&state, BULK - back);
		if (len)
			write_pattern(&far, len, back);
		back += len;
		turns(state >> 30);
	}
	wait_until(far.got_len == BULK && near.got_len == BULK);
	assert_got(&far, BULK);
	assert_got(&near, BULK);
	wait_until(near.written == BULK && far.written == BULK);
	ck_assert_uint_eq(stream_pending(&near.s), 0);
	ck_assert_uint_eq(near.told[OWNER_END] + far.told[OWNER_END], 0);
	finish_both();
}
END_TEST

START_TEST(nothing_of_them_goes_over_the_socket)
{
	int fds[2], end, memory = rings_make();
	struct rings *peer;
	char waste[64];
	size_t len;

	socket_pair(OVER_UNIX, fds);
	ck_assert_int_eq(rings_open(duplicate(memory), RINGS_TAKER, &peer), 0);
	shared_open(&near, fds[0], memory, RINGS_MAKER);
	write_pattern(&near, 100000, 0);
	turns(3);
	ck_assert_int_eq(read_some(fds[1], waste, sizeof waste, &end), 0); /* it is awake: not even a bell */
	const uint8_t *input = rings_input(peer, &len);
	ck_assert_uint_eq(len, 100000);
	assert_pattern(input, len, 0);
	rings_close(peer);
	close(fds[1]);
	owner_finish(&near);
}
END_TEST

/* --- output --- */

START_TEST(output_is_flushed_at_the_end_of_the_turn_in_one_piece)
{
	open_both();
	turns(3);
	write_pattern(&near, 1000, 0);
	write_pattern(&near, 2000, 1000);
	ck_assert_uint_eq(stream_pending(&near.s), 3000);
	turns(1);
	ck_assert_uint_eq(stream_pending(&near.s), 0);
	wait_until(far.got_len);
	ck_assert_uint_eq(far.told[OWNER_DATA], 1);
	assert_got(&far, 3000);
	finish_both();
}
END_TEST

START_TEST(output_is_flushed_at_once_at_the_mark)
{
	open_both();
	stream_set_flush_mark(&near.s, 1000);
	write_pattern(&near, 999, 0);
	ck_assert_uint_eq(stream_pending(&near.s), 999);
	write_pattern(&near, 1, 999);
	ck_assert_uint_eq(stream_pending(&near.s), 0);
	ck_assert_uint_eq(near.told[OWNER_WRITTEN], 0); /* the loop reports it */
	wait_until(near.told[OWNER_WRITTEN]);
	ck_assert_uint_eq(near.written, 1000);
	wait_until(far.got_len == 1000);
	assert_got(&far, 1000);
	finish_both();
}
END_TEST

/* An owner that adds nothing at a flush, such as RAgent's side of a link, has large writes copied at once. */
START_TEST(large_writes_are_seen_at_the_end_of_the_turn_or_at_the_mark)
{
	struct stream_ops adds_nothing = owner_ops;

	adds_nothing.on_flush = NULL;
	open_both();
	near.s.ops = &adds_nothing;
	stream_set_flush_mark(&near.s, 3000);
	write_pattern(&near, 2000, 0);
	ck_assert_uint_eq(rings_staged(near.s.rings), 2000);
	write_pattern(&near, 1000, 2000);
	ck_assert_uint_eq(rings_staged(near.s.rings), 0);
	write_pattern(&near, 2000, 3000);
	ck_assert_uint_eq(rings_staged(near.s.rings), 2000);
	wait_until(far.got_len == 5000);
	assert_got(&far, 5000);
	finish_both();
}
END_TEST

/* A cipher works there, and reads the bytes that it wrote. */
START_TEST(bytes_that_are_not_flushed_are_not_in_the_memory)
{
	size_t len, all;

	open_both();
	uint8_t *room = stream_reserve(&near.s, 5000), *memory = rings_room(near.s.rings, &all);
	ck_assert(room + 5000 <= memory || room >= memory + 2 * all);
	memset(room, 'x', 5000);
	stream_commit(&near.s, 5000);
	ck_assert_ptr_eq(stream_output(&near.s, &len), room);
	ck_assert_int_eq(memory[0], 0);
	ck_assert(!rings_has_input(far.s.rings));
	wait_until(far.got_len == 5000);
	ck_assert_int_eq(memory[0], 'x');
	finish_both();
}
END_TEST

START_TEST(reserved_bytes_without_a_commit_are_never_seen)
{
	open_both();
	memset(stream_reserve(&near.s, 5000), 'x', 5000);
	turns(3);
	memset(stream_reserve(&near.s, 5000), 'y', 5000);
	write_pattern(&near, 100, 0);
	wait_until(far.got_len);
	turns(3);
	assert_got(&far, 100);
	finish_both();
}
END_TEST

static void add_a_tail(struct owner *o, enum owner_event event)
{
	size_t len;

	if (event != OWNER_FLUSH || !stream_output(&o->s, &len) || len != 100)
		return;
	memset(stream_reserve(&o->s, 300000), 'z', 300000); /* more than there can be room for */
	stream_commit(&o->s, 300000);
}

START_TEST(owner_may_add_in_on_flush_more_than_there_is_room_for)
{
	size_t others = 0;

	open_both();
	near.react = add_a_tail;
	write_pattern(&near, 100, 0);
	wait_until(far.got_len == 300100);
	ck_assert_mem_eq(far.got, bulk, 100);
	for (size_t i = 100; i < far.got_len; i++)
		others += far.got[i] != 'z';
	ck_assert_uint_eq(others, 0);
	finish_both();
}
END_TEST

START_TEST(output_behind_a_full_ring_is_kept_and_goes_on)
{
	open_both();
	stream_read_stop(&far.s);
	for (size_t sent = 0; sent < BULK; sent += BULK / 16) {
		write_pattern(&near, BULK / 16, sent);
		turns(1);
	}
	wait_until(near.written == RINGS_LEN);
	turns(5);
	ck_assert_uint_eq(stream_pending(&near.s), BULK - RINGS_LEN);
	ck_assert_uint_eq(far.got_len, 0);
	stream_read_start(&far.s);
	wait_until(far.got_len == BULK);
	assert_got(&far, BULK);
	wait_until(near.written == BULK);
	ck_assert_uint_eq(stream_pending(&near.s), 0);
	finish_both();
}
END_TEST

/* --- input --- */

START_TEST(stopped_reader_gets_nothing_and_all_when_it_starts)
{
	open_both();
	for (size_t sent = 0; sent < 100000; sent += 10000) {
		stream_read_stop(&far.s);
		size_t before = far.got_len;
		write_pattern(&near, 10000, sent);
		turns(5);
		ck_assert_uint_eq(far.got_len, before);
		stream_read_start(&far.s);
		wait_until(far.got_len == sent + 10000);
	}
	assert_got(&far, 100000);
	finish_both();
}
END_TEST

START_TEST(reader_may_stop_within_on_data)
{
	open_both();
	stream_set_read_max(&far.s, 7000);
	far.react = stop_reading;
	write_pattern(&near, BULK / 4, 0);
	for (unsigned reads = 1; far.got_len < BULK / 4; reads++) {
		wait_until(far.told[OWNER_DATA] == reads);
		turns(2);
		ck_assert_uint_eq(far.told[OWNER_DATA], reads);
		stream_read_start(&far.s);
	}
	assert_got(&far, BULK / 4);
	ck_assert_uint_le(far.data_max, 7000);
	finish_both();
}
END_TEST

START_TEST(unused_bytes_stand_before_new_ones)
{
	open_both();
	far.use_max = 0;
	write_pattern(&near, 2, 0);
	wait_until(stream_kept(&far.s) == 2);
	write_pattern(&near, 70000, 2);
	wait_until(far.data_len == 70002);
	far.use_max = 60000;
	stream_read_again(&far.s);
	ck_assert_uint_eq(stream_kept(&far.s), 10002);
	write_pattern(&near, 1, 70002);
	wait_until(far.got_len == 70003);
	assert_got(&far, 70003);
	finish_both();
}
END_TEST

START_TEST(owner_that_uses_nothing_is_told_that_there_is_no_room)
{
	open_both();
	far.use_max = 0;
	write_pattern(&near, 2 * WORKER_READ_BUFFER_LEN, 0);
	wait_until(far.told[OWNER_END]);
	ck_assert_int_eq(far.end, STREAM_ERROR);
	ck_assert_int_eq(far.end_error, UV_ENOBUFS);
	ck_assert_uint_eq(stream_kept(&far.s), WORKER_READ_BUFFER_LEN);
	finish_both();
}
END_TEST

START_TEST(bytes_that_came_before_the_memory_was_opened_are_there)
{
	int fds[2], memory = rings_make();

	socket_pair(OVER_UNIX, fds);
	shared_open(&near, fds[0], duplicate(memory), RINGS_MAKER);
	write_pattern(&near, 5000, 0);
	wait_until(near.written == 5000);
	shared_open(&far, fds[1], memory, RINGS_TAKER);
	wait_until(far.got_len == 5000);
	assert_got(&far, 5000);
	finish_both();
}
END_TEST

/* --- two processes --- */

static void say_it_back(struct owner *o, enum owner_event event)
{
	if (event == OWNER_END)
		stream_shutdown(&o->s);
	if (event != OWNER_DATA)
		return;
	if (stream_write(&o->s, o->got, o->got_len) < 0)
		_exit(2);
	o->got_len = 0;
}

/* Another process, which has nothing of this one's loop. */
static void be_the_echo(int fd, int memory)
{
	w = worker_create(1, "echo");
	shared_open(&far, fd, memory, RINGS_TAKER);
	far.react = say_it_back;
	while (!far.told[OWNER_END] || stream_pending(&far.s))
		uv_run(worker_loop(w), UV_RUN_ONCE);
	_exit(far.end == STREAM_EOF ? 0 : 3);
}

START_TEST(another_process_answers_every_byte)
{
	int fds[2], status, memory = rings_make();
	unsigned state = 7;
	size_t sent = 0;

	socket_pair(OVER_UNIX, fds);
	pid_t echo = fork();
	ck_assert_int_ge(echo, 0);
	if (echo == 0) {
		close(fds[0]);
		be_the_echo(fds[1], memory);
	}
	close(fds[1]);
	shared_open(&near, fds[0], memory, RINGS_MAKER);
	while (sent < BULK) {
		size_t len = some_len(&state, BULK - sent);
		write_pattern(&near, len, sent);
		sent += len;
		if (state >> 31)
			turn(); /* it may have gone to sleep meanwhile */
	}
	wait_until(near.got_len == BULK);
	assert_got(&near, BULK);
	stream_shutdown(&near.s);
	wait_until(near.told[OWNER_END]);
	ck_assert_int_eq(waitpid(echo, &status, 0), echo);
	ck_assert_int_eq(status, 0);
	owner_finish(&near);
}
END_TEST

UNIT(stream_shared)
{
	const TTest *const facts[] = {
		bytes_arrive_whole_and_in_order_both_ways,
		nothing_of_them_goes_over_the_socket,
		output_is_flushed_at_the_end_of_the_turn_in_one_piece,
		output_is_flushed_at_once_at_the_mark,
		large_writes_are_seen_at_the_end_of_the_turn_or_at_the_mark,
		bytes_that_are_not_flushed_are_not_in_the_memory,
		reserved_bytes_without_a_commit_are_never_seen,
		owner_may_add_in_on_flush_more_than_there_is_room_for,
		output_behind_a_full_ring_is_kept_and_goes_on,
		stopped_reader_gets_nothing_and_all_when_it_starts,
		reader_may_stop_within_on_data,
		unused_bytes_stand_before_new_ones,
		owner_that_uses_nothing_is_told_that_there_is_no_room,
		bytes_that_came_before_the_memory_was_opened_are_there,
		another_process_answers_every_byte,
	};

	return shared_suite_run("stream_shared", facts, FACTS_LEN(facts));
}
