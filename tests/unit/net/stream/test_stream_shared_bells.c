/* test_stream_shared_bells.c: facts of the bytes on a socket that wake the other side of shared memory. */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/net/shared_bulk.h"
#include "tests/unit/unit.h"

static size_t carry(int from, int to)
{
	char bells[4096];
	int end;
	ssize_t n = read_some(from, bells, sizeof bells, &end);

	if (n > 0)
		write_all(to, bells, (size_t)n);
	return n > 0 ? (size_t)n : 0;
}

START_TEST(there_are_few_bells_at_load)
{
	int of_near[2], of_far[2], memory = rings_make();
	size_t sent = 0, bells = 0;

	socket_pair(OVER_UNIX, of_near);
	socket_pair(OVER_UNIX, of_far);
	shared_open(&near, of_near[0], duplicate(memory), RINGS_MAKER);
	shared_open(&far, of_far[0], memory, RINGS_TAKER);
	for (; sent < BULK; sent += 4096) {
		write_pattern(&near, 4096, sent);
		if (sent % 65536 == 0)
			turns(1);
		bells += carry(of_near[1], of_far[1]) + carry(of_far[1], of_near[1]);
	}
	while (far.got_len < BULK) {
		turn();
		bells += carry(of_near[1], of_far[1]) + carry(of_far[1], of_near[1]);
	}
	assert_got(&far, BULK);
	ck_assert_uint_gt(bells, 0);
	ck_assert_uint_lt(bells, BULK / 16384);
	close(of_near[1]);
	close(of_far[1]);
	finish_both();
}
END_TEST

START_TEST(bells_for_nothing_do_no_harm)
{
	static const char bells[1000];

	open_both();
	stream_read_stop(&far.s);
	ck_assert_int_eq(send(stream_fd(&near.s), bells, sizeof bells, MSG_DONTWAIT), sizeof bells);
	stream_read_start(&far.s);
	turns(50);
	ck_assert_uint_eq(far.told[OWNER_DATA] + far.told[OWNER_END], 0);
	write_pattern(&near, 10, 0);
	wait_until(far.got_len == 10);
	assert_got(&far, 10);
	finish_both();
}
END_TEST

START_TEST(socket_full_of_bells_does_not_end_the_stream)
{
	int fds[2], memory = rings_make();
	struct rings *peer;
	size_t len;

	socket_pair(OVER_UNIX, fds);
	shrink_buffers(fds[0]);
	ck_assert_int_eq(rings_open(duplicate(memory), RINGS_TAKER, &peer), 0);
	shared_open(&near, fds[0], memory, RINGS_MAKER);
	uint32_t *positions = positions_of(&near);
	for (size_t sent = 0; sent < 5000; sent++) {
		positions[17] = 1; /* it sleeps again, without a look at the socket */
		write_pattern(&near, 1, sent);
		stream_flush(&near.s);
	}
	turns(3);
	ck_assert_uint_eq(near.told[OWNER_END], 0);
	assert_pattern(rings_input(peer, &len), 5000, 0);
	ck_assert_uint_eq(len, 5000);
	munmap(positions, 4096);
	rings_close(peer);
	close(fds[1]);
	owner_finish(&near);
}
END_TEST

UNIT(stream_shared_bells)
{
	const TTest *const facts[] = {
		there_are_few_bells_at_load,
		bells_for_nothing_do_no_harm,
		socket_full_of_bells_does_not_end_the_stream,
	};

	return shared_suite_run("stream_shared_bells", facts, FACTS_LEN(facts));
}
