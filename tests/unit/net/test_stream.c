/* test_stream.c: facts of bytes going through a stream: reading, keeping, writing, flushing, ends. */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/address.h"
#include "owner.h"
#include "proto/error.h"

#define BULK ((size_t)4 << 20)

static uint8_t bulk[BULK], back[BULK];

/* Reading */

START_TEST(bytes_come_in_order)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		pattern(bulk, sizeof bulk, 0);
		write_all(peer, bulk, sizeof bulk);
		wait_until(o.got_len == sizeof bulk);
		assert_pattern(o.got, o.got_len, 0);
		close(peer);
		wait_until(o.told[OWNER_END]);
		ck_assert_int_eq(o.end, STREAM_EOF);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(unused_bytes_stand_in_front_of_the_next)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.use_max = 0;
	write_all(peer, "abc", 3);
	wait_until(o.told[OWNER_DATA] == 1);
	ck_assert_uint_eq(stream_kept(&o.s), 3);
	ck_assert_mem_eq(stream_kept_data(&o.s), "abc", 3);
	o.use_max = SIZE_MAX;
	write_all(peer, "def", 3);
	wait_until(o.told[OWNER_DATA] == 2);
	ck_assert_uint_eq(o.data_len, 6);
	ck_assert_mem_eq(o.got, "abcdef", 6);
	ck_assert_uint_eq(stream_kept(&o.s), 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(partly_used_input_is_never_lost_or_doubled)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		o.use_max = 600;
		size_t sent = 0;
		pattern(bulk, sizeof bulk, 0);
		for (unsigned i = 0; i < 200; i++) {
			write_all(peer, bulk + sent, 997);
			sent += 997;
			turns(1);
			if (i % 3 == 0)
				stream_read_again(&o.s);
		}
		while (o.got_len < sent) {
			turn();
			stream_read_again(&o.s);
		}
		assert_pattern(o.got, sent, 0);
		close(peer);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(kept_bytes_come_again_when_asked_for)
{
	struct owner o;
	int peer = owner_open(&o, OVER_UNIX);
	o.use_max = 1;
	write_all(peer, "xyz", 3);
	wait_until(o.told[OWNER_DATA] == 1);
	stream_read_again(&o.s);
	ck_assert_uint_eq(o.told[OWNER_DATA], 2);
	stream_read_again(&o.s);
	ck_assert_mem_eq(o.got, "xyz", 3);
	stream_read_again(&o.s); /* nothing is kept: no call */
	ck_assert_uint_eq(o.told[OWNER_DATA], 3);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void stop_reading(struct owner *o, enum owner_event event)
{
	if (event == OWNER_DATA)
		stream_read_stop(&o->s);
}

START_TEST(stopped_stream_gets_nothing_more)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		o.react = stop_reading;
		write_all(peer, "one", 3);
		wait_until(o.told[OWNER_DATA] == 1);
		write_all(peer, "two", 3);
		close(peer);
		turns(20);
		ck_assert_uint_eq(o.told[OWNER_DATA], 1);
		ck_assert_uint_eq(o.told[OWNER_END], 0);
		o.react = NULL;
		stream_read_start(&o.s);
		wait_until(o.told[OWNER_END]);
		ck_assert_mem_eq(o.got, "onetwo", 6);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(start_delivers_what_a_stopping_owner_left)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.react = stop_reading;
	o.use_max = 1;
	write_all(peer, "abc", 3);
	wait_until(o.told[OWNER_DATA] == 1);
	o.react = NULL;
	o.use_max = SIZE_MAX;
	stream_read_start(&o.s);
	ck_assert_uint_eq(o.told[OWNER_DATA], 1); /* not from within the call */
	wait_until(o.told[OWNER_DATA] == 2);
	ck_assert_mem_eq(o.got, "abc", 3);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void ask_again(struct owner *o, enum owner_event event)
{
	if (event == OWNER_DATA)
		stream_read_again(&o->s);
}

START_TEST(asking_again_from_within_on_data_does_not_nest)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.react = ask_again;
	o.use_max = 2;
	write_all(peer, "abcd", 4);
	wait_until(o.told[OWNER_DATA] == 1);
	stream_read_again(&o.s);
	ck_assert_uint_eq(o.told[OWNER_DATA], 2);
	ck_assert_mem_eq(o.got, "abcd", 4);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(bytes_put_back_come_first)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	ck_assert_int_eq(stream_keep(&o.s, "middle-", 7), 0);
	ck_assert_int_eq(stream_keep(&o.s, "first-", 6), 0);
	write_all(peer, "last", 4);
	wait_until(o.got_len == 17);
	ck_assert_mem_eq(o.got, "first-middle-last", 17);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(bytes_put_back_come_without_any_new_ones)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	ck_assert_int_eq(stream_keep(&o.s, "early", 5), 0);
	wait_until(o.got_len == 5);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(an_owner_that_uses_nothing_is_ended_at_the_buffer_s_size)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.use_max = 0;
	while (!o.told[OWNER_END]) {
		(void)!write(peer, bulk, 65536);
		turn();
	}
	ck_assert_int_eq(o.end, STREAM_ERROR);
	ck_assert_int_eq(o.end_error, UV_ENOBUFS);
	ck_assert_uint_eq(o.data_max, WORKER_READ_BUFFER_LEN);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(one_read_a_turn_and_no_more_than_the_read_size)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	stream_set_read_max(&o.s, 10000);
	write_all(peer, bulk, 60000);
	wait_until(o.told[OWNER_DATA]);
	while (o.got_len < 60000) {
		unsigned before = o.told[OWNER_DATA];
		turns(1);
		ck_assert_uint_le(o.told[OWNER_DATA], before + 1);
	}
	ck_assert_uint_le(o.data_max, 10000);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(a_sender_without_end_does_not_starve_another)
{
	struct owner loud, quiet;
	int loud_peer = owner_open(&loud, OVER_UNIX), quiet_peer = owner_open(&quiet, OVER_UNIX);
	int big = 4 << 20;
	setsockopt(loud_peer, SOL_SOCKET, SO_SNDBUFFORCE, &big, sizeof big);
	(void)!write(loud_peer, bulk, sizeof bulk);
	write_all(quiet_peer, "hello", 5);
	size_t loud_before = loud.got_len;
	wait_until(quiet.got_len == 5);
	ck_assert_uint_le(loud.got_len - loud_before, 2 * WORKER_READ_BUFFER_LEN);
	close(loud_peer);
	close(quiet_peer);
	owner_finish(&loud);
	owner_finish(&quiet);
}
END_TEST

/* Ends */

START_TEST(data_before_a_reset_is_not_taken_for_a_whole)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		stream_write(&o.s, "unread", 6); /* makes a UNIX close a reset */
		turns(2);
		write_all(peer, "half an answ", 12);
		reset(over, peer);
		wait_until(o.told[OWNER_END]);
		ck_assert_int_eq(o.end, STREAM_RESET);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(what_came_before_a_failed_write_is_delivered_and_then_the_reset)
{
	struct owner o;
	int peer = owner_open(&o, OVER_UNIX);
	stream_read_stop(&o.s);
	write_all(peer, "last words", 10);
	close(peer);
	ck_assert_int_eq(stream_write(&o.s, "to nobody", 9), 0);
	stream_read_start(&o.s);
	wait_until(o.told[OWNER_END]);
	ck_assert_mem_eq(o.got, "last words", 10);
	ck_assert_int_eq(o.end, STREAM_RESET);
	ck_assert_uint_eq(o.told[OWNER_END], 1);
	ck_assert_uint_eq(stream_pending(&o.s), 0);
	owner_finish(&o);
}
END_TEST

START_TEST(a_failed_write_of_a_stopped_stream_is_told)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		stream_read_stop(&o.s);
		reset(over, peer);
		while (!o.told[OWNER_END]) {
			stream_write(&o.s, "x", 1);
			turn();
		}
		ck_assert_int_eq(o.end, STREAM_RESET);
		ck_assert_int_eq(stream_write(&o.s, "x", 1), CSSL_E_STATE);
		ck_assert_ptr_null(stream_reserve(&o.s, 1));
		owner_finish(&o);
	}
}
END_TEST

START_TEST(a_failed_write_is_told_when_reading_stops_after_it)
{
	struct owner o;
	int peer = owner_open(&o, OVER_UNIX);
	o.react = stop_reading;
	write_all(peer, "last words", 10);
	close(peer);
	stream_write(&o.s, "to nobody", 9);
	stream_flush(&o.s);
	ck_assert_int_eq(o.s.state, STREAM_FAILED);
	wait_until(o.told[OWNER_END]);
	ck_assert_uint_eq(o.told[OWNER_DATA], 1);
	ck_assert_int_eq(o.end, STREAM_RESET);
	owner_finish(&o);
}
END_TEST

START_TEST(writing_goes_on_after_the_peer_s_end)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		char got[5];
		int peer = owner_open(&o, over);
		shutdown(peer, SHUT_WR);
		wait_until(o.told[OWNER_END]);
		ck_assert_int_eq(o.end, STREAM_EOF);
		ck_assert_int_eq(stream_write(&o.s, "later", 5), 0);
		read_exactly(peer, got, 5);
		ck_assert_mem_eq(got, "later", 5);
		stream_shutdown(&o.s);
		ck_assert_int_eq(read_to_end(peer), 0);
		owner_finish(&o);
		close(peer);
	}
}
END_TEST

START_TEST(kept_bytes_can_be_read_after_the_end)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	o.use_max = 1;
	write_all(peer, "abc", 3);
	close(peer);
	wait_until(o.told[OWNER_END]);
	o.use_max = SIZE_MAX;
	stream_read_again(&o.s);
	ck_assert_mem_eq(o.got, "abc", 3);
	owner_finish(&o);
}
END_TEST

/* Writing */

START_TEST(bytes_go_in_order)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		struct owner o;
		int peer = owner_open(&o, over);
		size_t sent = 0;
		shrink_buffers(o.s.uv.tcp.io_watcher.fd);
		pattern(bulk, sizeof bulk, 0);
		for (unsigned i = 0; sent < 1000000; i++) {
			size_t len = 1 + (i * 7919) % 40000;
			ck_assert_int_eq(stream_write(&o.s, bulk + sent, len), 0);
			sent += len;
		}
		ck_assert_uint_gt(stream_pending(&o.s), 0);
		read_exactly(peer, back, sent);
		assert_pattern(back, sent, 0);
		wait_until(o.written == sent);
		ck_assert_uint_eq(stream_pending(&o.s), 0);
		close(peer);
		owner_finish(&o);
	}
}
END_TEST

START_TEST(output_is_flushed_at_the_end_of_the_turn_in_one_piece)
{
	struct owner o;
	int end, peer = owner_open(&o, OVER_TCP4);
	stream_write(&o.s, "one ", 4);
	stream_write(&o.s, "two ", 4);
	stream_write(&o.s, "three", 5);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 0);
	turns(1);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 13);
	ck_assert_uint_eq(o.told[OWNER_FLUSH], 1);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(output_is_flushed_at_once_at_the_mark)
{
	struct owner o;
	int end, peer = owner_open(&o, OVER_TCP4);
	stream_set_flush_mark(&o.s, 1000);
	stream_write(&o.s, bulk, 999);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 0);
	stream_write(&o.s, bulk, 1);
	ck_assert_int_eq(read_some(peer, back, sizeof back, &end), 1000);
	ck_assert_uint_eq(o.told[OWNER_WRITTEN], 0); /* told from the loop */
	wait_until(o.told[OWNER_WRITTEN]);
	ck_assert_uint_eq(o.written, 1000);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(one_write_waits_for_the_kernel_and_nothing_is_flushed_meanwhile)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	shrink_buffers(o.s.uv.tcp.io_watcher.fd);
	pattern(bulk, sizeof bulk, 0);
	stream_write(&o.s, bulk, 3000000);
	wait_until(o.s.writes == 1);
	unsigned flushes = o.told[OWNER_FLUSH];
	for (unsigned i = 0; i < 10; i++) {
		stream_write(&o.s, bulk + 3000000 + i * 100, 100);
		stream_flush(&o.s);
		turns(1);
	}
	ck_assert_uint_eq(o.s.writes, 1);
	ck_assert_uint_eq(o.told[OWNER_FLUSH], flushes);
	read_exactly(peer, back, 3001000);
	assert_pattern(back, 3001000, 0);
	ck_assert_uint_gt(o.told[OWNER_FLUSH], flushes);
	close(peer);
	owner_finish(&o);
}
END_TEST

START_TEST(reserved_room_is_written_in_place)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	size_t len, total = 0;
	pattern(bulk, sizeof bulk, 0);
	for (size_t step = 1; step < 30000; step += 1777) {
		uint8_t *room = stream_reserve(&o.s, step + 100);
		ck_assert_ptr_nonnull(room);
		memcpy(room, bulk + total, step);
		stream_commit(&o.s, step);
		total += step;
	}
	stream_flush(&o.s);
	ck_assert_ptr_null(stream_output(&o.s, &len));
	ck_assert_uint_eq(len, 0);
	read_exactly(peer, back, total);
	assert_pattern(back, total, 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void add_tail(struct owner *o, enum owner_event event)
{
	size_t len;
	uint8_t *out = stream_output(&o->s, &len);

	if (event != OWNER_FLUSH || len == 0)
		return;
	out[0] = (uint8_t)len; /* in place, as a seal does */
	ck_assert_ptr_nonnull(stream_reserve(&o->s, 70000));
	out = stream_output(&o->s, &len);
	memcpy(out + len, "tail", 4);
	stream_commit(&o->s, 4);
}

START_TEST(owner_may_add_and_change_just_before_a_flush)
{
	struct owner o;
	char got[9];
	int peer = owner_open(&o, OVER_TCP4);
	o.react = add_tail;
	stream_write(&o.s, "?body", 5);
	stream_shutdown(&o.s);
	read_exactly(peer, got, 9);
	ck_assert_mem_eq(got, "\5bodytail", 9);
	ck_assert_int_eq(read_to_end(peer), 0);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void write_more(struct owner *o, enum owner_event event)
{
	if (event == OWNER_WRITTEN && o->written < BULK)
		stream_write(&o->s, bulk, 50000);
}

START_TEST(producer_driven_by_written_bytes_does_not_starve_reading)
{
	struct owner o, other;
	int peer = owner_open(&o, OVER_UNIX), other_peer = owner_open(&other, OVER_UNIX), end;
	o.react = write_more;
	stream_write(&o.s, bulk, 50000);
	write_all(other_peer, "hello", 5);
	while (other.got_len < 5) {
		while (read_some(peer, back, sizeof back, &end) > 0)
			;
		ck_assert_uint_lt(o.written, BULK / 2);
		turns(1);
	}
	close(peer);
	close(other_peer);
	owner_finish(&o);
	owner_finish(&other);
}
END_TEST

START_TEST(idle_streams_hold_no_buffer)
{
	struct owner o;
	int peer = owner_open(&o, OVER_TCP4);
	shrink_buffers(o.s.uv.tcp.io_watcher.fd);
	stream_write(&o.s, bulk, 1000000);
	write_all(peer, "abc", 3);
	read_exactly(peer, back, 1000000);
	wait_until(o.written == 1000000 && o.got_len == 3);
	ck_assert_ptr_null(o.s.out.data);
	ck_assert_ptr_null(o.s.kept.data);
	ck_assert_uint_eq(o.s.writes, 0);
	ck_assert_ptr_nonnull(stream_reserve(&o.s, 100)); /* and commits nothing */
	turns(2);
	ck_assert_ptr_null(o.s.out.data);
	close(peer);
	owner_finish(&o);
}
END_TEST

static void assert_fin_follows(enum transport over, uint32_t mark)
{
	struct owner o;
	int peer = owner_open(&o, over), end = 0;
	size_t len = 0;

	shrink_buffers(o.s.uv.tcp.io_watcher.fd);
	stream_set_flush_mark(&o.s, mark);
	pattern(bulk, 500000, 0);
	stream_write(&o.s, bulk, 500000);
	stream_shutdown(&o.s);
	stream_shutdown(&o.s);
	ck_assert_int_eq(stream_write(&o.s, "x", 1), CSSL_E_STATE);
	while (!end) {
		ssize_t n = read_some(peer, back + len, sizeof back - len, &end);
		ck_assert_int_ge(n, 0);
		len += (size_t)n;
		turns(1);
	}
	ck_assert_uint_eq(len, 500000);
	assert_pattern(back, len, 0);
	ck_assert_int_eq(o.s.state, STREAM_SHUT);
	close(peer);
	owner_finish(&o);
}

START_TEST(fin_follows_pending_output)
{
	for (int over = 0; over < TRANSPORTS; over++) {
		assert_fin_follows(over, STREAM_FLUSH_MARK_DEFAULT);
		assert_fin_follows(over, UINT32_MAX); /* flushed only when the FIN is due already */
	}
}
END_TEST

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

START_TEST(stream_can_be_opened_again_after_it_closed)
{
	struct owner o;
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
		bytes_come_in_order,
		unused_bytes_stand_in_front_of_the_next,
		partly_used_input_is_never_lost_or_doubled,
		kept_bytes_come_again_when_asked_for,
		stopped_stream_gets_nothing_more,
		start_delivers_what_a_stopping_owner_left,
		asking_again_from_within_on_data_does_not_nest,
		bytes_put_back_come_first,
		bytes_put_back_come_without_any_new_ones,
		an_owner_that_uses_nothing_is_ended_at_the_buffer_s_size,
		one_read_a_turn_and_no_more_than_the_read_size,
		a_sender_without_end_does_not_starve_another,
		data_before_a_reset_is_not_taken_for_a_whole,
		what_came_before_a_failed_write_is_delivered_and_then_the_reset,
		a_failed_write_of_a_stopped_stream_is_told,
		a_failed_write_is_told_when_reading_stops_after_it,
		writing_goes_on_after_the_peer_s_end,
		kept_bytes_can_be_read_after_the_end,
		bytes_go_in_order,
		output_is_flushed_at_the_end_of_the_turn_in_one_piece,
		output_is_flushed_at_once_at_the_mark,
		one_write_waits_for_the_kernel_and_nothing_is_flushed_meanwhile,
		reserved_room_is_written_in_place,
		owner_may_add_and_change_just_before_a_flush,
		producer_driven_by_written_bytes_does_not_starve_reading,
		idle_streams_hold_no_buffer,
		fin_follows_pending_output,
		connects_and_carries_what_was_written_meanwhile,
		connects_from_the_given_source,
		refused_connect_is_told_from_the_loop,
		unreachable_address_is_told_from_the_loop,
		fin_asked_for_while_connecting_follows_what_was_written,
		tcp_never_waits_to_fill_a_segment,
		lost_limit_is_set_on_the_socket,
		connection_lives_on_in_the_descriptor_taken_out,
		stream_can_be_opened_again_after_it_closed,
	};
	return worker_suite_run("stream", facts, FACTS_LEN(facts));
}
