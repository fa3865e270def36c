/* test_stream.c: facts of connecting, of socket options, of the descriptor taken out; the others are beside it by
 * source file. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/address.h"
#include "owner.h"

/* Connecting */

START_TEST(connects_and_carries_what_was_written_meanwhile)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct sockaddr_storage to, local, peer_of;
		struct owner o;
		char got[5];
		int listening = socket_listen(over, &to);
		owner_init(&o);
		ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL), 0);
		stream_read_start(&o.s);
		stream_write(&o.s, "early", 5);
		ck_assert_uint_eq(o.told[OWNER_CONNECTED], 0);
		wait_until(o.told[OWNER_CONNECTED]);
		ck_assert_int_eq(o.connect_error, 0);
		int peer = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
		read_exactly(peer, got, 5);
		write_all(peer, "hello", 5);
		wait_until(o.got_len == 5);
		ck_assert_int_eq(stream_peer(&o.s, &peer_of), 0);
		ck_assert_int_eq(peer_of.ss_family, to.ss_family);
		ck_assert_uint_eq(address_port((struct sockaddr *)&peer_of), address_port((struct sockaddr *)&to));
		ck_assert_int_eq(stream_local(&o.s, &local), 0);
		close(peer);
		close(listening);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(connects_from_the_given_source)
{
	struct sockaddr_storage to, from, seen;
	struct owner o;
	char text[ADDRESS_TEXT_MAX];
	socklen_t len = sizeof seen;
	int listening = socket_listen(OVER_TCP4, &to);
	owner_init(&o);
	ck_assert_int_eq(address_parse_host("127.0.0.9", &from), 0);
	ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, (struct sockaddr *)&from), 0);
	wait_until(o.told[OWNER_CONNECTED]);
	int peer = accept(listening, (struct sockaddr *)&seen, &len);
	address_set_port((struct sockaddr *)&seen, 0);
	ck_assert_str_eq(address_format((struct sockaddr *)&seen, text), "127.0.0.9:0");
	close(peer);
	close(listening);
	owner_finish(&o);
}
END_TEST

START_TEST(refused_connect_is_told_from_the_loop)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct sockaddr_storage to;
		struct owner o;
		close(socket_listen(over, &to));
		owner_init(&o);
		ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL), 0);
		stream_write(&o.s, "lost", 4);
		wait_until(o.told[OWNER_CONNECTED]);
		ck_assert_int_eq(o.connect_error, UV_ECONNREFUSED);
		ck_assert_uint_eq(stream_pending(&o.s), 0);
		turns(5);
		ck_assert_uint_eq(o.told[OWNER_END], 0);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(unreachable_address_is_told_from_the_loop)
{
	struct sockaddr_storage to;
	struct owner o;
	owner_init(&o);
	address_parse("255.255.255.255:80", &to); /* connect(2) fails at once */
	ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL), 0);
	ck_assert_uint_eq(o.told[OWNER_CONNECTED], 0);
	wait_until(o.told[OWNER_CONNECTED]);
	ck_assert_int_lt(o.connect_error, 0);
	owner_finish(&o);
}
END_TEST

START_TEST(fin_asked_for_while_connecting_follows_what_was_written)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct sockaddr_storage to;
		struct owner o;
		char got[4];
		int listening = socket_listen(over, &to);
		owner_init(&o);
		ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL), 0);
		stream_write(&o.s, "last", 4);
		stream_shutdown(&o.s);
		wait_until(o.told[OWNER_CONNECTED]);
		int peer = accept4(listening, NULL, NULL, SOCK_NONBLOCK);
		read_exactly(peer, got, 4);
		ck_assert_int_eq(read_to_end(peer), 0);
		close(peer);
		close(listening);
		owner_finish(&o);
	}
}
END_TEST

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
		stream_reset_on_close(&o.s, 1); /* belongs to the connection and ends nothing that lives on */
		int fd = stream_dup_fd(&o.s);
		ck_assert_int_ge(fd, 0);
		owner_finish(&o);
		owner_init(&next);
		ck_assert_int_eq(stream_open_fd(&next.s, w, &owner_ops, fd), 0);
		stream_read_start(&next.s);
		write_all(peer, "new", 3);
		wait_until(next.got_len == 3);
		stream_reset_on_close(&next.s, 0);
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

int main(void)
{
	const TTest *facts[] = {
		connects_and_carries_what_was_written_meanwhile,
		connects_from_the_given_source,
		refused_connect_is_told_from_the_loop,
		unreachable_address_is_told_from_the_loop,
		fin_asked_for_while_connecting_follows_what_was_written,
		tcp_never_waits_to_fill_a_segment,
		lost_limit_is_set_on_the_socket,
		connection_lives_on_in_the_descriptor_taken_out,
		fin_that_is_due_goes_before_the_descriptor_is_taken_out,
		stream_can_be_opened_again_after_it_closed,
	};
	return worker_suite_run("stream", facts, FACTS_LEN(facts));
}
