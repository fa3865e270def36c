/* test_stream_connect.c: facts of connecting. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket/address.h"
#include "tests/unit/net/owner.h"
#include "tests/unit/unit.h"

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

/* A connection that is not there yet when connect(2) returns: the kernel drops what asks for one more connection than
 * the listener may let wait, and asks again after a second. */

struct busy_listener {
	int listening, waiting;
	struct sockaddr_storage address;
};

static void busy_listener_open(struct busy_listener *b)
{
	b->listening = socket_listen(OVER_TCP4, &b->address);
	ck_assert_int_eq(listen(b->listening, 0), 0);
	b->waiting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(b->waiting, (struct sockaddr *)&b->address, sizeof(struct sockaddr_in)), 0);
}

static void busy_listener_takes(struct busy_listener *b)
{
	close(accept4(b->listening, NULL, NULL, SOCK_CLOEXEC));
	close(b->waiting);
}

static void connect_that_waits(struct owner *o, struct busy_listener *b)
{
	busy_listener_open(b);
	owner_init(o);
	ck_assert_int_eq(stream_connect(&o->s, w, &owner_ops, (struct sockaddr *)&b->address, NULL), 0);
	turns(5);
	ck_assert_uint_eq(o->told[OWNER_CONNECTED], 0);
	ck_assert_int_eq(o->s.state, STREAM_CONNECTING);
}

START_TEST(connect_that_has_to_wait_is_told_when_it_is_there)
{
	struct busy_listener b;
	struct owner o;
	char got[5];
	connect_that_waits(&o, &b);
	stream_write(&o.s, "early", 5);
	stream_read_start(&o.s);
	busy_listener_takes(&b);
	wait_until(o.told[OWNER_CONNECTED]);
	ck_assert_int_eq(o.connect_error, 0);
	int peer = accept4(b.listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	read_exactly(peer, got, 5);
	write_all(peer, "hello", 5);
	wait_until(o.got_len == 5);
	close(peer);
	close(b.listening);
	owner_finish(&o);
	ck_assert_uint_eq(o.told[OWNER_CONNECTED], 1);
}
END_TEST

START_TEST(connect_that_had_to_wait_may_be_refused)
{
	struct busy_listener b;
	struct owner o;
	connect_that_waits(&o, &b);
	stream_write(&o.s, "lost", 4);
	close(b.listening);
	close(b.waiting);
	wait_until(o.told[OWNER_CONNECTED]);
	ck_assert_int_eq(o.connect_error, UV_ECONNREFUSED);
	ck_assert_uint_eq(stream_pending(&o.s), 0);
	owner_finish(&o);
	ck_assert_uint_eq(o.told[OWNER_END], 0);
}
END_TEST

START_TEST(connect_that_waits_can_be_given_up)
{
	struct busy_listener b;
	struct owner o;
	connect_that_waits(&o, &b);
	owner_finish(&o);
	ck_assert_uint_eq(o.told[OWNER_CONNECTED], 0);
	close(b.listening);
	close(b.waiting);
}
END_TEST

UNIT(stream_connect)
{
	const TTest *facts[] = {
		connects_and_carries_what_was_written_meanwhile,
		connects_from_the_given_source,
		refused_connect_is_told_from_the_loop,
		unreachable_address_is_told_from_the_loop,
		fin_asked_for_while_connecting_follows_what_was_written,
		connect_that_has_to_wait_is_told_when_it_is_there,
		connect_that_had_to_wait_may_be_refused,
		connect_that_waits_can_be_given_up,
	};
	return worker_suite_run("stream_connect", facts, FACTS_LEN(facts));
}
