/* test_rings.c: facts of the memory that two processes share: both sides in one process, and once in two. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/stream/rings.h"
#include "tests/unit/net/owner.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

/* As in the memory: a page of positions, of the maker's ring first. */
enum position { TAIL = 0, HEAD = 64 };
#define OF_TAKER 128u

static struct rings *maker, *taker;
static uint8_t *positions; /* the page, mapped once more */
static size_t page;

static int copy_of(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	ck_assert_int_ge(copy, 0);
	return copy;
}

static uint32_t *position_at(unsigned at)
{
	return (uint32_t *)(void *)(positions + at);
}

/* Both rings, empty, begin at @position. */
static void open_at(uint32_t position)
{
	int fd = rings_make();

	ck_assert_int_ge(fd, 0);
	page = (size_t)sysconf(_SC_PAGESIZE);
	positions = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(positions, MAP_FAILED);
	*position_at(TAIL) = *position_at(HEAD) = position;
	*position_at(OF_TAKER + TAIL) = *position_at(OF_TAKER + HEAD) = position;
	ck_assert_int_eq(rings_open(copy_of(fd), RINGS_MAKER, &maker), 0);
	ck_assert_int_eq(rings_open(fd, RINGS_TAKER, &taker), 0);
}

static void open_both(void)
{
	open_at(0);
}

static void close_both(void)
{
	rings_close(maker);
	rings_close(taker);
	munmap(positions, page);
}

static size_t room_len(struct rings *r)
{
	size_t len;

	ck_assert_ptr_nonnull(rings_room(r, &len));
	return len;
}

static size_t input_len(struct rings *r)
{
	size_t len;

	ck_assert_ptr_nonnull(rings_input(r, &len));
	return len;
}

/* @len bytes of the pattern from @from on, in one piece. Returns the result of rings_publish(). */
static int put(struct rings *r, size_t len, size_t from)
{
	size_t most;
	uint8_t *room = rings_room(r, &most);

	ck_assert_uint_ge(most, len);
	pattern(room, len, from);
	return rings_publish(r, len);
}

/* They are there, in one piece. Returns the result of rings_used(). */
static int get(struct rings *r, size_t len, size_t from)
{
	size_t there;
	const uint8_t *input = rings_input(r, &there);

	ck_assert_uint_ge(there, len);
	assert_pattern(input, len, from);
	return rings_used(r, len);
}

START_TEST(the_other_side_reads_published_bytes)
{
	open_both();
	ck_assert_uint_eq(input_len(taker), 0);
	put(maker, 1000, 1);
	put(taker, 2000, 2);
	ck_assert_uint_eq(input_len(taker), 1000);
	ck_assert_uint_eq(input_len(maker), 2000);
	get(taker, 1000, 1);
	get(maker, 2000, 2);
	ck_assert_uint_eq(input_len(taker), 0);
	ck_assert_uint_eq(input_len(maker), 0);
	close_both();
}
END_TEST

START_TEST(unpublished_bytes_are_not_there)
{
	size_t len;

	open_both();
	pattern(rings_room(maker, &len), 1000, 0);
	ck_assert_uint_eq(input_len(taker), 0);
	rings_publish(maker, 300);
	ck_assert_uint_eq(input_len(taker), 300);
	ck_assert_uint_eq(room_len(maker), RINGS_LEN - 300);
	close_both();
}
END_TEST

START_TEST(staged_bytes_are_there_when_they_are_published)
{
	size_t len;

	open_both();
	pattern(rings_room(maker, &len), 1000, 0);
	rings_stage(maker, 1000);
	pattern(rings_room(maker, &len), 500, 1000);
	rings_stage(maker, 500);
	ck_assert_uint_eq(rings_staged(maker), 1500);
	ck_assert_uint_eq(room_len(maker), RINGS_LEN - 1500);
	ck_assert_uint_eq(input_len(taker), 0);
	ck_assert_int_eq(rings_sleep(taker), 0);
	ck_assert_int_eq(put(maker, 200, 1500), 1);
	ck_assert_uint_eq(rings_staged(maker), 0);
	ck_assert_uint_eq(input_len(taker), 1700);
	get(taker, 1700, 0);
	close_both();
}
END_TEST

START_TEST(a_ring_holds_its_length_and_no_more)
{
	open_both();
	ck_assert_uint_eq(room_len(maker), RINGS_LEN);
	put(maker, RINGS_LEN, 0);
	ck_assert_uint_eq(room_len(maker), 0);
	ck_assert_uint_eq(room_len(taker), RINGS_LEN);
	get(taker, 100, 0);
	ck_assert_uint_eq(room_len(maker), 100);
	get(taker, RINGS_LEN - 100, 100);
	ck_assert_uint_eq(room_len(maker), RINGS_LEN);
	close_both();
}
END_TEST

START_TEST(room_and_input_are_one_piece_over_the_end_of_a_ring)
{
	open_at(RINGS_LEN - 100);
	put(maker, RINGS_LEN, 0);
	get(taker, RINGS_LEN, 0);
	put(taker, 300, 5);
	get(maker, 300, 5);
	close_both();
}
END_TEST

START_TEST(positions_go_on_beyond_32_bits)
{
	open_at(UINT32_MAX - 1000);
	for (size_t from = 0; from < 3 * (size_t)RINGS_LEN; from += 999) {
		put(maker, 999, from);
		put(taker, 999, from + 1);
		ck_assert_uint_eq(room_len(maker), RINGS_LEN - 999);
		get(taker, 999, from);
		get(maker, 999, from + 1);
	}
	ck_assert_uint_lt(*position_at(TAIL), RINGS_LEN * 3);
	close_both();
}
END_TEST

START_TEST(a_full_ring_is_full_beyond_32_bits_too)
{
	open_at(UINT32_MAX - 10);
	put(maker, RINGS_LEN, 0);
	ck_assert_uint_eq(room_len(maker), 0);
	ck_assert_uint_eq(input_len(taker), RINGS_LEN);
	get(taker, RINGS_LEN, 0);
	close_both();
}
END_TEST

/* --- sleeping and waking --- */

START_TEST(a_sleeping_reader_is_woken_once)
{
	open_both();
	ck_assert_int_eq(put(maker, 1, 0), 0);
	get(taker, 1, 0);
	ck_assert_int_eq(rings_sleep(taker), 0);
	ck_assert_int_eq(put(maker, 1, 0), 1);
	ck_assert_int_eq(put(maker, 1, 1), 0);
	get(taker, 2, 0);
	ck_assert_int_eq(rings_sleep(taker), 0);
	ck_assert_int_eq(put(maker, 1, 2), 1);
	close_both();
}
END_TEST

START_TEST(a_taker_that_finds_bytes_stays_awake)
{
	open_both();
	put(maker, 1, 0);
	ck_assert_int_eq(rings_sleep(taker), 1);
	ck_assert_int_eq(put(maker, 1, 1), 0);
	close_both();
}
END_TEST

START_TEST(a_reader_that_woke_by_itself_is_not_woken)
{
	open_both();
	ck_assert_int_eq(rings_sleep(taker), 0);
	rings_stay_awake(taker);
	ck_assert_int_eq(put(maker, 1, 0), 0);
	close_both();
}
END_TEST

START_TEST(a_sleeper_is_woken_by_its_own_ring_only)
{
	open_both();
	ck_assert_int_eq(rings_sleep(taker), 0);
	ck_assert_int_eq(put(taker, 1, 0), 0);
	get(maker, 1, 0);
	ck_assert_int_eq(put(maker, 1, 0), 1);
	close_both();
}
END_TEST

START_TEST(a_maker_that_waits_for_room_is_woken_once_when_half_is_free)
{
	open_both();
	put(maker, RINGS_LEN, 0);
	ck_assert_int_eq(rings_wait_for_room(maker), 0);
	ck_assert_int_eq(get(taker, RINGS_LEN / 2 - 1, 0), 0);
	ck_assert(rings_waits_for_room(maker));
	ck_assert_int_eq(get(taker, 1, RINGS_LEN / 2 - 1), 1);
	ck_assert(!rings_waits_for_room(maker));
	ck_assert_int_eq(get(taker, 1, RINGS_LEN / 2), 0);
	close_both();
}
END_TEST

START_TEST(a_maker_that_finds_half_free_does_not_wait)
{
	open_both();
	put(maker, RINGS_LEN / 2, 0);
	ck_assert_int_eq(rings_wait_for_room(maker), 1);
	ck_assert(!rings_waits_for_room(maker));
	close_both();
}
END_TEST

START_TEST(nobody_is_woken_who_does_not_wait_for_room)
{
	open_both();
	put(maker, RINGS_LEN, 0);
	ck_assert(!rings_waits_for_room(maker));
	ck_assert_int_eq(get(taker, RINGS_LEN, 0), 0);
	close_both();
}
END_TEST

/* --- the other side lies --- */

START_TEST(a_writer_too_far_ahead_is_not_believed)
{
	static const uint32_t lies[] = { RINGS_LEN + 1, UINT32_MAX, 1u << 31 };
	size_t len;

	open_at(77);
	for (size_t i = 0; i < FACTS_LEN(lies); i++) {
		*position_at(TAIL) = 77 + lies[i];
		ck_assert_ptr_null(rings_input(taker, &len));
	}
	*position_at(TAIL) = 77 + RINGS_LEN;
	ck_assert_ptr_nonnull(rings_input(taker, &len));
	close_both();
}
END_TEST

START_TEST(a_reader_ahead_of_its_writer_leaves_no_room)
{
	size_t len;

	open_at(77);
	put(maker, 10, 0);
	*position_at(HEAD) = 77 + 11;
	rings_room(maker, &len);
	ck_assert_uint_eq(len, 0);
	*position_at(HEAD) = 77 + 10 - RINGS_LEN - 1;
	rings_room(maker, &len);
	ck_assert_uint_eq(len, 0);
	ck_assert_int_eq(rings_wait_for_room(maker), 0);
	close_both();
}
END_TEST

START_TEST(own_positions_are_not_the_other_sides_to_change)
{
	size_t len;

	open_both();
	put(maker, 10, 0);
	*position_at(HEAD) = 5000; /* of the ring that the taker reads: its own */
	ck_assert_ptr_nonnull(rings_input(taker, &len));
	ck_assert_uint_eq(len, 10);
	get(taker, 10, 0);
	*position_at(TAIL) = 5000; /* of the ring that the maker writes: its own */
	put(maker, 10, 10);
	get(taker, 10, 10);
	close_both();
}
END_TEST

/* --- opening --- */

static void refused(int fd)
{
	struct rings *r = NULL;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(rings_open(fd, RINGS_TAKER, &r), UV_EPROTO);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1); /* closed */
}

static int memory_of(off_t len, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_eq(ftruncate(fd, len), 0);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

START_TEST(a_descriptor_that_is_no_such_memory_is_refused_and_closed)
{
	off_t len = sysconf(_SC_PAGESIZE) + 2 * (off_t)RINGS_LEN;
	unsigned before = open_descriptors();
	int ends[2];

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	refused(ends[0]);
	close(ends[1]);
	refused(memory_of(len, 0));
	refused(memory_of(len, F_SEAL_GROW));
	refused(memory_of(len - 1, F_SEAL_SHRINK));
	refused(memory_of(len + 1, F_SEAL_SHRINK));
	refused(memory_of(0, F_SEAL_SHRINK));
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(memory_that_cannot_be_written_is_refused_and_closed)
{
	unsigned before = open_descriptors();
	off_t len = sysconf(_SC_PAGESIZE) + 2 * (off_t)RINGS_LEN;
	struct rings *r = NULL;

	ck_assert_int_lt(rings_open(memory_of(len, F_SEAL_SHRINK | F_SEAL_WRITE), RINGS_TAKER, &r), 0);
	ck_assert_ptr_null(r);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

START_TEST(nobody_can_cut_the_memory)
{
	int fd = rings_make();

	ck_assert_int_eq(ftruncate(fd, 4096), -1);
	ck_assert_int_eq(ftruncate(fd, 100 << 20), -1);
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(fd);
}
END_TEST

START_TEST(a_side_opened_again_goes_on_where_it_stopped)
{
	open_at(UINT32_MAX - 100);
	put(maker, 300, 0);
	put(taker, 500, 7);
	get(taker, 120, 0);
	get(maker, 200, 7);
	int fd = copy_of(rings_fd(maker));
	rings_close(maker);
	ck_assert_int_eq(rings_open(fd, RINGS_MAKER, &maker), 0);
	ck_assert_uint_eq(input_len(maker), 300);
	get(maker, 300, 207);
	ck_assert_uint_eq(room_len(maker), RINGS_LEN - 180);
	put(maker, 50, 300);
	fd = copy_of(rings_fd(taker));
	rings_close(taker);
	ck_assert_int_eq(rings_open(fd, RINGS_TAKER, &taker), 0);
	get(taker, 230, 120);
	ck_assert_uint_eq(input_len(taker), 0);
	close_both();
}
END_TEST

START_TEST(a_reader_asleep_is_woken_by_a_writer_opened_again)
{
	open_both();
	ck_assert_int_eq(rings_sleep(taker), 0);
	int fd = copy_of(rings_fd(maker));
	rings_close(maker);
	ck_assert_int_eq(rings_open(fd, RINGS_MAKER, &maker), 0);
	ck_assert_int_eq(put(maker, 1, 0), 1);
	close_both();
}
END_TEST

START_TEST(closing_gives_back_descriptors_and_addresses)
{
	unsigned before = open_descriptors();

	for (unsigned i = 0; i < 3000; i++) { /* more than an address space of 2 GB would hold */
		open_both();
		close_both();
	}
	rings_close(NULL);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

/* --- two processes --- */

#define TOTAL ((size_t)50 << 20)

/* A sleeping side waits for a byte on the socket; for a limited time, so that a lost waking is noticed. */
static void sleep_for_bell(int bell)
{
	struct pollfd p = { .fd = bell, .events = POLLIN };
	char waste[64];

	if (poll(&p, 1, (int)WAIT_LIMIT_MS) != 1 || read(bell, waste, sizeof waste) <= 0)
		_exit(3);
}

static void ring(int bell)
{
	if (send(bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN)
		_exit(4);
}

/* Byte @at of all. */
static uint8_t byte_at(size_t at)
{
	return (uint8_t)((at * 2654435761u) >> 13);
}

static void write_all_of_it(struct rings *r, int bell)
{
	size_t most, len;

	for (size_t at = 0; at < TOTAL; at += len) {
		uint8_t *room = rings_room(r, &most);
		len = 1 + at * 7919 % 100000;
		len = len > most ? most : len;
		len = len > TOTAL - at ? TOTAL - at : len;
		for (size_t i = 0; i < len; i++)
			room[i] = byte_at(at + i);
		if (len && rings_publish(r, len))
			ring(bell);
		if (len == most && !rings_wait_for_room(r))
			while (rings_waits_for_room(r))
				sleep_for_bell(bell);
	}
}

static void read_all_of_it(struct rings *r, int bell)
{
	size_t there, wrong = 0;

	for (size_t at = 0; at < TOTAL; at += there) {
		const uint8_t *input = rings_input(r, &there);
		ck_assert_ptr_nonnull(input);
		for (size_t i = 0; i < there; i++)
			wrong += input[i] != byte_at(at + i);
		ck_assert_msg(wrong == 0, "%zu of the bytes at %zu are wrong", wrong, at);
		if (there && rings_used(r, there))
			ring(bell);
		if (there == 0 && !rings_sleep(r))
			sleep_for_bell(bell);
		rings_stay_awake(r);
	}
	ck_assert_uint_eq(input_len(r), 0);
}

START_TEST(two_processes_wake_each_other_and_lose_nothing)
{
	int bells[2], status, fd = rings_make();

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, bells), 0);
	pid_t writer = fork();
	ck_assert_int_ge(writer, 0);
	if (writer == 0) {
		close(bells[0]);
		if (rings_open(fd, RINGS_MAKER, &maker) < 0)
			_exit(2);
		write_all_of_it(maker, bells[1]);
		_exit(0);
	}
	close(bells[1]);
	ck_assert_int_eq(rings_open(fd, RINGS_TAKER, &taker), 0);
	read_all_of_it(taker, bells[0]);
	ck_assert_int_eq(waitpid(writer, &status, 0), writer);
	ck_assert_int_eq(status, 0);
	close(bells[0]);
	rings_close(taker);
}
END_TEST

UNIT(rings)
{
	const TTest *const facts[] = {
		the_other_side_reads_published_bytes,
		unpublished_bytes_are_not_there,
		staged_bytes_are_there_when_they_are_published,
		a_ring_holds_its_length_and_no_more,
		room_and_input_are_one_piece_over_the_end_of_a_ring,
		positions_go_on_beyond_32_bits,
		a_full_ring_is_full_beyond_32_bits_too,
		a_sleeping_reader_is_woken_once,
		a_taker_that_finds_bytes_stays_awake,
		a_reader_that_woke_by_itself_is_not_woken,
		a_sleeper_is_woken_by_its_own_ring_only,
		a_maker_that_waits_for_room_is_woken_once_when_half_is_free,
		a_maker_that_finds_half_free_does_not_wait,
		nobody_is_woken_who_does_not_wait_for_room,
		a_writer_too_far_ahead_is_not_believed,
		a_reader_ahead_of_its_writer_leaves_no_room,
		own_positions_are_not_the_other_sides_to_change,
		a_descriptor_that_is_no_such_memory_is_refused_and_closed,
		memory_that_cannot_be_written_is_refused_and_closed,
		nobody_can_cut_the_memory,
		a_side_opened_again_goes_on_where_it_stopped,
		a_reader_asleep_is_woken_by_a_writer_opened_again,
		closing_gives_back_descriptors_and_addresses,
		two_processes_wake_each_other_and_lose_nothing,
	};
	return suite_run_within(60, "rings", facts, SUITE_LEN(facts));
}
