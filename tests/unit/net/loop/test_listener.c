/* test_listener.c: facts of listening. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/loop/listener.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "net/socket/tcp_counts.h"
#include "tests/unit/net/fixture.h"
#include "tests/unit/unit.h"

#define CLIENTS_MAX 300u

struct door {
	struct listener *l;
	int fds[CLIENTS_MAX];
	unsigned accepted, closed;
	struct sockaddr_storage last;
	void (*react)(struct door *d);
};

static void on_accept(void *ctx, int fd, const struct sockaddr_storage *peer)
{
	struct door *d = ctx;

	ck_assert_uint_eq(d->closed, 0);
	ck_assert_uint_lt(d->accepted, CLIENTS_MAX);
	d->fds[d->accepted++] = fd;
	d->last = *peer;
	if (d->react)
		d->react(d);
}

static void on_closed(void *ctx)
{
	((struct door *)ctx)->closed++;
}

static const struct listener_ops door_ops = { on_accept, on_closed };

static int door_open(struct door *d, const char *text, unsigned mode)
{
	struct sockaddr_storage a;
	int error = 0;

	memset(d, 0, sizeof *d);
	ck_assert_int_eq(address_parse(text, &a), 0);
	d->l = listener_create(w, (struct sockaddr *)&a, 128, mode, &door_ops, d, &error);
	ck_assert_int_eq(d->l == NULL, error < 0);
	return error;
}

static void door_close(struct door *d)
{
	listener_close(d->l);
	listener_close(d->l);
	ck_assert_uint_eq(d->closed, 0);
	wait_until(d->closed);
	for (unsigned i = 0; i < d->accepted; i++)
		close(d->fds[i]);
	ck_assert_uint_eq(d->closed, 1);
}

static int client_of(const struct sockaddr *to)
{
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	if (connect(fd, to, address_len(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int client(struct door *d)
{
	struct sockaddr_storage a;

	ck_assert_int_eq(listener_address(d->l, &a), 0);
	int fd = client_of((struct sockaddr *)&a);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static const char *path_text(void)
{
	static char text[ADDRESS_TEXT_MAX];

	snprintf(text, sizeof text, "unix:%s/door", temp_dir());
	return text;
}

START_TEST(connections_come_non_blocking_and_with_their_address)
{
	const char *texts[] = { "127.0.0.1:0", "[::1]:0", path_text() };
	for (size_t i = 0; i < FACTS_LEN(texts); i++) {
		struct door d;
		struct sockaddr_storage local;
		socklen_t len = sizeof local;
		ck_assert_int_eq(door_open(&d, texts[i], 0), 0);
		int fd = client(&d);
		wait_until(d.accepted == 1);
		ck_assert_int_ne(fcntl(d.fds[0], F_GETFL) & O_NONBLOCK, 0);
		ck_assert_int_eq(fcntl(d.fds[0], F_GETFD), FD_CLOEXEC);
		memset(&local, 0, sizeof local);
		getsockname(fd, (struct sockaddr *)&local, &len);
		ck_assert_int_eq(d.last.ss_family, local.ss_family);
		ck_assert_uint_eq(address_port((struct sockaddr *)&d.last), address_port((struct sockaddr *)&local));
		close(fd);
		door_close(&d);
	}
}
END_TEST

START_TEST(no_segment_of_an_accepted_connection_waits_to_be_full)
{
	const char *const texts[] = { "127.0.0.1:0", "[::1]:0" };
	for (size_t i = 0; i < FACTS_LEN(texts); i++) {
		struct door d;
		int on = 0;
		socklen_t len = sizeof on;
		ck_assert_int_eq(door_open(&d, texts[i], 0), 0);
		int fd = client(&d);
		wait_until(d.accepted == 1);
		ck_assert_int_eq(getsockopt(d.fds[0], IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
		ck_assert_int_ne(on, 0);
		close(fd);
		door_close(&d);
	}
}
END_TEST

START_TEST(a_byte_that_a_client_calls_urgent_is_a_byte_as_others)
{
	struct door d;
	struct tcp_counts counts;
	char said[8];

	ck_assert_int_eq(door_open(&d, "127.0.0.1:0", 0), 0);
	int fd = client(&d);
	wait_until(d.accepted == 1);
	ck_assert_int_eq(send(fd, "ab", 2, 0), 2);
	ck_assert_int_eq(send(fd, "!", 1, MSG_OOB), 1);
	ck_assert_int_eq(send(fd, "cd", 2, 0), 2);
	size_t got = 0;
	for (ssize_t n; got < 5 && (n = recv(d.fds[0], said + got, sizeof said - got, 0)) > 0;)
		got += (size_t)n;
	ck_assert_uint_eq(got, 5);
	ck_assert_int_eq(memcmp(said, "ab!cd", 5), 0);
	ck_assert_int_eq(tcp_counts_get(d.fds[0], &counts), 0);
	ck_assert_uint_eq(counts.read, 5);
	close(fd);
	door_close(&d);
}
END_TEST

START_TEST(many_connections_are_accepted_a_bounded_number_a_turn)
{
	struct door d;
	static int fds[100];
	ck_assert_int_eq(door_open(&d, "127.0.0.1:0", 0), 0);
	for (unsigned i = 0; i < 100; i++)
		fds[i] = client(&d);
	while (d.accepted < 100) {
		unsigned before = d.accepted;
		turns(1);
		ck_assert_uint_le(d.accepted - before, 64);
	}
	for (unsigned i = 0; i < 100; i++)
		close(fds[i]);
	door_close(&d);
}
END_TEST

START_TEST(workers_share_a_tcp_port)
{
	struct door a, b;
	struct sockaddr_storage address;
	int error = 0;
	ck_assert_int_eq(door_open(&a, "127.0.0.1:0", 0), 0);
	listener_address(a.l, &address);
	memset(&b, 0, sizeof b);
	b.l = listener_create_beside(w, (struct sockaddr *)&address, 128, &door_ops, &b, &error);
	ck_assert_ptr_nonnull(b.l);
	int clients[64];
	for (unsigned i = 0; i < FACTS_LEN(clients); i++)
		clients[i] = client(&a);
	wait_until(a.accepted + b.accepted == FACTS_LEN(clients));
	ck_assert(a.accepted > 0 && b.accepted > 0);
	for (unsigned i = 0; i < FACTS_LEN(clients); i++)
		close(clients[i]);
	door_close(&a);
	door_close(&b);
}
END_TEST

START_TEST(tcp_port_in_use_is_not_taken)
{
	const char *texts[] = { "127.0.0.1:0", "[::1]:0" };
	for (size_t i = 0; i < FACTS_LEN(texts); i++) {
		struct door first, second;
		struct sockaddr_storage address;
		char text[ADDRESS_TEXT_MAX];
		ck_assert_int_eq(door_open(&first, texts[i], 0), 0);
		listener_address(first.l, &address);
		address_format((struct sockaddr *)&address, text);
		ck_assert_int_eq(door_open(&second, text, 0), UV_EADDRINUSE);
		close(client(&first));
		wait_until(first.accepted == 1);
		door_close(&first);
		ck_assert_int_eq(door_open(&second, text, 0), 0); /* ended connections do not matter */
		door_close(&second);
	}
}
END_TEST

/* A port of 127.0.0.1 on which nobody listens while the socket is open. */
static int reserve_port(struct sockaddr_storage *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof *address;

	address_parse("127.0.0.1:0", address);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)address, sizeof(struct sockaddr_in)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, &len), 0);
	return fd;
}

START_TEST(ipv6_listener_takes_no_ipv4)
{
	struct door d;
	struct sockaddr_storage address;
	char text[ADDRESS_TEXT_MAX];
	int fd, r;
	do { /* another process may have the port of IPv6 */
		fd = reserve_port(&address);
		snprintf(text, sizeof text, "[::]:%u", address_port((struct sockaddr *)&address));
		r = door_open(&d, text, 0);
	} while (r == UV_EADDRINUSE && close(fd) == 0);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(client_of((struct sockaddr *)&address), -1);
	door_close(&d);
	close(fd);
}
END_TEST

/* UNIX sockets */

static unsigned mode_of(const char *text)
{
	struct stat st;

	ck_assert_int_eq(stat(text + 5, &st), 0);
	return st.st_mode & 0777;
}

START_TEST(unix_socket_has_exactly_the_mode_asked_for)
{
	struct door d;
	umask(077);
	ck_assert_int_eq(door_open(&d, path_text(), 0666), 0);
	ck_assert_uint_eq(mode_of(path_text()), 0666);
	door_close(&d);
	umask(0);
	ck_assert_int_eq(door_open(&d, path_text(), 0600), 0);
	ck_assert_uint_eq(mode_of(path_text()), 0600);
	door_close(&d);
}
END_TEST

START_TEST(stale_unix_socket_is_replaced)
{
	struct door d;
	ck_assert_int_eq(door_open(&d, path_text(), 0600), 0);
	door_close(&d);
	ck_assert_int_eq(access(path_text() + 5, F_OK), 0);
	ck_assert_int_eq(door_open(&d, path_text(), 0600), 0);
	close(client(&d));
	wait_until(d.accepted == 1);
	door_close(&d);
}
END_TEST

START_TEST(unix_socket_in_use_is_not_replaced)
{
	struct door first, second;
	ck_assert_int_eq(door_open(&first, path_text(), 0600), 0);
	ck_assert_int_eq(door_open(&second, path_text(), 0600), UV_EADDRINUSE);
	close(client(&first));
	wait_until(first.accepted > 0);
	door_close(&first);
}
END_TEST

START_TEST(file_that_is_no_socket_is_left_alone)
{
	struct door d;
	close(open(path_text() + 5, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(door_open(&d, path_text(), 0600), UV_EADDRINUSE);
	ck_assert_int_eq(access(path_text() + 5, F_OK), 0);
}
END_TEST

START_TEST(impossible_address_is_an_error)
{
	struct door d;
	ck_assert_int_eq(door_open(&d, "192.0.2.1:0", 0), UV_EADDRNOTAVAIL);
	ck_assert_int_eq(door_open(&d, "unix:/no/such/folder/door", 0), UV_ENOENT);
}
END_TEST

/* Pausing */

START_TEST(paused_listener_lets_connections_wait)
{
	struct door d;
	ck_assert_int_eq(door_open(&d, "127.0.0.1:0", 0), 0);
	listener_pause(d.l);
	int fd = client(&d);
	turns(10);
	ck_assert_uint_eq(d.accepted, 0);
	listener_resume(d.l);
	wait_until(d.accepted == 1);
	close(fd);
	door_close(&d);
}
END_TEST

static void pause_after_one(struct door *d)
{
	listener_pause(d->l);
}

START_TEST(listener_may_be_paused_from_within_on_accept)
{
	struct door d;
	ck_assert_int_eq(door_open(&d, "127.0.0.1:0", 0), 0);
	d.react = pause_after_one;
	int one = client(&d), two = client(&d);
	wait_until(d.accepted == 1);
	turns(10);
	ck_assert_uint_eq(d.accepted, 1);
	listener_resume(d.l);
	wait_until(d.accepted == 2);
	close(one);
	close(two);
	door_close(&d);
}
END_TEST

static void close_after_one(struct door *d)
{
	listener_close(d->l);
}

START_TEST(listener_may_be_closed_from_within_on_accept)
{
	struct door d;
	ck_assert_int_eq(door_open(&d, "127.0.0.1:0", 0), 0);
	d.react = close_after_one;
	int one = client(&d), two = client(&d);
	wait_until(d.closed);
	ck_assert_uint_eq(d.accepted, 1);
	close(d.fds[0]);
	close(one);
	close(two);
}
END_TEST

START_TEST(descriptor_limit_pauses_and_recovers)
{
	struct door d;
	struct rlimit limit, low;
	char log_path[256];
	snprintf(log_path, sizeof log_path, "%s/log", temp_dir());
	ck_assert_int_eq(log_open("test", NULL, LOG_TEXT, LOG_INFO, log_path), 0);
	ck_assert_int_eq(door_open(&d, "127.0.0.1:0", 0), 0);
	int fd = client(&d);
	getrlimit(RLIMIT_NOFILE, &limit);
	low = limit;
	low.rlim_cur = 0; /* every new number is too high */
	setrlimit(RLIMIT_NOFILE, &low);
	wait_until(listener_starved(d.l) >= 2); /* tried again by itself, and not in every turn */
	uint64_t starved = listener_starved(d.l);
	turns(50);
	ck_assert_uint_le(listener_starved(d.l), starved + 1);
	ck_assert_uint_eq(d.accepted, 0);
	setrlimit(RLIMIT_NOFILE, &limit);
	struct pollfd loop = { .fd = uv_backend_fd(worker_loop(w)), .events = POLLIN };
	ck_assert_int_eq(poll(&loop, 1, 0), 0); /* the waiting connection does not keep the loop awake */
	wait_until(d.accepted == 1);
	close(fd);
	door_close(&d);
	log_close();
	struct stat st;
	ck_assert_int_eq(stat(log_path, &st), 0);
	ck_assert_int_gt(st.st_size, 40);
	ck_assert_int_lt(st.st_size, 200); /* one line for all of it */
}
END_TEST

START_TEST(closed_while_starved_is_not_tried_again)
{
	struct door d;
	struct rlimit limit, low;
	ck_assert_int_eq(door_open(&d, "127.0.0.1:0", 0), 0);
	int fd = client(&d);
	log_set_level(LOG_ERROR + 1);
	getrlimit(RLIMIT_NOFILE, &limit);
	low = limit;
	low.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &low);
	wait_until(listener_starved(d.l) == 1);
	door_close(&d);
	setrlimit(RLIMIT_NOFILE, &limit);
	uint64_t until = now_ms() + 150;
	wait_until(now_ms() > until);
	ck_assert_uint_eq(d.accepted, 0);
	close(fd);
}
END_TEST

START_TEST(passed_socket_goes_on_with_what_waited_in_its_queue)
{
	struct door first, second = { 0 };
	int error = 0;
	ck_assert_int_eq(door_open(&first, "127.0.0.1:0", 0), 0);
	listener_pause(first.l);
	int fd = client(&first);
	int passed = fcntl(listener_fd(first.l), F_DUPFD_CLOEXEC, 3);
	door_close(&first);
	second.l = listener_create_fd(w, passed, &door_ops, &second, &error);
	ck_assert_ptr_nonnull(second.l);
	wait_until(second.accepted == 1);
	close(fd);
	door_close(&second);
}
END_TEST

START_TEST(a_client_that_says_something_comes_before_silent_ones)
{
	struct door d;
	ck_assert_int_eq(door_open(&d, "127.0.0.1:0", 0), 0);
	ck_assert_int_eq(listener_await_data(d.l), 0);
	struct sockaddr_storage a;
	ck_assert_int_eq(listener_address(d.l, &a), 0);
	int silent[8], speaker;
	for (unsigned i = 0; i < 8; i++) {
		silent[i] = socket(AF_INET, SOCK_STREAM, 0);
		ck_assert_int_eq(connect(silent[i], (struct sockaddr *)&a, sizeof(struct sockaddr_in)), 0);
	}
	speaker = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(speaker, (struct sockaddr *)&a, sizeof(struct sockaddr_in)), 0);
	write_all(speaker, "x", 1);
	wait_until(d.accepted > 0);
	char said;
	ck_assert_int_eq(recv(d.fds[0], &said, 1, MSG_DONTWAIT), 1);
	wait_until(d.accepted == 9); /* the silent ones follow, about a second later */
	for (unsigned i = 0; i < 8; i++)
		close(silent[i]);
	close(speaker);
	door_close(&d);
}
END_TEST

UNIT(listener)
{
	const TTest *facts[] = {
		a_client_that_says_something_comes_before_silent_ones,
		connections_come_non_blocking_and_with_their_address,
		no_segment_of_an_accepted_connection_waits_to_be_full,
		a_byte_that_a_client_calls_urgent_is_a_byte_as_others,
		many_connections_are_accepted_a_bounded_number_a_turn,
		workers_share_a_tcp_port,
		tcp_port_in_use_is_not_taken,
		ipv6_listener_takes_no_ipv4,
		unix_socket_has_exactly_the_mode_asked_for,
		stale_unix_socket_is_replaced,
		unix_socket_in_use_is_not_replaced,
		file_that_is_no_socket_is_left_alone,
		impossible_address_is_an_error,
		paused_listener_lets_connections_wait,
		listener_may_be_paused_from_within_on_accept,
		listener_may_be_closed_from_within_on_accept,
		descriptor_limit_pauses_and_recovers,
		closed_while_starved_is_not_tried_again,
		passed_socket_goes_on_with_what_waited_in_its_queue,
	};
	return worker_suite_run("listener", facts, FACTS_LEN(facts));
}
