/* test_stream_handover.c: facts of connections and links that go on in another process: here, in another object. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/stream/framed.h"
#include "proto/error.h"
#include "tests/unit/net/shared_pair.h"
#include "tests/unit/unit.h"

#define TOTAL ((size_t)1 << 20)

static uint8_t bulk[TOTAL], back[TOTAL];

/* --- streams --- */

/* @to continues what @from has not finished, as if @to were in another process. @from still has to be closed. */
static void stream_goes_along(struct owner *from, struct owner *to)
{
	size_t len = stream_unwritten_len(&from->s);
	uint8_t *output = malloc(len + 1);
	struct stream_leftovers left = { .output = output,
		.output_len = len,
		.input = stream_kept_data(&from->s),
		.input_len = stream_kept(&from->s) };

	stream_unwritten_copy(&from->s, output);
	owner_init(to);
	int fd = duplicate(stream_fd(&from->s));
	ck_assert_int_eq(stream_open_fd_with(&to->s, w, &owner_ops, fd, &left), 0);
	if (stream_shared_fd(&from->s) >= 0)
		ck_assert_int_eq(stream_share(&to->s, duplicate(stream_shared_fd(&from->s)), RINGS_MAKER), 0);
	free(output);
}

static void stream_goes_on(struct owner *from, struct owner *to)
{
	stream_goes_along(from, to);
	stream_close(&from->s);
	stream_read_start(&to->s);
}

/* The bytes that the peer gets while the loop turns, until there are @len. */
static size_t peer_reads(int peer, size_t have, size_t len)
{
	int end = 0;

	while (have < len) {
		ssize_t n = read_some(peer, back + have, len - have, &end);
		ck_assert_int_ge(n, 0);
		have += (size_t)n;
		turns(1);
	}
	return have;
}

START_TEST(output_goes_on_where_the_kernel_stopped)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o[4];
		int peer = owner_open(&o[0], over);
		size_t have = 0;

		shrink_buffers(stream_fd(&o[0].s));
		pattern(bulk, TOTAL, 0);
		ck_assert_int_eq(stream_write(&o[0].s, bulk, TOTAL - 100), 0);
		for (unsigned i = 0; i + 1 < FACTS_LEN(o); i++) {
			have = peer_reads(peer, have, have + TOTAL / 5);
			ck_assert_uint_eq(o[i].s.writes, 1); /* libuv holds a part */
			stream_goes_on(&o[i], &o[i + 1]);
		}
		ck_assert_int_eq(stream_write(&o[3].s, bulk + TOTAL - 100, 100), 0);
		peer_reads(peer, have, TOTAL);
		assert_pattern(back, TOTAL, 0);
		close(peer);
		for (unsigned i = 0; i < FACTS_LEN(o); i++)
			owner_finish(&o[i]);
	}
}
END_TEST

START_TEST(output_not_flushed_yet_goes_along)
{
	struct owner o[2];
	int peer = owner_open(&o[0], OVER_TCP4);

	stream_write(&o[0].s, "abc", 3);
	ck_assert_uint_eq(stream_unwritten_len(&o[0].s), 3);
	stream_goes_on(&o[0], &o[1]);
	read_exactly(peer, back, 3);
	ck_assert_mem_eq(back, "abc", 3);
	close(peer);
	owner_finish(&o[0]);
	owner_finish(&o[1]);
}
END_TEST

START_TEST(input_that_was_not_used_comes_first)
{
	struct owner o[2];
	int peer = owner_open(&o[0], OVER_TCP4);

	o[0].use_max = 0;
	stream_read_start(&o[0].s);
	write_all(peer, "ab", 2);
	wait_until(stream_kept(&o[0].s) == 2);
	stream_goes_on(&o[0], &o[1]);
	write_all(peer, "cd", 2);
	wait_until(o[1].got_len == 4);
	ck_assert_mem_eq(o[1].got, "abcd", 4);
	close(peer);
	owner_finish(&o[0]);
	owner_finish(&o[1]);
}
END_TEST

START_TEST(nothing_is_lost_when_the_stream_stays_after_all)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);

	shrink_buffers(stream_fd(&o.s));
	pattern(bulk, TOTAL, 0);
	stream_write(&o.s, bulk, TOTAL);
	size_t have = peer_reads(peer, 0, TOTAL / 3);
	size_t len = stream_unwritten_len(&o.s);
	uint8_t *copy = malloc(len);
	stream_unwritten_copy(&o.s, copy);
	ck_assert_mem_eq(copy, bulk + TOTAL - len, len);
	free(copy);
	peer_reads(peer, have, TOTAL);
	assert_pattern(back, TOTAL, 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

/* --- streams through memory --- */

START_TEST(output_behind_a_full_ring_goes_on_with_the_memory)
{
	struct owner o[4], peer;

	shared_pair_open(&o[0], &peer);
	stream_read_stop(&peer.s);
	pattern(bulk, TOTAL, 0);
	ck_assert_int_eq(stream_write(&o[0].s, bulk, TOTAL - 100), 0);
	turns(2);
	for (unsigned i = 0; i + 1 < FACTS_LEN(o); i++) {
		ck_assert_uint_gt(stream_unwritten_len(&o[i].s), 0);
		stream_goes_on(&o[i], &o[i + 1]);
		stream_set_read_max(&peer.s, 50000);
		stream_read_start(&peer.s);
		turns(i);
		stream_read_stop(&peer.s);
	}
	stream_read_start(&peer.s);
	ck_assert_int_eq(stream_write(&o[3].s, bulk + TOTAL - 100, 100), 0);
	wait_until(peer.got_len == TOTAL);
	assert_pattern(peer.got, TOTAL, 0);
	for (unsigned i = 0; i < FACTS_LEN(o); i++)
		owner_finish(&o[i]);
	owner_finish(&peer);
}
END_TEST

START_TEST(output_not_in_the_memory_yet_goes_along)
{
	struct owner o[2], peer;

	shared_pair_open(&o[0], &peer);
	stream_write(&o[0].s, "abc", 3);
	ck_assert_uint_eq(stream_unwritten_len(&o[0].s), 3);
	stream_goes_on(&o[0], &o[1]);
	wait_until(peer.got_len == 3);
	ck_assert_mem_eq(peer.got, "abc", 3);
	for (unsigned i = 0; i < FACTS_LEN(o); i++)
		owner_finish(&o[i]);
	owner_finish(&peer);
}
END_TEST

START_TEST(input_that_was_not_used_comes_before_what_is_in_the_memory)
{
	struct owner o[2], peer;

	shared_pair_open(&o[0], &peer);
	o[0].use_max = 0;
	stream_write(&peer.s, "ab", 2);
	wait_until(stream_kept(&o[0].s) == 2);
	stream_read_stop(&o[0].s);
	stream_write(&peer.s, "cd", 2);
	turns(2);
	stream_goes_on(&o[0], &o[1]);
	stream_write(&peer.s, "ef", 2);
	wait_until(o[1].got_len == 6);
	ck_assert_mem_eq(o[1].got, "abcdef", 6);
	for (unsigned i = 0; i < FACTS_LEN(o); i++)
		owner_finish(&o[i]);
	owner_finish(&peer);
}
END_TEST

START_TEST(sleeper_wakes_in_the_other_process)
{
	struct owner o[2], peer;

	shared_pair_open(&o[0], &peer);
	turns(5); /* both sleep */
	stream_goes_on(&o[0], &o[1]);
	wait_until(o[0].closed);
	turns(5);
	stream_write(&peer.s, "up", 2);
	wait_until(o[1].got_len == 2);
	stream_write(&o[1].s, "too", 3);
	wait_until(peer.got_len == 3);
	for (unsigned i = 0; i < FACTS_LEN(o); i++)
		owner_finish(&o[i]);
	owner_finish(&peer);
}
END_TEST

START_TEST(process_that_closes_late_takes_no_bell_from_the_other)
{
	struct owner o[2], peer;

	shared_pair_open(&o[0], &peer);
	turns(5); /* both sleep */
	stream_read_stop(&o[0].s);
	stream_goes_along(&o[0], &o[1]);
	stream_write(&peer.s, "up", 2);
	stream_flush(&peer.s);         /* rings */
	turn_end_cancel(&o[1].s.turn); /* it has looked already, and nothing but the bell wakes it */
	stream_read_start(&o[1].s);
	turn_end_cancel(&o[1].s.turn);
	owner_finish(&o[0]);
	wait_until(o[1].got_len == 2);
	owner_finish(&o[1]);
	owner_finish(&peer);
}
END_TEST

/* --- links --- */

struct end {
	struct framed f; /* first */
	uint32_t next;   /* number of the frame expected */
	unsigned closed;
};

static struct end far, nears[16];
static uint32_t near_next; /* over all of them */

static size_t len_of(uint32_t number)
{
	static const size_t lens[] = { 6, 1000, FRAME_PAYLOAD_MAX, 8, 40000, 333 };

	return lens[number % FACTS_LEN(lens)];
}

static int on_frame(struct framed *f, const struct frame *frame, uint8_t *data)
{
	struct end *e = (struct end *)f;
	uint32_t *next = e == &far ? &far.next : &near_next;

	ck_assert_uint_eq(e->closed, 0);
	ck_assert_uint_eq(frame->stream, *next);
	assert_pattern(data, frame->len, *next);
	++*next;
	return 0;
}

static void on_end(struct framed *f, int error)
{
	ck_abort_msg("the link ended: %d", error);
}

static void on_closed(struct framed *f)
{
	((struct end *)f)->closed++;
}

static const struct framed_ops end_ops = { on_frame, NULL, on_end, on_closed };

enum bytes { ON_SOCKET, IN_MEMORY };

static void open_both(enum link_protection protection, enum bytes bytes)
{
	struct link_keys keys = { .protection = protection, .aead = AEAD_AES_256_GCM };
	int fds[2];

	memset(&far, 0, sizeof far);
	memset(nears, 0, sizeof nears);
	far.next = near_next = 1;
	socket_pair(OVER_UNIX, fds);
	shrink_buffers(fds[0]);
	shrink_buffers(fds[1]);
	memset(keys.send, 1, sizeof keys.send);
	memset(keys.receive, 2, sizeof keys.receive);
	ck_assert_int_eq(framed_open(&nears[0].f, w, &end_ops, fds[0], &keys, NULL, 0), 0);
	memset(keys.send, 2, sizeof keys.send);
	memset(keys.receive, 1, sizeof keys.receive);
	ck_assert_int_eq(framed_open(&far.f, w, &end_ops, fds[1], &keys, NULL, 0), 0);
	if (bytes == ON_SOCKET)
		return;
	int memory = rings_make();
	ck_assert_int_eq(framed_share(&nears[0].f, duplicate(memory), RINGS_MAKER), 0);
	ck_assert_int_eq(framed_share(&far.f, memory, RINGS_TAKER), 0);
}

static void send_frame(struct end *e, uint32_t number)
{
	static uint8_t payload[FRAME_PAYLOAD_MAX];

	pattern(payload, len_of(number), number);
	ck_assert_int_eq(framed_send(&e->f, number, FRAME_DATA, 0, payload, len_of(number)), 0);
}

static void link_goes_on(struct end *from, struct end *to)
{
	struct framed_saved saved;

	ck_assert_int_eq(framed_save(&from->f, &saved), 0);
	size_t len = stream_unwritten_len(&from->f.stream);
	uint8_t *output = malloc(len + 1);
	struct stream_leftovers left = { .output = output,
		.output_len = len,
		.input = stream_kept_data(&from->f.stream),
		.input_len = stream_kept(&from->f.stream) };
	stream_unwritten_copy(&from->f.stream, output);
	int fd = duplicate(stream_fd(&from->f.stream));
	ck_assert_int_eq(framed_restore(&to->f, w, &end_ops, fd, &saved, &left), 0);
	int memory = stream_shared_fd(&from->f.stream);
	if (memory >= 0)
		ck_assert_int_eq(framed_share(&to->f, duplicate(memory), RINGS_MAKER), 0);
	free(output);
	framed_close(&from->f);
}

/* From one to the next, with frames both ways in between. */
static void goes_on_at_any_moment(enum link_protection protection, enum bytes bytes)
{
	unsigned last = FACTS_LEN(nears) - 1;
	uint32_t sent = 1;

	open_both(protection, bytes);
	for (unsigned i = 0; i < last; i++) {
		for (unsigned n = 0; n < 7; n++, sent++) {
			send_frame(&nears[i], sent);
			send_frame(&far, sent);
			turns(n % 3 ? 0 : i % 4);
		}
		link_goes_on(&nears[i], &nears[i + 1]);
	}
	wait_until(far.next == sent && near_next == sent);
	for (unsigned i = 0; i < last; i++)
		wait_until(nears[i].closed == 1);
	framed_close(&nears[last].f);
	framed_close(&far.f);
	wait_until(nears[last].closed && far.closed);
}

START_TEST(link_goes_on_at_any_moment)
{
	goes_on_at_any_moment(LINK_TRUSTED, ON_SOCKET);
	goes_on_at_any_moment(LINK_SEALED, ON_SOCKET);
}
END_TEST

START_TEST(link_through_memory_goes_on_at_any_moment)
{
	goes_on_at_any_moment(LINK_TRUSTED, IN_MEMORY);
	goes_on_at_any_moment(LINK_SEALED, IN_MEMORY);
}
END_TEST

START_TEST(saved_link_neither_seals_nor_opens_until_it_resumes)
{
	for (enum bytes bytes = ON_SOCKET; bytes <= IN_MEMORY; bytes++) {
		struct framed_saved saved, again;

		open_both(LINK_SEALED, bytes);
		send_frame(&nears[0], 1);
		ck_assert_int_eq(framed_save(&nears[0].f, &saved), 0);
		ck_assert_int_eq(framed_save(&nears[0].f, &again), CSSL_E_STATE);
		framed_resume(&nears[0].f);
		send_frame(&nears[0], 2);
		send_frame(&far, 1);
		wait_until(far.next == 3 && near_next == 2);
		framed_close(&nears[0].f);
		framed_close(&far.f);
		wait_until(nears[0].closed && far.closed);
	}
}
END_TEST

START_TEST(malformed_cipher_state_opens_nothing)
{
	struct framed_saved saved = { .protection = LINK_SEALED };
	struct stream_leftovers none = { 0 };
	unsigned before = open_descriptors();
	int fds[2];

	socket_pair(OVER_TCP4, fds);
	memset(saved.sealing, 0xff, sizeof saved.sealing);
	ck_assert_int_lt(framed_restore(&far.f, w, &end_ops, fds[0], &saved, &none), 0);
	close(fds[1]);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

UNIT(stream_handover)
{
	const TTest *facts[] = {
		output_goes_on_where_the_kernel_stopped,
		output_not_flushed_yet_goes_along,
		input_that_was_not_used_comes_first,
		nothing_is_lost_when_the_stream_stays_after_all,
		output_behind_a_full_ring_goes_on_with_the_memory,
		output_not_in_the_memory_yet_goes_along,
		input_that_was_not_used_comes_before_what_is_in_the_memory,
		sleeper_wakes_in_the_other_process,
		process_that_closes_late_takes_no_bell_from_the_other,
		link_goes_on_at_any_moment,
		link_through_memory_goes_on_at_any_moment,
		saved_link_neither_seals_nor_opens_until_it_resumes,
		malformed_cipher_state_opens_nothing,
	};
	return worker_suite_run("stream_handover", facts, FACTS_LEN(facts));
}
