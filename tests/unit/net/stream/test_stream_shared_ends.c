/* test_stream_shared_ends.c: facts of the ends of streams through shared memory, and of peers that lie. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/net/shared_bulk.h"
#include "tests/unit/unit.h"

START_TEST(end_comes_behind_all_bytes)
{
	static const size_t lens[] = { 0, 1, RINGS_LEN, BULK };

	for (size_t i = 0; i < FACTS_LEN(lens); i++) {
		open_both();
		stream_set_read_max(&far.s, 50000);
		if (lens[i])
			write_pattern(&near, lens[i], 0);
		stream_shutdown(&near.s);
		wait_until(far.told[OWNER_END]);
		ck_assert_int_eq(far.end, STREAM_EOF);
		assert_got(&far, lens[i]);
		finish_both();
	}
}
END_TEST

START_TEST(writer_may_close_right_after_it_flushed)
{
	open_both();
	stream_set_read_max(&far.s, 1000);
	write_pattern(&near, 100000, 0);
	stream_flush(&near.s);
	stream_close(&near.s);
	wait_until(far.told[OWNER_END]);
	ck_assert_int_eq(far.end, STREAM_EOF);
	assert_got(&far, 100000);
	finish_both();
}
END_TEST

START_TEST(stopped_reader_hears_of_the_end_behind_all_bytes_when_it_starts)
{
	open_both();
	stream_read_stop(&far.s);
	write_pattern(&near, 100000, 0);
	stream_flush(&near.s);
	stream_close(&near.s);
	wait_until(near.closed);
	ck_assert_uint_eq(far.told[OWNER_END], 0);
	far.react = stop_reading; /* and stops again and again meanwhile */
	stream_set_read_max(&far.s, 30000);
	for (unsigned reads = 1; reads <= 4; reads++) {
		stream_read_start(&far.s);
		wait_until(far.told[OWNER_DATA] == reads);
		turns(3);
		ck_assert_uint_eq(far.told[OWNER_DATA], reads);
		ck_assert_uint_eq(far.told[OWNER_END], 0);
	}
	stream_read_start(&far.s);
	wait_until(far.told[OWNER_END]);
	ck_assert_int_eq(far.end, STREAM_EOF);
	assert_got(&far, 100000);
	finish_both();
}
END_TEST

START_TEST(other_way_goes_on_behind_an_end)
{
	open_both();
	stream_shutdown(&near.s);
	wait_until(far.told[OWNER_END]);
	write_pattern(&far, 100000, 0);
	wait_until(near.got_len == 100000);
	assert_got(&near, 100000);
	stream_shutdown(&far.s);
	wait_until(near.told[OWNER_END]);
	ck_assert_int_eq(near.end, STREAM_EOF);
	finish_both();
}
END_TEST

START_TEST(bytes_of_a_peer_that_is_gone_come_before_its_end)
{
	open_both();
	write_pattern(&far, 100000, 0);
	stream_flush(&far.s);
	stream_close(&far.s);
	wait_until(far.closed);
	write_pattern(&near, BULK, 0); /* to no reader */
	wait_until(near.told[OWNER_END]);
	assert_got(&near, 100000);
	finish_both();
}
END_TEST

START_TEST(peer_that_lies_about_what_it_wrote_ends_the_stream)
{
	open_both();
	write_pattern(&near, 10, 0);
	wait_until(far.got_len == 10);
	uint32_t *positions = positions_of(&near);
	positions[0] = 10 + RINGS_LEN + 1; /* the tail of the ring that the maker writes */
	ck_assert_int_eq(send(stream_fd(&near.s), "", 1, MSG_DONTWAIT), 1);
	wait_until(far.told[OWNER_END]);
	ck_assert_int_eq(far.end, STREAM_ERROR);
	ck_assert_int_eq(far.end_error, UV_EPROTO);
	ck_assert_uint_eq(far.got_len, 10);
	munmap(positions, 4096);
	finish_both();
}
END_TEST

START_TEST(lie_before_the_end_is_an_error_and_no_end)
{
	open_both();
	uint32_t *positions = positions_of(&near);
	positions[0] = UINT32_MAX;
	stream_close(&near.s);
	wait_until(far.told[OWNER_END]);
	ck_assert_int_eq(far.end, STREAM_ERROR);
	ck_assert_int_eq(far.end_error, UV_EPROTO);
	munmap(positions, 4096);
	finish_both();
}
END_TEST

START_TEST(peer_that_lies_about_what_it_read_gets_nothing_more)
{
	open_both();
	uint32_t *positions = positions_of(&near);
	stream_read_stop(&far.s);
	positions[16] = 5; /* the head of the ring that the maker writes: at a byte that is not written yet */
	write_pattern(&near, 100, 0);
	turns(5);
	ck_assert_uint_eq(stream_pending(&near.s), 100);
	ck_assert_uint_eq(near.written, 0);
	positions[16] = 0;
	ck_assert_int_eq(send(stream_fd(&far.s), "", 1, MSG_DONTWAIT), 1);
	wait_until(near.written == 100);
	munmap(positions, 4096);
	finish_both();
}
END_TEST

static enum owner_event close_at;

static void close_it(struct owner *o, enum owner_event event)
{
	if (event == close_at)
		stream_close(&o->s);
}

START_TEST(close_with_bytes_that_nobody_read_is_a_reset)
{
	open_both();
	turns(5);
	write_pattern(&near, 1, 0);
	stream_flush(&near.s);
	stream_close(&far.s);
	wait_until(near.told[OWNER_END]);
	ck_assert_int_eq(near.end, STREAM_RESET);
	finish_both();
}
END_TEST

START_TEST(stream_may_be_closed_from_within_each_callback)
{
	static const enum owner_event events[] = { OWNER_DATA, OWNER_END, OWNER_WRITTEN, OWNER_FLUSH };

	for (size_t i = 0; i < FACTS_LEN(events); i++) {
		close_at = events[i];
		open_both();
		far.react = close_it;
		write_pattern(&near, RINGS_LEN, 0);
		write_pattern(&far, 1000, 0);
		if (close_at == OWNER_END)
			stream_shutdown(&near.s);
		wait_until(far.closed);
		ck_assert_uint_eq(far.told[close_at], 1);
		wait_until(near.told[OWNER_END]);
		finish_both();
	}
}
END_TEST

/* The first stream of a loop makes libuv keep one for itself. */
static unsigned descriptors_with_a_loop(void)
{
	open_both();
	finish_both();
	return open_descriptors();
}

START_TEST(closing_leaves_no_descriptor)
{
	unsigned before = descriptors_with_a_loop();

	for (unsigned i = 0; i < 20; i++) {
		open_both();
		write_pattern(&near, 400000, 0); /* some of it in the ring, some waits */
		turns(i % 3);
		finish_both();
	}
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(only_an_open_unix_stream_shares_and_once)
{
	unsigned before = descriptors_with_a_loop();
	int peer = owner_open(&near, OVER_TCP4);

	ck_assert_int_eq(stream_share(&near.s, rings_make(), RINGS_MAKER), UV_EINVAL);
	ck_assert_int_eq(stream_shared_fd(&near.s), -1);
	owner_finish(&near);
	close(peer);
	open_both();
	ck_assert_int_eq(stream_share(&near.s, rings_make(), RINGS_MAKER), UV_EINVAL);
	stream_close(&near.s);
	ck_assert_int_eq(stream_share(&near.s, rings_make(), RINGS_MAKER), UV_EINVAL);
	finish_both();
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(stream_without_such_memory_goes_on_with_its_socket)
{
	int peer = owner_open(&near, OVER_UNIX);
	char got[5];

	ck_assert_int_eq(stream_share(&near.s, duplicate(peer), RINGS_MAKER), UV_EPROTO);
	ck_assert_int_eq(stream_shared_fd(&near.s), -1);
	stream_write(&near.s, "plain", 5);
	read_exactly(peer, got, 5);
	ck_assert_mem_eq(got, "plain", 5);
	close(peer);
	owner_finish(&near);
}
END_TEST

UNIT(stream_shared_ends)
{
	const TTest *const facts[] = {
		end_comes_behind_all_bytes,
		writer_may_close_right_after_it_flushed,
		stopped_reader_hears_of_the_end_behind_all_bytes_when_it_starts,
		other_way_goes_on_behind_an_end,
		bytes_of_a_peer_that_is_gone_come_before_its_end,
		peer_that_lies_about_what_it_wrote_ends_the_stream,
		lie_before_the_end_is_an_error_and_no_end,
		peer_that_lies_about_what_it_read_gets_nothing_more,
		close_with_bytes_that_nobody_read_is_a_reset,
		stream_may_be_closed_from_within_each_callback,
		closing_leaves_no_descriptor,
		only_an_open_unix_stream_shares_and_once,
		stream_without_such_memory_goes_on_with_its_socket,
	};

	return shared_suite_run("stream_shared_ends", facts, FACTS_LEN(facts));
}
