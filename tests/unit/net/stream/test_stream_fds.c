/* test_stream_fds.c: facts of descriptors that travel with the bytes of a UNIX stream. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/net/owner.h"
#include "tests/unit/unit.h"

static uint8_t bulk[1 << 20];

static void open_both(struct owner *a, struct owner *b)
{
	int fds[2];

	owner_init(a);
	owner_init(b);
	socket_pair(OVER_UNIX, fds);
	stream_expect_fds(&a->s);
	stream_expect_fds(&b->s);
	ck_assert_int_eq(stream_open_fd(&a->s, w, &owner_ops, fds[0]), 0);
	ck_assert_int_eq(stream_open_fd(&b->s, w, &owner_ops, fds[1]), 0);
	stream_read_start(&b->s);
}

/* Something recognisable: a file with one word in it. */
static int word(const char *text)
{
	int fd = memfd_create("word", MFD_CLOEXEC);

	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static void assert_word(int fd, const char *text)
{
	char got[16] = "";

	ck_assert_int_eq(pread(fd, got, sizeof got - 1, 0), (ssize_t)strlen(text));
	ck_assert_str_eq(got, text);
}

START_TEST(descriptor_comes_with_its_bytes)
{
	struct owner a, b;
	int fd = word("alpha");
	open_both(&a, &b);
	stream_write(&a.s, "take this", 9);
	ck_assert_int_eq(stream_send_fd(&a.s, fd), 0);
	close(fd);
	stream_write(&a.s, " and go", 7);
	wait_until(b.got_len == 16);
	ck_assert_mem_eq(b.got, "take this and go", 16);
	ck_assert_int_ge(b.fd, 0);
	ck_assert_uint_eq(b.got_len_at_fd, 0);
	assert_word(b.fd, "alpha");
	ck_assert_int_eq(fcntl(b.fd, F_GETFD), FD_CLOEXEC);
	close(b.fd);
	owner_finish(&a);
	owner_finish(&b);
}
END_TEST

/* A reader gets messages of MESSAGE_LEN bytes, and each has the next descriptor. */
#define MESSAGES    40u
#define MESSAGE_LEN 30000u
static int came[MESSAGES];
static unsigned came_count, matched;

static void match_fds(struct owner *o, enum owner_event event)
{
	if (event == OWNER_FD) {
		ck_assert_uint_lt(came_count, MESSAGES);
		came[came_count++] = o->fd;
	}
	/* a whole message has arrived: its descriptor must be here */
	for (; event == OWNER_DATA && o->got_len >= (matched + 1) * MESSAGE_LEN; matched++) {
		char text[16];
		snprintf(text, sizeof text, "w%u", matched);
		ck_assert_uint_gt(came_count, matched);
		assert_word(came[matched], text);
		close(came[matched]);
	}
}

START_TEST(descriptors_keep_their_order_when_the_kernel_is_full)
{
	struct owner a, b;
	unsigned before = open_descriptors();
	open_both(&a, &b);
	b.react = match_fds;
	shrink_buffers(a.s.uv.pipe.io_watcher.fd);
	pattern(bulk, MESSAGE_LEN, 0);
	for (unsigned i = 0; i < MESSAGES; i++) {
		char text[16];
		snprintf(text, sizeof text, "w%u", i);
		int fd = word(text);
		stream_write(&a.s, bulk, MESSAGE_LEN);
		ck_assert_int_eq(stream_send_fd(&a.s, fd), 0);
		close(fd);
	}
	ck_assert_uint_gt(a.s.writes, 1);
	wait_until(matched == MESSAGES);
	wait_until(a.written == MESSAGES * MESSAGE_LEN);
	ck_assert_uint_eq(stream_pending(&a.s), 0);
	for (unsigned i = 0; i < MESSAGES; i++)
		assert_pattern(b.got + i * MESSAGE_LEN, MESSAGE_LEN, 0);
	owner_finish(&a);
	owner_finish(&b);
	turns(3);
	ck_assert_uint_le(open_descriptors(), before + 1); /* libuv's spare one */
}
END_TEST

START_TEST(descriptor_needs_bytes_to_travel_with)
{
	struct owner a, b;
	open_both(&a, &b);
	ck_assert_int_eq(stream_send_fd(&a.s, 0), UV_EINVAL);
	stream_write(&a.s, "x", 1);
	ck_assert_int_eq(stream_send_fd(&a.s, -1), UV_EBADF);
	ck_assert_int_eq(stream_send_fd(&a.s, 0), 0);
	wait_until(b.got_len == 1);
	close(b.fd);
	owner_finish(&a);
	owner_finish(&b);
}
END_TEST

START_TEST(plain_streams_send_and_take_no_descriptors)
{
	struct owner plain;
	int peer = owner_open(&plain, OVER_UNIX);
	stream_write(&plain.s, "x", 1);
	ck_assert_int_eq(stream_send_fd(&plain.s, 0), UV_EINVAL);
	close(peer);
	owner_finish(&plain);
}
END_TEST

START_TEST(mark_does_not_part_bytes_and_descriptor)
{
	struct owner a, b;
	open_both(&a, &b);
	stream_set_flush_mark(&a.s, 10);
	stream_write(&a.s, "longer than the mark", 20);
	int fd = word("beta");
	ck_assert_int_eq(stream_send_fd(&a.s, fd), 0);
	close(fd);
	wait_until(b.got_len == 20);
	assert_word(b.fd, "beta");
	close(b.fd);
	owner_finish(&a);
	owner_finish(&b);
}
END_TEST

START_TEST(unsent_and_undelivered_descriptors_are_closed_with_the_streams)
{
	struct owner a, b;
	struct owner warm_a, warm_b;
	open_both(&warm_a, &warm_b);
	owner_finish(&warm_a);
	owner_finish(&warm_b);
	unsigned before = open_descriptors();
	open_both(&a, &b);
	stream_read_stop(&b.s);
	shrink_buffers(a.s.uv.pipe.io_watcher.fd);
	for (unsigned i = 0; i < 5; i++) {
		int fd = word("gamma");
		stream_write(&a.s, bulk, 30000);
		ck_assert_int_eq(stream_send_fd(&a.s, fd), 0);
		close(fd);
	}
	turns(3);
	owner_finish(&a);
	owner_finish(&b);
	turns(3);
	ck_assert_uint_eq(open_descriptors(), before);
}
END_TEST

static void close_both(struct owner *o, enum owner_event event)
{
	if (event != OWNER_FD)
		return;
	close(o->fd);
	stream_close(&o->s);
}

START_TEST(close_inside_on_fd_is_legal)
{
	struct owner a, b;
	open_both(&a, &b);
	b.react = close_both;
	stream_write(&a.s, "x", 1);
	ck_assert_int_eq(stream_send_fd(&a.s, 0), 0);
	wait_until(b.closed);
	ck_assert_uint_eq(b.told[OWNER_DATA], 0);
	owner_finish(&a);
	owner_finish(&b);
}
END_TEST

static void stop_on_fd(struct owner *o, enum owner_event event)
{
	if (event == OWNER_FD)
		stream_read_stop(&o->s);
}

START_TEST(stop_inside_on_fd_loses_no_byte_and_spins_no_loop)
{
	struct owner a, b;
	open_both(&a, &b);
	b.react = stop_on_fd;
	stream_write(&a.s, "first", 5);
	ck_assert_int_eq(stream_send_fd(&a.s, 0), 0);
	wait_until(b.told[OWNER_FD] == 1);
	close(b.fd);
	stream_write(&a.s, "second", 6);
	turns(10);
	struct pollfd loop = { .fd = uv_backend_fd(worker_loop(w)), .events = POLLIN };
	ck_assert_int_eq(poll(&loop, 1, 0), 0);
	ck_assert_uint_eq(b.got_len, 5);
	b.react = NULL;
	stream_read_start(&b.s);
	wait_until(b.got_len == 11);
	ck_assert_mem_eq(b.got, "firstsecond", 11);
	owner_finish(&a);
	owner_finish(&b);
}
END_TEST

START_TEST(passed_socket_carries_on_at_the_other_side)
{
	struct owner a, b, moved;
	char got[5];
	int fds[2];
	open_both(&a, &b);
	socket_pair(OVER_TCP4, fds);
	stream_write(&a.s, "yours", 5);
	ck_assert_int_eq(stream_send_fd(&a.s, fds[0]), 0);
	close(fds[0]);
	wait_until(b.fd >= 0);
	owner_init(&moved);
	ck_assert_int_eq(stream_open_fd(&moved.s, w, &owner_ops, b.fd), 0);
	stream_write(&moved.s, "hello", 5);
	read_exactly(fds[1], got, 5);
	close(fds[1]);
	owner_finish(&moved);
	owner_finish(&a);
	owner_finish(&b);
}
END_TEST

/* With @fd, if it is not negative. */
static void send_raw(int to, const char *text, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof fd)];
	} control = { .header = {
			      .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)text, strlen(text) };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof control.room;
	}
	ck_assert_int_eq(sendmsg(to, &m, 0), (ssize_t)strlen(text));
}

static char words_come[16];

static void note_word(struct owner *o, enum owner_event event)
{
	const size_t len = strlen(words_come);

	if (event != OWNER_FD)
		return;
	ck_assert_int_eq(pread(o->fd, words_come + len, sizeof words_come - 1 - len, 0), 1);
	close(o->fd);
}

/* A read ends behind a descriptor, and then libuv sees that the other side has closed. */
START_TEST(what_was_sent_before_the_end_comes_before_the_end)
{
	struct owner o;
	int fds[2];
	owner_init(&o);
	o.react = note_word;
	socket_pair(OVER_UNIX, fds);
	stream_expect_fds(&o.s);
	ck_assert_int_eq(stream_open_fd(&o.s, w, &owner_ops, fds[0]), 0);
	stream_read_start(&o.s);
	for (unsigned i = 0; i < 3; i++) {
		int fd = word((const char *[]){ "a", "b", "c" }[i]);
		send_raw(fds[1], "with one ", fd);
		close(fd);
	}
	send_raw(fds[1], "the last", -1);
	close(fds[1]);
	wait_until(o.told[OWNER_END]);
	ck_assert_int_eq(o.end, STREAM_EOF);
	ck_assert_str_eq(words_come, "abc");
	ck_assert_uint_eq(o.got_len, 3 * 9 + 8);
	ck_assert_mem_eq(o.got + 3 * 9, "the last", 8);
	owner_finish(&o);
}
END_TEST

UNIT(stream_fds)
{
	const TTest *facts[] = {
		descriptor_comes_with_its_bytes,
		descriptors_keep_their_order_when_the_kernel_is_full,
		descriptor_needs_bytes_to_travel_with,
		plain_streams_send_and_take_no_descriptors,
		mark_does_not_part_bytes_and_descriptor,
		unsent_and_undelivered_descriptors_are_closed_with_the_streams,
		close_inside_on_fd_is_legal,
		stop_inside_on_fd_loses_no_byte_and_spins_no_loop,
		passed_socket_carries_on_at_the_other_side,
		what_was_sent_before_the_end_comes_before_the_end,
	};
	return worker_suite_run("stream_fds", facts, FACTS_LEN(facts));
}
