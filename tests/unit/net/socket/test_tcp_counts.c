/* test_tcp_counts.c: facts of the kernel's counts of a connection. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/socket/tcp_counts.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static int client, server;
static int kernel_counts_nothing;

/* In place of the C library's: some kernels fill TCP_INFO with zeros. */
int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	int (*of_libc)(int, int, int, void *, socklen_t *);
	void *found = dlsym(RTLD_NEXT, "getsockopt");

	memcpy(&of_libc, &found, sizeof of_libc);
	const int r = of_libc(fd, level, name, value, len);
	if (r == 0 && kernel_counts_nothing && level == IPPROTO_TCP && name == TCP_INFO)
		memset(value, 0, *len);
	return r;
}

static void make_connection(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	int listening = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(listening, (struct sockaddr *)&a, sizeof a), 0);
	ck_assert_int_eq(listen(listening, 1), 0);
	ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&a, &len), 0);
	client = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&a, sizeof a), 0);
	server = accept(listening, NULL, NULL);
	ck_assert_int_gt(server, 0);
}

static void check(uint64_t bytes_read, uint64_t bytes_written)
{
	struct tcp_counts counts;

	ck_assert_int_eq(tcp_counts_get(server, &counts), 0);
	ck_assert_uint_eq(counts.read, bytes_read);
	ck_assert_uint_eq(counts.written, bytes_written);
}

START_TEST(an_accepted_connection_begins_at_zero)
{
	check(0, 0);
}
END_TEST

START_TEST(only_what_was_read_counts_as_read)
{
	char bytes[16];

	ck_assert_int_eq(send(client, "0123456789", 10, 0), 10);
	check(0, 0);
	ck_assert_int_eq(recv(server, bytes, 4, MSG_WAITALL), 4);
	check(4, 0);
	ck_assert_int_eq(recv(server, bytes, 6, MSG_WAITALL), 6);
	check(10, 0);
}
END_TEST

START_TEST(what_the_kernel_took_counts_as_written_before_the_peer_has_it)
{
	char bytes[16];

	ck_assert_int_eq(send(server, "0123456789", 10, 0), 10);
	check(0, 10);
	ck_assert_int_eq(recv(client, bytes, 10, MSG_WAITALL), 10);
	check(0, 10);
}
END_TEST

START_TEST(the_fin_of_the_peer_is_no_byte)
{
	char byte;

	ck_assert_int_eq(send(client, "x", 1, 0), 1);
	ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
	check(0, 0);
	ck_assert_int_eq(recv(server, &byte, 1, MSG_WAITALL), 1);
	check(1, 0);
	ck_assert_int_eq(recv(server, &byte, 1, 0), 0);
	check(1, 0);
}
END_TEST

START_TEST(the_own_fin_is_no_byte)
{
	char byte;

	ck_assert_int_eq(send(server, "x", 1, 0), 1);
	ck_assert(!tcp_has_ended(server));
	ck_assert_int_eq(shutdown(server, SHUT_WR), 0);
	check(0, 1);
	ck_assert(tcp_has_ended(server));
	ck_assert_int_eq(recv(client, &byte, 1, MSG_WAITALL), 1);
	ck_assert_int_eq(recv(client, &byte, 1, 0), 0);
	check(0, 1);
	ck_assert(!tcp_has_ended(client));
}
END_TEST

START_TEST(neither_fin_is_a_byte_while_something_is_unread)
{
	char byte;

	ck_assert_int_eq(send(server, "x", 1, 0), 1);
	ck_assert_int_eq(shutdown(server, SHUT_WR), 0);
	ck_assert_int_eq(recv(client, &byte, 1, MSG_WAITALL), 1);
	ck_assert_int_eq(recv(client, &byte, 1, 0), 0);
	ck_assert_int_eq(send(client, "yz", 2, 0), 2);
	ck_assert_int_eq(shutdown(client, SHUT_WR), 0);
	check(0, 1);
	ck_assert(tcp_has_ended(server));
	ck_assert_int_eq(recv(server, &byte, 1, MSG_WAITALL), 1);
	check(1, 1);
}
END_TEST

START_TEST(a_reset_counts_fewer_bytes_than_there_were)
{
	const struct linger reset = { .l_onoff = 1 };
	struct tcp_counts counts;

	ck_assert_int_eq(send(server, "x", 1, 0), 1);
	ck_assert_int_eq(setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
	close(client);
	ck_assert_int_eq(tcp_counts_get(server, &counts), 0);
	ck_assert_uint_ne(counts.written, 1);
}
END_TEST

START_TEST(what_is_no_tcp_connection_has_no_counts)
{
	struct tcp_counts counts;
	int ends[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ck_assert_int_lt(tcp_counts_get(ends[0], &counts), 0);
}
END_TEST

static unsigned descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 64; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

START_TEST(this_kernel_counts_right_and_looking_leaves_nothing_behind)
{
	const unsigned before = descriptors();

	ck_assert_int_eq(tcp_counts_hold(), 1);
	ck_assert_uint_eq(descriptors(), before);
}
END_TEST

START_TEST(what_a_kernel_that_counts_wrong_says_is_not_believed)
{
	struct tcp_counts counts;

	kernel_counts_nothing = 1;
	ck_assert_int_eq(tcp_counts_hold(), 0);
	kernel_counts_nothing = 0;
	ck_assert_int_lt(tcp_counts_get(server, &counts), 0);
}
END_TEST

UNIT(tcp_counts)
{
	const TTest *const facts[] = {
		an_accepted_connection_begins_at_zero,
		only_what_was_read_counts_as_read,
		what_the_kernel_took_counts_as_written_before_the_peer_has_it,
		the_fin_of_the_peer_is_no_byte,
		the_own_fin_is_no_byte,
		neither_fin_is_a_byte_while_something_is_unread,
		a_reset_counts_fewer_bytes_than_there_were,
		what_is_no_tcp_connection_has_no_counts,
		what_a_kernel_that_counts_wrong_says_is_not_believed,
		this_kernel_counts_right_and_looking_leaves_nothing_behind,
	};

	return suite_run_with("tcp_counts", make_connection, facts, sizeof facts / sizeof facts[0]);
}
