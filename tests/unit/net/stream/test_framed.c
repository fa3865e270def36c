/* test_framed.c: facts of a link as a sequence of frames, trusted and sealed, on a socket and through memory. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/stream/framed.h"
#include "proto/error.h"
#include "tests/unit/net/shared_pair.h"
#include "tests/unit/unit.h"

#define TOTAL ((size_t)6 << 20)

struct end {
	struct framed f; /* first */
	size_t got_len;
	uint32_t next; /* number of the frame expected */
	unsigned turns, closed, ended;
	unsigned left_in_memory; /* frames */
	int error;
	void (*react)(struct end *e);
};

static struct end near, far;

static const struct way {
	enum link_protection protection;
	enum { ON_SOCKET, IN_MEMORY, LEFT_IN_MEMORY } bytes;
} ways[] = {
	{ LINK_TRUSTED, ON_SOCKET }, { LINK_SEALED, ON_SOCKET }, { LINK_TRUSTED, IN_MEMORY },
	{ LINK_SEALED, IN_MEMORY }, { LINK_TRUSTED, LEFT_IN_MEMORY }, /* long DATA frames are used where they came */
};
#define EACH_WAY(way)                                                                                                  \
	const struct way *way = ways;                                                                                  \
	way < ways + FACTS_LEN(ways);                                                                                  \
	way++
#define EACH_SEALED(way)                                                                                               \
	const struct way *way = ways + 1;                                                                              \
	way < ways + FACTS_LEN(ways);                                                                                  \
	way += 2

static uint8_t payload[FRAME_PAYLOAD_MAX];

/* Every length that matters, over and over. The first fills a batch and leaves room for its tag below the flush mark.
 */
static const size_t lens[] = { STREAM_FLUSH_MARK_DEFAULT - BATCH_HEADER_LEN - FRAME_HEADER_LEN - 1, 6, 7, 1000,
	16384 + 22, FRAME_PAYLOAD_MAX, 8, 40000, FRAME_PAYLOAD_MAX - 1, 333 };

static size_t len_of(uint32_t number)
{
	return lens[number % FACTS_LEN(lens)];
}

static int on_frame(struct framed *f, const struct frame *frame, uint8_t *data)
{
	struct end *e = (struct end *)f;

	ck_assert_uint_eq(e->closed, 0);
	ck_assert_uint_eq(frame->stream, e->next);
	ck_assert_uint_eq(frame->len, len_of(e->next));
	assert_pattern(frame->payload, frame->len, e->next);
	if (data)
		memset(data, 0xee, frame->len); /* may be changed */
	else
		ck_assert_uint_ge(frame->len, 4096);
	e->left_in_memory += !data;
	e->next++;
	e->got_len += frame->len;
	if (e->react)
		e->react(e);
	return 0;
}

static void on_turn(struct framed *f)
{
	((struct end *)f)->turns++;
}

static void on_end(struct framed *f, int error)
{
	struct end *e = (struct end *)f;

	e->ended++;
	e->error = error;
}

static void on_closed(struct framed *f)
{
	((struct end *)f)->closed++;
}

static const struct framed_ops end_ops = { on_frame, on_turn, on_end, on_closed };
static const struct framed_ops sharing_ops = { on_frame, on_turn, on_end, on_closed, NULL, FRAMED_DATA_STAYS_SHARED };

static struct link_keys keys_of(enum link_protection protection, int first)
{
	struct link_keys keys = { .protection = protection, .aead = AEAD_AES_256_GCM };

	memset(keys.send, first ? 1 : 2, sizeof keys.send);
	memset(keys.receive, first ? 2 : 1, sizeof keys.receive);
	return keys;
}

static void open_one(struct end *e, enum link_protection protection, int first, int fd)
{
	struct link_keys keys = keys_of(protection, first);

	memset(e, 0, sizeof *e);
	e->next = 1;
	ck_assert_int_eq(framed_open(&e->f, w, &end_ops, fd, &keys, NULL, 0), 0);
}

static void open_both(const struct way *way)
{
	int fds[2];

	socket_pair(way->bytes == ON_SOCKET ? OVER_TCP4 : OVER_UNIX, fds);
	open_one(&near, way->protection, 1, fds[0]);
	open_one(&far, way->protection, 0, fds[1]);
	if (way->bytes == ON_SOCKET)
		return;
	if (way->bytes == LEFT_IN_MEMORY)
		near.f.ops = far.f.ops = &sharing_ops;
	int memory = rings_make();
	ck_assert_int_ge(memory, 0);
	ck_assert_int_eq(framed_share(&near.f, duplicate(memory), RINGS_MAKER), 0);
	ck_assert_int_eq(framed_share(&far.f, memory, RINGS_TAKER), 0);
}

static void close_both(void)
{
	framed_close(&near.f);
	framed_close(&far.f);
	wait_until(near.closed && far.closed);
}

static void send_frame(struct end *e, uint32_t number)
{
	pattern(payload, len_of(number), number);
	ck_assert_int_eq(framed_send(&e->f, number, FRAME_DATA, 0, payload, len_of(number)), 0);
}

START_TEST(frames_arrive_whole_and_in_order)
{
	for (EACH_WAY(way)) {
		uint32_t number = 1;
		open_both(way);
		for (size_t sent = 0; sent < TOTAL; turns(1))
			for (unsigned i = 0; i < 40;
				i++) { /* far more than a batch and than the flush mark in one turn */
				send_frame(&near, number);
				sent += len_of(number++);
			}
		wait_until(far.next == number);
		ck_assert_uint_eq(framed_pending(&near.f), 0);
		ck_assert_uint_gt(far.turns, 0);
		ck_assert_uint_eq(far.left_in_memory > 0, way->bytes == LEFT_IN_MEMORY);
		ck_assert_uint_eq(far.ended, 0);
		close_both();
	}
}
END_TEST

/* Those from the caller's memory, and others between them. Another batch may be under way. */
START_TEST(frames_of_both_kinds_arrive_in_order)
{
	static uint8_t frame[FRAME_HEADER_LEN + FRAME_PAYLOAD_MAX];

	for (EACH_WAY(way)) {
		open_both(way);
		for (uint32_t number = 1; number < 200; number++) {
			if (number % 3 == 0) {
				send_frame(&near, number);
				continue;
			}
			pattern(frame + FRAME_HEADER_LEN, len_of(number), number);
			ck_assert_int_eq(framed_pass(&near.f, number, FRAME_DATA, 0, frame, len_of(number)), 0);
			assert_pattern(frame + FRAME_HEADER_LEN, len_of(number), number);
			memset(frame, 0xee, sizeof frame);
			if (number % 17 == 0)
				turns(1);
		}
		wait_until(far.next == 200);
		ck_assert_uint_eq(framed_pending(&near.f), 0);
		ck_assert_uint_eq(far.ended, 0);
		close_both();
	}
}
END_TEST

START_TEST(after_the_end_a_passed_frame_is_refused)
{
	uint8_t frame[FRAME_HEADER_LEN + 16] = { 0 };

	for (EACH_WAY(way)) {
		open_both(way);
		framed_close(&near.f);
		ck_assert_int_eq(framed_pass(&near.f, 1, FRAME_DATA, 0, frame, 16), CSSL_E_STATE);
		close_both();
	}
}
END_TEST

/* A batch below the flush mark that its tag lifts to it: sealing commits, the commit flushes, the flush would seal. */
START_TEST(batch_that_its_tag_lifts_to_the_mark_is_sealed_once)
{
	for (EACH_SEALED(way)) {
		open_both(way);
		for (uint32_t number = 1; number < FACTS_LEN(lens); number++)
			send_frame(&near, number);
		stream_flush(&near.f.stream);
		for (uint32_t number = FACTS_LEN(lens); number < 3 * FACTS_LEN(lens); number++)
			send_frame(&near, number);
		wait_until(far.next == 3 * FACTS_LEN(lens));
		close_both();
	}
}
END_TEST

START_TEST(both_ways_are_sealed_apart)
{
	for (EACH_SEALED(way)) {
		open_both(way);
		for (uint32_t number = 1; number < 50; number++) {
			send_frame(&near, number);
			send_frame(&far, number);
		}
		wait_until(near.next == 50 && far.next == 50);
		close_both();
	}
}
END_TEST

START_TEST(room_that_was_reserved_need_not_be_used_up)
{
	for (EACH_WAY(way)) {
		open_both(way);
		for (uint32_t number = 1; number < 40; number++) {
			uint8_t *room = framed_reserve(&near.f, FRAME_PAYLOAD_MAX);
			ck_assert_ptr_nonnull(room);
			pattern(room, len_of(number), number);
			framed_commit(&near.f, number, FRAME_DATA, 0, len_of(number));
		}
		wait_until(far.next == 40);
		close_both();
	}
}
END_TEST

/* The bytes on the wire for frames 1 to @last. */
static size_t wire_of(enum link_protection protection, uint32_t last, uint8_t *out, size_t cap)
{
	int fds[2], eof;
	size_t len = 0;

	socket_pair(OVER_UNIX, fds);
	open_one(&near, protection, 1, fds[0]);
	for (uint32_t number = 1; number <= last; number++)
		send_frame(&near, number);
	while (framed_pending(&near.f) || len == 0) {
		turns(1);
		ssize_t n;
		while ((n = read_some(fds[1], out + len, cap - len, &eof)) > 0)
			len += (size_t)n;
	}
	framed_close(&near.f);
	wait_until(near.closed);
	close(fds[1]);
	return len;
}

static uint8_t wire[1 << 20];

/* The other side of a link, by hand. */
struct raw {
	int fd;
	struct rings *rings; /* NULL: on the socket */
};

static struct raw open_against_raw(const struct way *way)
{
	struct raw raw = { 0 };
	int fds[2];

	socket_pair(OVER_UNIX, fds);
	open_one(&far, way->protection, 0, fds[0]);
	raw.fd = fds[1];
	if (way->bytes == ON_SOCKET)
		return raw;
	if (way->bytes == LEFT_IN_MEMORY)
		far.f.ops = &sharing_ops;
	int memory = rings_make();
	ck_assert_int_eq(framed_share(&far.f, duplicate(memory), RINGS_TAKER), 0);
	ck_assert_int_eq(rings_open(memory, RINGS_MAKER, &raw.rings), 0);
	return raw;
}

static void raw_write(struct raw *raw, const uint8_t *data, size_t len)
{
	size_t most;

	if (!raw->rings) {
		write_all(raw->fd, data, len);
		return;
	}
	uint8_t *room = rings_room(raw->rings, &most);
	ck_assert_uint_ge(most, len);
	memcpy(room, data, len);
	if (rings_publish(raw->rings, len))
		write_all(raw->fd, "", 1);
}

static void close_raw(struct raw *raw)
{
	framed_close(&far.f);
	wait_until(far.closed);
	close(raw->fd);
	rings_close(raw->rings);
}

START_TEST(frames_arrive_however_the_bytes_are_cut)
{
	for (EACH_WAY(way)) {
		size_t len = wire_of(way->protection, 3, wire, sizeof wire);
		struct raw raw = open_against_raw(way);
		for (size_t at = 0; at < len; at++) {
			if (at + 200 == len || at < 200 || at % 97 == 0)
				turns(1);
			raw_write(&raw, wire + at, 1);
		}
		wait_until(far.next == 4);
		close_raw(&raw);
	}
}
END_TEST

START_TEST(bytes_behind_the_opening_come_first)
{
	for (int protection = LINK_TRUSTED; protection <= LINK_SEALED; protection++) {
		size_t len = wire_of(protection, 3, wire, sizeof wire);
		struct link_keys keys = keys_of(protection, 0);
		int fds[2];
		socket_pair(OVER_UNIX, fds);
		memset(&far, 0, sizeof far);
		far.next = 1;
		ck_assert_int_eq(framed_open(&far.f, w, &end_ops, fds[0], &keys, wire, len - 10), 0);
		ck_assert_uint_eq(far.next, 1); /* from the loop */
		write_all(fds[1], wire + len - 10, 10);
		wait_until(far.next == 4);
		framed_close(&far.f);
		wait_until(far.closed);
		close(fds[1]);
	}
}
END_TEST

START_TEST(forged_batch_ends_the_link_and_delivers_nothing)
{
	for (EACH_SEALED(way)) {
		size_t len = wire_of(LINK_SEALED, 3, wire, sizeof wire);
		struct raw raw = open_against_raw(way);
		wire[len - 1] ^= 1;
		raw_write(&raw, wire, len);
		wait_until(far.ended);
		ck_assert_int_eq(far.error, CSSL_E_AUTH);
		ck_assert_uint_eq(far.next, 1);
		close_raw(&raw);
	}
}
END_TEST

START_TEST(unknown_frame_ends_the_link)
{
	static const uint8_t unknown[FRAME_HEADER_LEN] = { 0, 0, 0, 1, 0xff, 0, 0, 0 };

	for (unsigned bytes = ON_SOCKET; bytes <= IN_MEMORY; bytes++) {
		struct raw raw = open_against_raw(&(struct way){ LINK_TRUSTED, bytes });
		raw_write(&raw, unknown, sizeof unknown);
		wait_until(far.ended);
		ck_assert_int_eq(far.error, CSSL_E_TYPE);
		close_raw(&raw);
	}
}
END_TEST

static void close_at_two(struct end *e)
{
	if (e->next == 3)
		framed_close(&e->f);
}

START_TEST(link_may_be_closed_from_within_on_frame)
{
	for (EACH_WAY(way)) {
		open_both(way);
		far.react = close_at_two;
		for (uint32_t number = 1; number < 10; number++)
			send_frame(&near, number);
		wait_until(far.closed);
		ck_assert_uint_eq(far.next, 3);
		wait_until(near.ended);
		close_both();
	}
}
END_TEST

START_TEST(peer_s_end_is_told)
{
	for (EACH_SEALED(way)) {
		open_both(way);
		framed_close(&near.f);
		wait_until(far.ended);
		ck_assert_int_eq(far.error, UV_EOF);
		close_both();
	}
}
END_TEST

START_TEST(link_whose_memory_is_none_is_broken)
{
	open_both(&ways[0]);
	ck_assert_int_lt(framed_share(&near.f, rings_make(), RINGS_MAKER), 0); /* over TCP */
	close_both();
	struct raw raw = open_against_raw(&(struct way){ LINK_SEALED, ON_SOCKET });
	ck_assert_int_eq(framed_share(&far.f, duplicate(raw.fd), RINGS_TAKER), UV_EPROTO);
	close_raw(&raw);
}
END_TEST

UNIT(framed)
{
	const TTest *facts[] = {
		frames_arrive_whole_and_in_order,
		frames_of_both_kinds_arrive_in_order,
		after_the_end_a_passed_frame_is_refused,
		batch_that_its_tag_lifts_to_the_mark_is_sealed_once,
		both_ways_are_sealed_apart,
		room_that_was_reserved_need_not_be_used_up,
		frames_arrive_however_the_bytes_are_cut,
		bytes_behind_the_opening_come_first,
		forged_batch_ends_the_link_and_delivers_nothing,
		unknown_frame_ends_the_link,
		link_may_be_closed_from_within_on_frame,
		peer_s_end_is_told,
		link_whose_memory_is_none_is_broken,
	};
	return worker_suite_run("framed", facts, FACTS_LEN(facts));
}
