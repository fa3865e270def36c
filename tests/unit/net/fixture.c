/* fixture.c: see fixture.h. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "net/socket/address.h"

struct worker *w;
static char dir[64];

void setup_worker(void)
{
	w = worker_create(0, "test");
	ck_assert_ptr_nonnull(w);
}

void teardown_worker(void)
{
	worker_destroy(w);
	w = NULL;
	temp_dir_remove();
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void turn(void)
{
	struct pollfd loop = { .fd = uv_backend_fd(worker_loop(w)), .events = POLLIN };
	int ms = uv_backend_timeout(worker_loop(w));

	poll(&loop, 1, ms < 0 || ms > 2 ? 2 : ms);
	uv_run(worker_loop(w), UV_RUN_NOWAIT);
}

void turns(unsigned count)
{
	while (count-- > 0)
		uv_run(worker_loop(w), UV_RUN_NOWAIT);
}

static void any_address(enum transport over, struct sockaddr_storage *out)
{
	static unsigned number;
	char text[ADDRESS_TEXT_MAX];

	snprintf(text, sizeof text, "unix:%s/%u", over == OVER_UNIX ? temp_dir() : "", number++);
	const char *of[] = { "127.0.0.1:0", "[::1]:0", text };
	ck_assert_int_eq(address_parse(of[over], out), 0);
}

int socket_listen(enum transport over, struct sockaddr_storage *address)
{
	socklen_t len = sizeof *address;

	any_address(over, address);
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)address, address_len((struct sockaddr *)address)), 0);
	ck_assert_int_eq(listen(fd, 16), 0);
	if (over != OVER_UNIX)
		ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, &len), 0);
	return fd;
}

void socket_pair(enum transport over, int fds[2])
{
	struct sockaddr_storage address;

	if (over == OVER_UNIX) {
		ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
		return;
	}
	int listening = socket_listen(over, &address);
	fds[0] = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fds[0], (struct sockaddr *)&address, address_len((struct sockaddr *)&address)), 0);
	fds[1] = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	ck_assert_int_ge(fds[1], 0);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	close(listening);
}

void shrink_buffers(int fd)
{
	int small = 4096;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
}

void reset(enum transport over, int fd)
{
	struct linger linger = { .l_onoff = 1 };

	if (over != OVER_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
	close(fd);
}

ssize_t read_some(int fd, void *out, size_t cap, int *end)
{
	ssize_t n = read(fd, out, cap);

	*end = n == 0;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n;
}

void read_exactly(int fd, void *out, size_t len)
{
	size_t have = 0;
	int end = 0;

	while (have < len) {
		ssize_t n = 0;
		wait_until((n = read_some(fd, (char *)out + have, len - have, &end)) != 0 || end);
		ck_assert_msg(n > 0, "the stream ended after %zu of %zu bytes", have, len);
		have += (size_t)n;
	}
}

int read_to_end(int fd)
{
	static char waste[65536];
	int end = 0;
	ssize_t n = 0;

	wait_until((n = read_some(fd, waste, sizeof waste, &end)) < 0 || end);
	return n < 0 ? -1 : 0;
}

void write_all(int fd, const void *data, size_t len)
{
	size_t done = 0;
	ssize_t n = 0;

	while (done < len) {
		wait_until((n = write(fd, (const char *)data + done, len - done)) > 0);
		done += (size_t)n;
	}
}

const char *temp_dir(void)
{
	if (!dir[0]) {
		snprintf(dir, sizeof dir, "/tmp/cssl-test-XXXXXX");
		ck_assert_ptr_nonnull(mkdtemp(dir));
	}
	return dir;
}

void temp_dir_remove(void)
{
	char path[512];
	DIR *d = dir[0] ? opendir(dir) : NULL;

	if (!d)
		return;
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		unlink(path);
	}
	closedir(d);
	rmdir(dir);
	dir[0] = '\0';
}

unsigned open_descriptors(void)
{
	unsigned count = 0;
	DIR *d = opendir("/proc/self/fd");

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

int worker_suite_run(const char *name, const TTest *const *facts, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, setup_worker, teardown_worker);
	tcase_set_timeout(tcase, 60);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(tcase, facts[i]);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
