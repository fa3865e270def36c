/* test_udp.c: facts of datagrams. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/loop/udp.h"
#include "net/socket/address.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

#define DATAGRAMS_MAX 2000u

struct post {
	struct udp *u;
	struct sockaddr_storage address;
	unsigned received, closed;
	uint32_t numbers[DATAGRAMS_MAX];
	size_t last_len;
	uint8_t last[UDP_DATAGRAM_MAX];
	struct sockaddr_storage from;
	void (*react)(struct post *p);
};

static void on_datagram(void *ctx, uint8_t *data, size_t len, const struct sockaddr *from)
{
	struct post *p = ctx;

	ck_assert_uint_eq(p->closed, 0);
	ck_assert_uint_lt(p->received, DATAGRAMS_MAX);
	if (len >= 4)
		memcpy(&p->numbers[p->received], data, 4);
	p->received++;
	p->last_len = len;
	memcpy(p->last, data, len);
	memset(data, 0, len); /* it is ours to change */
	memcpy(&p->from, from, address_len(from));
	if (p->react)
		p->react(p);
}

static void on_closed(void *ctx)
{
	((struct post *)ctx)->closed++;
}

static const struct udp_ops post_ops = { on_datagram, on_closed, NULL };

static void post_open(struct post *p, const char *text, int receive)
{
	int error = 0;

	memset(p, 0, sizeof *p);
	ck_assert_int_eq(address_parse(text, &p->address), 0);
	p->u = udp_create(w, (struct sockaddr *)&p->address, receive, &post_ops, p, &error);
	ck_assert_ptr_nonnull(p->u);
	ck_assert_int_eq(udp_address(p->u, &p->address), 0);
}

static void post_close(struct post *p)
{
	udp_close(p->u);
	udp_close(p->u);
	ck_assert_uint_eq(p->closed, 0);
	wait_until(p->closed);
}

static void post_send(struct post *from, struct post *to, uint32_t number, size_t len)
{
	uint8_t data[UDP_DATAGRAM_MAX + 1] = { 0 };

	memcpy(data, &number, 4);
	udp_send(from->u, data, len, (struct sockaddr *)&to->address);
}

static struct post a, b;

START_TEST(datagrams_arrive_whole_with_their_sender_s_address)
{
	const char *texts[] = { "127.0.0.1:0", "[::1]:0" };
	for (size_t i = 0; i < FACTS_LEN(texts); i++) {
		post_open(&a, texts[i], 0);
		post_open(&b, texts[i], 1);
		static const size_t lens[] = { 0, 1, 1400, UDP_DATAGRAM_MAX };
		for (size_t k = 0; k < FACTS_LEN(lens); k++) {
			uint8_t data[UDP_DATAGRAM_MAX];
			memset(data, (int)k + 1, sizeof data);
			udp_send(a.u, data, lens[k], (struct sockaddr *)&b.address);
			memset(data, 0xff, sizeof data); /* it was copied */
			wait_until(b.received == k + 1);
			ck_assert_uint_eq(b.last_len, lens[k]);
			for (size_t at = 0; at < lens[k]; at++)
				ck_assert(b.last[at] == k + 1);
		}
		ck_assert_mem_eq(&b.from, &a.address, address_len((struct sockaddr *)&a.address));
		ck_assert_uint_eq(udp_dropped(a.u), 0);
		post_close(&a);
		post_close(&b);
	}
}
END_TEST

START_TEST(a_batch_leaves_at_the_end_of_the_turn_in_order)
{
	post_open(&a, "127.0.0.1:0", 0);
	post_open(&b, "127.0.0.1:0", 1);
	for (uint32_t i = 0; i < 50; i++)
		post_send(&a, &b, i, 100);
	ck_assert_uint_eq(b.received, 0);
	wait_until(b.received == 50);
	for (uint32_t i = 0; i < 50; i++)
		ck_assert_uint_eq(b.numbers[i], i);
	post_close(&a);
	post_close(&b);
}
END_TEST

START_TEST(more_than_a_batch_leaves_at_once)
{
	struct post other;
	post_open(&a, "127.0.0.1:0", 0);
	post_open(&b, "127.0.0.1:0", 1);
	post_open(&other, "127.0.0.1:0", 1);
	for (uint32_t i = 0; i < 150; i++)
		post_send(&a, i % 2 ? &b : &other, i, 1000);
	wait_until(b.received == 75 && other.received == 75);
	ck_assert_uint_eq(udp_dropped(a.u), 0);
	post_close(&a);
	post_close(&b);
	post_close(&other);
}
END_TEST

START_TEST(full_kernel_drops_at_the_receiver_and_never_blocks)
{
	post_open(&a, "127.0.0.1:0", 0);
	post_open(&b, "127.0.0.1:0", 0); /* it never reads */
	for (uint32_t i = 0; i < 20000; i++)
		post_send(&a, &b, i, 1400);
	turns(2);
	post_close(&a);
	post_close(&b);
}
END_TEST

START_TEST(datagram_that_cannot_go_is_counted_and_stops_no_other)
{
	struct sockaddr_storage nowhere;
	post_open(&a, "127.0.0.1:0", 0);
	post_open(&b, "127.0.0.1:0", 1);
	address_parse("255.255.255.255:9", &nowhere); /* EACCES: broadcast was not allowed */
	post_send(&a, &b, 1, 10);
	udp_send(a.u, "x", 1, (struct sockaddr *)&nowhere);
	post_send(&a, &b, 2, 10);
	wait_until(b.received == 2);
	ck_assert_uint_eq(udp_dropped(a.u), 1);
	post_send(&a, &b, 3, UDP_DATAGRAM_MAX + 1);
	ck_assert_uint_eq(udp_dropped(a.u), 2);
	post_close(&a);
	post_close(&b);
}
END_TEST

START_TEST(datagram_that_is_too_long_is_not_taken_for_a_shorter_one)
{
	static uint8_t data[UDP_DATAGRAM_MAX + 100];
	post_open(&b, "127.0.0.1:0", 1);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sendto(fd, data, sizeof data, 0, (struct sockaddr *)&b.address, sizeof(struct sockaddr_in));
	sendto(fd, data, 5, 0, (struct sockaddr *)&b.address, sizeof(struct sockaddr_in));
	wait_until(b.received == 1);
	ck_assert_uint_eq(b.last_len, 5);
	ck_assert_uint_eq(udp_dropped(b.u), 1);
	close(fd);
	post_close(&b);
}
END_TEST

START_TEST(queued_datagrams_are_sent_before_closing)
{
	post_open(&a, "127.0.0.1:0", 0);
	post_open(&b, "127.0.0.1:0", 1);
	post_send(&a, &b, 1, 10);
	post_close(&a);
	wait_until(b.received == 1);
	udp_close(NULL);
	post_close(&b);
}
END_TEST

static void close_self(struct post *p)
{
	udp_close(p->u);
}

START_TEST(socket_may_be_closed_from_within_on_datagram)
{
	post_open(&a, "127.0.0.1:0", 0);
	post_open(&b, "127.0.0.1:0", 1);
	b.react = close_self;
	for (uint32_t i = 0; i < 10; i++)
		post_send(&a, &b, i, 10);
	wait_until(b.closed);
	ck_assert_uint_eq(b.received, 1);
	post_close(&a);
}
END_TEST

START_TEST(impossible_address_is_an_error)
{
	struct sockaddr_storage address;
	int error = 0;
	address_parse("192.0.2.1:0", &address);
	ck_assert_ptr_null(udp_create(w, (struct sockaddr *)&address, 1, &post_ops, &a, &error));
	ck_assert_int_eq(error, UV_EADDRNOTAVAIL);
}
END_TEST

#define SENDERS 64u

static void post_hear(struct post *p, const struct sockaddr_storage *at, enum socket_place place)
{
	int error = 0, fd = udp_bind((const struct sockaddr *)at, place);

	memset(p, 0, sizeof *p);
	ck_assert_int_ge(fd, 0);
	p->u = udp_create_fd(w, fd, &post_ops, p, &error);
	ck_assert_ptr_nonnull(p->u);
	ck_assert_int_eq(udp_address(p->u, &p->address), 0);
}

static unsigned of_number(const struct post *p, uint32_t number)
{
	unsigned found = 0;

	for (unsigned i = 0; i < p->received; i++)
		found += p->numbers[i] == number;
	return found;
}

START_TEST(sockets_beside_each_other_share_the_senders)
{
	const char *texts[] = { "127.0.0.1:0", "[::1]:0" };
	for (size_t i = 0; i < FACTS_LEN(texts); i++) {
		struct post senders[SENDERS];
		struct sockaddr_storage any;
		ck_assert_int_eq(address_parse(texts[i], &any), 0);
		post_hear(&a, &any, SOCKET_FIRST);
		post_hear(&b, &a.address, SOCKET_BESIDE);
		for (uint32_t k = 0; k < SENDERS; k++) {
			post_open(&senders[k], texts[i], 0);
			for (unsigned times = 0; times < 8; times++)
				post_send(&senders[k], &a, k, 4);
		}
		wait_until(a.received + b.received == 8 * SENDERS);
		for (uint32_t k = 0; k < SENDERS; k++)
			ck_assert_uint_eq(of_number(&a, k) % 8, 0); /* each to the same one */
		ck_assert_uint_gt(a.received, 0);
		ck_assert_uint_gt(b.received, 0);
		for (uint32_t k = 0; k < SENDERS; k++)
			post_close(&senders[k]);
		post_close(&a);
		post_close(&b);
	}
}
END_TEST

START_TEST(first_socket_needs_the_address_alone)
{
	post_open(&a, "127.0.0.1:0", 1);
	ck_assert_int_eq(udp_bind((struct sockaddr *)&a.address, SOCKET_FIRST), UV_EADDRINUSE);
	post_close(&a);
}
END_TEST

UNIT(udp)
{
	const TTest *facts[] = {
		datagrams_arrive_whole_with_their_sender_s_address,
		a_batch_leaves_at_the_end_of_the_turn_in_order,
		more_than_a_batch_leaves_at_once,
		full_kernel_drops_at_the_receiver_and_never_blocks,
		datagram_that_cannot_go_is_counted_and_stops_no_other,
		datagram_that_is_too_long_is_not_taken_for_a_shorter_one,
		queued_datagrams_are_sent_before_closing,
		socket_may_be_closed_from_within_on_datagram,
		impossible_address_is_an_error,
		sockets_beside_each_other_share_the_senders,
		first_socket_needs_the_address_alone,
	};
	return worker_suite_run("udp", facts, FACTS_LEN(facts));
}
