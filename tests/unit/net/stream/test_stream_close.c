/* test_stream_close.c: facts of closing: every state, every callback, twice; and a peer that resets in every state.
 * Teardown asserts that the loop closes clean; here descriptors are counted too. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/error.h"
#include "tests/unit/net/owner.h"
#include "tests/unit/unit.h"

enum place {
	AT_NEW,
	AT_CONNECTING,
	AT_CONNECTING_LAST,
	AT_CONNECTED,
	AT_OPEN,
	AT_OPEN_STOPPED,
	AT_OPEN_KEPT,
	AT_OPEN_UNFLUSHED,
	AT_OPEN_IN_FLIGHT,
	AT_OPEN_STARTED_WITH_KEPT,
	AT_ENDED,
	AT_SHUTTING,
	AT_SHUT,
	AT_FAILED_UNTOLD,
	AT_FAILED,
	PLACES,
};

static const enum stream_state state_at[PLACES] = {
	[AT_NEW] = STREAM_NEW,
	[AT_CONNECTING] = STREAM_CONNECTING,
	[AT_CONNECTING_LAST] = STREAM_CONNECTING_LAST,
	[AT_CONNECTED] = STREAM_OPEN,
	[AT_OPEN] = STREAM_OPEN,
	[AT_OPEN_STOPPED] = STREAM_OPEN,
	[AT_OPEN_KEPT] = STREAM_OPEN,
	[AT_OPEN_UNFLUSHED] = STREAM_OPEN,
	[AT_OPEN_IN_FLIGHT] = STREAM_OPEN,
	[AT_OPEN_STARTED_WITH_KEPT] = STREAM_OPEN,
	[AT_ENDED] = STREAM_OPEN,
	[AT_SHUTTING] = STREAM_SHUTTING,
	[AT_SHUT] = STREAM_SHUT,
	[AT_FAILED_UNTOLD] = STREAM_FAILED,
	[AT_FAILED] = STREAM_FAILED,
};

static uint8_t bulk[1 << 20];

/* The other side's descriptor, or -1. */
static int connect_to_place(struct owner *o, enum transport over, enum place place)
{
	struct sockaddr_storage to;
	int listening = socket_listen(over, &to);

	owner_init(o);
	ck_assert_int_eq(stream_connect(&o->s, w, &owner_ops, (struct sockaddr *)&to, NULL), 0);
	stream_read_start(&o->s);
	stream_write(&o->s, "early", 5);
	if (place == AT_CONNECTING_LAST)
		stream_shutdown(&o->s);
	if (place == AT_CONNECTED)
		wait_until(o->told[OWNER_CONNECTED]);
	int peer = place == AT_CONNECTED ? accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC) : -1;
	close(listening);
	return peer;
}

static void keep_some(struct owner *o, int peer)
{
	o->use_max = 1;
	write_all(peer, "kept", 4);
	wait_until(stream_kept(&o->s) == 3);
}

static void fill(struct owner *o)
{
	shrink_buffers(o->s.uv.tcp.io_watcher.fd);
	stream_write(&o->s, bulk, sizeof bulk);
	wait_until(o->s.writes);
	stream_write(&o->s, bulk, 1000);
}

/* Returns the other side's descriptor, or -1 where it is gone or not there yet. */
static int bring_to(struct owner *o, enum transport over, enum place place)
{
	if (place == AT_NEW) {
		owner_init(o);
		return -1;
	}
	if (place <= AT_CONNECTED)
		return connect_to_place(o, over, place);

	int peer = owner_open(o, over);
	switch (place) {
	case AT_OPEN_STOPPED: stream_read_stop(&o->s); break;
	case AT_OPEN_KEPT: keep_some(o, peer); break;
	case AT_OPEN_STARTED_WITH_KEPT:
		keep_some(o, peer);
		stream_read_stop(&o->s);
		stream_read_start(&o->s);
		break;
	case AT_OPEN_UNFLUSHED: stream_write(&o->s, "soon", 4); break;
	case AT_OPEN_IN_FLIGHT: fill(o); break;
	case AT_ENDED:
		shutdown(peer, SHUT_WR);
		wait_until(o->told[OWNER_END]);
		break;
	case AT_SHUTTING:
		fill(o);
		stream_shutdown(&o->s);
		break;
	case AT_SHUT:
		stream_shutdown(&o->s);
		wait_until(o->s.state == STREAM_SHUT);
		break;
	case AT_FAILED_UNTOLD:
	case AT_FAILED:
		reset(over, peer);
		stream_read_stop(&o->s);
		while (o->s.state != STREAM_FAILED) {
			stream_write(&o->s, "x", 1);
			stream_flush(&o->s);
		}
		if (place == AT_FAILED)
			wait_until(o->told[OWNER_END]);
		return -1;
	default: break;
	}
	return peer;
}

static unsigned told_sum(const struct owner *o)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < OWNER_EVENTS; i++)
		sum += o->told[i];
	return sum;
}

static void close_at(enum transport over, enum place place, void (*how)(struct stream *))
{
	struct owner o;
	int peer = bring_to(&o, over, place);

	ck_assert_int_eq(o.s.state, state_at[place]);
	unsigned told = told_sum(&o);
	how(&o.s);
	stream_close(&o.s);
	ck_assert_uint_eq(o.closed, 0);
	if (place != AT_NEW) {
		ck_assert_int_eq(o.s.state, STREAM_CLOSING);
		stream_read_start(&o.s);
		stream_flush(&o.s);
		stream_shutdown(&o.s);
		ck_assert_int_eq(stream_write(&o.s, "x", 1), CSSL_E_STATE);
		wait_until(o.closed);
	}
	turns(5);
	how(&o.s);
	turns(5);
	ck_assert_uint_eq(o.closed, place == AT_NEW ? 0 : 1);
	ck_assert_uint_eq(told_sum(&o), told);
	if (peer >= 0)
		close(peer);
	owner_finish(&o);
}

START_TEST(close_ends_every_state_with_one_on_closed)
{
	turns(1);
	close_at(OVER_TCP4, AT_OPEN, stream_close); /* libuv opens a spare descriptor of its own once */
	unsigned descriptors = open_descriptors();
	for (int over = 0; over < TRANSPORTS; over++)
		for (int place = 0; place < PLACES; place++) {
			close_at(over, place, stream_close);
			ck_assert_msg(open_descriptors() == descriptors, "place %d leaks a descriptor", place);
		}
}
END_TEST

START_TEST(abort_ends_every_state_with_one_on_closed)
{
	for (int over = 0; over < TRANSPORTS; over++)
		for (int place = 0; place < PLACES; place++)
			close_at(over, place, stream_abort);
}
END_TEST

/* Inside callbacks */

static enum owner_event close_on;

static void close_on_event(struct owner *o, enum owner_event event)
{
	if (event != close_on)
		return;
	stream_close(&o->s);
	stream_close(&o->s);
	ck_assert_uint_eq(o->closed, 0);
	o->react = NULL;
}

START_TEST(close_is_legal_inside_every_callback)
{
	for (int over = 0; over < TRANSPORTS; over++)
		for (close_on = OWNER_DATA; close_on < OWNER_FD; close_on++) {
			struct sockaddr_storage to;
			struct owner o;
			int listening = socket_listen(over, &to);
			owner_init(&o);
			o.react = close_on_event;
			ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL), 0);
			stream_write(&o.s, "hello", 5);
			stream_read_start(&o.s);
			while (!o.told[OWNER_CONNECTED])
				turn();
			int peer = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
			ck_assert_int_ge(write(peer, "hi", 2), -1);
			shutdown(peer, SHUT_WR);
			wait_until(o.closed);
			ck_assert_uint_eq(o.told[close_on], 1);
			close(peer);
			close(listening);
			owner_finish(&o);
		}
}
END_TEST

START_TEST(close_inside_on_data_of_kept_bytes_frees_them)
{
	struct owner o;
	int peer = bring_to(&o, OVER_TCP4, AT_OPEN_KEPT);
	close_on = OWNER_DATA;
	o.react = close_on_event;
	stream_read_again(&o.s);
	wait_until(o.closed);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(close_inside_on_flush_of_a_call_is_legal)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	close_on = OWNER_FLUSH;
	o.react = close_on_event;
	stream_set_flush_mark(&o.s, 10);
	stream_write(&o.s, "more than ten bytes", 19);
	wait_until(o.closed);
	ck_assert_int_eq(read_to_end(peer), 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

static struct owner *other;

static void close_the_other(struct owner *o, enum owner_event event)
{
	if (event == OWNER_DATA)
		stream_close(&other->s);
}

START_TEST(a_stream_may_close_another_that_is_due_in_the_same_turn)
{
	struct owner a, b;
	int a_peer = owner_open(&a, OVER_UNIX), b_peer = owner_open(&b, OVER_UNIX);
	a.react = close_the_other;
	other = &b;
	a.use_max = 0;
	write_all(a_peer, "x", 1);
	wait_until(a.told[OWNER_DATA]);
	wait_until(b.closed);
	owner_finish(&b);
	close(b_peer);

	b_peer = owner_open(&b, OVER_UNIX); /* now both are due at the end of this turn, the closing one first */
	stream_read_stop(&a.s);
	stream_read_start(&a.s);
	stream_write(&b.s, "never sent", 10);
	wait_until(b.closed);
	ck_assert_uint_eq(b.told[OWNER_FLUSH], 0);
	close(a_peer);
	close(b_peer);
	a.react = NULL;
	owner_finish(&a);
	owner_finish(&b);
}
END_TEST

/* The peer's view */

START_TEST(peer_sees_an_end_after_close_and_a_reset_after_abort)
{
	for (int over = 0; over < OVER_UNIX; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		owner_finish(&o);
		ck_assert_int_eq(read_to_end(peer), 0);
		close(peer);

		peer = owner_open(&o, over);
		stream_abort(&o.s);
		ck_assert_int_eq(read_to_end(peer), -1);
		close(peer);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(reset_on_close_resets_until_it_is_taken_back)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	stream_reset_on_close(&o.s, true);
	owner_finish(&o);
	ck_assert_int_eq(read_to_end(peer), -1);
	close(peer);

	peer = owner_open(&o, OVER_TCP4);
	stream_reset_on_close(&o.s, true);
	stream_reset_on_close(&o.s, false);
	owner_finish(&o);
	ck_assert_int_eq(read_to_end(peer), 0);
	close(peer);
}
END_TEST

/* Peer resets */

START_TEST(peer_reset_in_every_state_is_told_once)
{
	for (int over = 0; over < TRANSPORTS; over++)
		for (int place = AT_CONNECTED; place < AT_FAILED_UNTOLD; place++) {
			struct owner o;
			int peer = bring_to(&o, over, place);
			unsigned ends = o.told[OWNER_END];
			stream_write(&o.s, "unread", 6);
			stream_flush(&o.s);
			reset(over, peer);
			/* a stream that does nothing cannot notice; the others do */
			int notices = place != AT_OPEN_STOPPED && place != AT_ENDED;
			if (notices)
				wait_until(o.told[OWNER_END] > ends);
			turns(10);
			ck_assert_uint_le(o.told[OWNER_END], ends + 1);
			if (notices && place != AT_SHUT) /* a UNIX peer that had nothing unread just ends */
				ck_assert_msg(o.end == STREAM_RESET, "place %d over %d: %d", place, over, o.end);
			owner_finish(&o);
		}
}
END_TEST

START_TEST(peer_that_is_gone_before_the_connect_is_seen_is_told)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct sockaddr_storage to;
		struct owner o;
		int listening = socket_listen(over, &to);
		owner_init(&o);
		ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL), 0);
		stream_read_start(&o.s);
		reset(over, accept(listening, NULL, NULL));
		close(listening);
		wait_until(o.told[OWNER_END] || (o.told[OWNER_CONNECTED] && o.connect_error));
		turns(5);
		ck_assert_uint_eq(o.told[OWNER_CONNECTED], 1);
		owner_finish(&o);
	}
}
END_TEST

/* Opening that fails */

START_TEST(open_of_no_socket_fails_and_closes_it)
{
	struct owner o;
	int fds[2];
	owner_init(&o);
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(stream_open_fd(&o.s, w, &owner_ops, fds[0]), UV_ENOTSOCK);
	ck_assert_int_eq(close(fds[0]), -1);
	ck_assert_int_eq(o.s.state, STREAM_NEW);
	close(fds[1]);
	owner_finish(&o);
}
END_TEST

START_TEST(connect_to_an_unknown_family_fails_at_once)
{
	struct owner o;
	struct sockaddr_storage to = { .ss_family = AF_NETLINK };
	owner_init(&o);
	ck_assert_int_eq(stream_connect(&o.s, w, &owner_ops, (struct sockaddr *)&to, NULL), UV_EINVAL);
	ck_assert_int_eq(o.s.state, STREAM_NEW);
	owner_finish(&o);
}
END_TEST

UNIT(stream_close)
{
	const TTest *facts[] = {
		close_ends_every_state_with_one_on_closed,
		abort_ends_every_state_with_one_on_closed,
		close_is_legal_inside_every_callback,
		close_inside_on_data_of_kept_bytes_frees_them,
		close_inside_on_flush_of_a_call_is_legal,
		a_stream_may_close_another_that_is_due_in_the_same_turn,
		peer_sees_an_end_after_close_and_a_reset_after_abort,
		reset_on_close_resets_until_it_is_taken_back,
		peer_reset_in_every_state_is_told_once,
		peer_that_is_gone_before_the_connect_is_seen_is_told,
		open_of_no_socket_fails_and_closes_it,
		connect_to_an_unknown_family_fails_at_once,
	};
	return worker_suite_run("stream_close", facts, FACTS_LEN(facts));
}
