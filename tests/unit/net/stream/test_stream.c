/* test_stream.c: facts of socket options and of the descriptor taken out; the others are beside it by source file. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/socket/address.h"
#include "tests/unit/net/owner.h"
#include "tests/unit/unit.h"

/* Options */

START_TEST(tcp_never_waits_to_fill_a_segment)
{
	struct owner o;
	int on = 0, peer = owner_open(&o, OVER_TCP6);
	socklen_t len = sizeof on;
	getsockopt(o.s.uv.tcp.io_watcher.fd, IPPROTO_TCP, TCP_NODELAY, &on, &len);
	ck_assert_int_ne(on, 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(lost_limit_is_set_on_the_socket)
{
	struct owner o;
	int value = 0, peer = owner_open(&o, OVER_TCP4);
	socklen_t len = sizeof value;
	stream_set_lost_limit(&o.s, 3000);
	getsockopt(o.s.uv.tcp.io_watcher.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &len);
	ck_assert_int_eq(value, 3000);
	getsockopt(o.s.uv.tcp.io_watcher.fd, SOL_SOCKET, SO_KEEPALIVE, &value, &len);
	ck_assert_int_eq(value, 1);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(connection_lives_on_in_the_descriptor_taken_out)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		struct owner next;
		char got[3];
		int peer = owner_open(&o, over);
		stream_write(&o.s, "old", 3);
		ck_assert_int_eq(stream_dup_fd(&o.s), UV_EBUSY);
		read_exactly(peer, got, 3);
		wait_until(stream_pending(&o.s) == 0);
		stream_reset_on_close(&o.s, true); /* belongs to the connection and ends nothing that lives on */
		int fd = stream_dup_fd(&o.s);
		ck_assert_int_ge(fd, 0);
		owner_finish(&o);
		owner_init(&next);
		ck_assert_int_eq(stream_open_fd(&next.s, w, &owner_ops, fd), 0);
		stream_read_start(&next.s);
		write_all(peer, "new", 3);
		wait_until(next.got_len == 3);
		stream_reset_on_close(&next.s, false);
		owner_finish(&next);
		ck_assert_int_eq(read_to_end(peer), 0);
		close(peer);
	}
}
END_TEST

START_TEST(fin_that_is_due_goes_before_the_descriptor_is_taken_out)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		char got[2];
		int peer = owner_open(&o, over);
		stream_shutdown(&o.s);
		int fd = stream_dup_fd(&o.s);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(read_to_end(peer), 0);
		owner_finish(&o);
		write_all(peer, "on", 2); /* the other half lives on */
		read_exactly(fd, got, 2);
		close(fd);
		close(peer);
	}
}
END_TEST

START_TEST(stream_can_be_opened_again_after_it_closed)
{
	struct owner o;
	char back[5];
	close(owner_open(&o, OVER_TCP4));
	owner_finish(&o);
	int fds[2];
	socket_pair(OVER_UNIX, fds);
	o.closed = 0;
	ck_assert_int_eq(stream_open_fd(&o.s, w, &owner_ops, fds[0]), 0);
	stream_write(&o.s, "again", 5);
	read_exactly(fds[1], back, 5);
	close(fds[1]);
	owner_finish(&o);
}
END_TEST

UNIT(stream)
{
	const TTest *facts[] = {
		tcp_never_waits_to_fill_a_segment,
		lost_limit_is_set_on_the_socket,
		connection_lives_on_in_the_descriptor_taken_out,
		fin_that_is_due_goes_before_the_descriptor_is_taken_out,
		stream_can_be_opened_again_after_it_closed,
	};
	return worker_suite_run("stream", facts, FACTS_LEN(facts));
}
