/* test_peer_process.c: facts of the process behind a UNIX socket. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ragent/link/peer_process.h"
#include "tests/unit/proto/suite.h"
#include "tests/unit/unit.h"

static int fd = -1;
static pid_t child;
static pid_t last_thread; /* of the child: its second, or its only one */

/* What the child does with its first thread, when there is a second one that lives on. */
enum child { ONE_THREAD, TWO_THREADS, FIRST_THREAD_ENDS };

static void *live_on(void *ready)
{
	const pid_t self = (pid_t)syscall(SYS_gettid);

	if (write(*(int *)ready, &self, sizeof self) != sizeof self)
		_exit(1);
	for (;;)
		pause();
}

static void live(int ready, enum child kind)
{
	pthread_t thread;

	if (kind == ONE_THREAD || pthread_create(&thread, NULL, live_on, &ready) != 0)
		live_on(&ready);
	if (kind == FIRST_THREAD_ENDS)
		syscall(SYS_exit, 0);
	for (;;)
		pause();
}

/* A child listens, this process connects. The child's own pidfd. */
static int begin(enum child kind)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int ready[2];

	snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "cssl-peer-process-%d", (int)getpid());
	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		int s = socket(AF_UNIX, SOCK_STREAM, 0);
		if (bind(s, (struct sockaddr *)&address, sizeof address) < 0 || listen(s, 1) < 0)
			_exit(1);
		live(ready[1], kind);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &last_thread, sizeof last_thread), sizeof last_thread);
	close(ready[0]);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return pidfd_open(child, 0);
}

static void end(struct peer_process *p)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fd);
	peer_process_forget(p);
	ck_assert_int_eq(peer_process_fd(p), -1);
	ck_assert_int_eq(peer_process_fate(p), PEER_FATE_UNKNOWN);
}

/* The kernel says so within this time. */
static void dies(const struct peer_process *p)
{
	struct pollfd ended = { .fd = peer_process_fd(p), .events = POLLIN };

	ck_assert_int_eq(poll(&ended, 1, 10000), 1);
	ck_assert_int_eq(peer_process_fate(p), PEER_DEAD);
}

START_TEST(a_running_process_is_not_dead)
{
	int pidfd = begin(ONE_THREAD);
	struct peer_process p = peer_process_of(fd, pidfd);

	ck_assert_int_ge(peer_process_fd(&p), 0);
	ck_assert_int_eq(peer_process_fate(&p), PEER_FATE_UNKNOWN);
	end(&p);
}
END_TEST

START_TEST(a_stopped_process_is_not_dead)
{
	int status, pidfd = begin(ONE_THREAD);
	struct peer_process p = peer_process_of(fd, pidfd);

	kill(child, SIGSTOP);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(peer_process_fate(&p), PEER_FATE_UNKNOWN);
	end(&p);
}
END_TEST

START_TEST(a_killed_process_is_dead_whether_it_was_waited_for_or_not)
{
	int pidfd = begin(TWO_THREADS);
	struct peer_process p = peer_process_of(fd, pidfd);

	kill(child, SIGKILL);
	dies(&p);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(peer_process_fate(&p), PEER_DEAD);
	end(&p);
}
END_TEST

static char state_of(pid_t pid)
{
	char path[32], state = '?';

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (f)
		fclose(f);
	return state;
}

START_TEST(a_process_whose_first_thread_has_ended_is_not_dead)
{
	int pidfd = begin(FIRST_THREAD_ENDS);
	struct peer_process p = peer_process_of(fd, pidfd);

	while (state_of(child) != 'Z')
		usleep(1000);
	ck_assert_int_ge(peer_process_fd(&p), 0);
	ck_assert_int_eq(peer_process_fate(&p), PEER_FATE_UNKNOWN);
	kill(child, SIGKILL);
	dies(&p);
	end(&p);
}
END_TEST

/* A tracer holds the second thread where the kernel ends it, as a write that takes long does. */
START_TEST(a_killed_process_with_a_thread_still_in_the_kernel_is_not_dead)
{
	int status, pidfd = begin(TWO_THREADS);
	struct peer_process p = peer_process_of(fd, pidfd);

	if (ptrace(PTRACE_SEIZE, last_thread, 0, PTRACE_O_TRACEEXIT) < 0) {
		ck_assert_int_eq(errno, EPERM); /* no tracing in this place */
		end(&p);
		return;
	}
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(last_thread, &status, __WALL), last_thread);
	while (state_of(child) != 'Z')
		usleep(1000);
	ck_assert_int_eq(peer_process_fate(&p), PEER_FATE_UNKNOWN);
	ck_assert_int_eq(ptrace(PTRACE_DETACH, last_thread, 0, 0), 0);
	dies(&p);
	end(&p);
}
END_TEST

START_TEST(the_process_behind_the_socket_has_to_be_the_one_that_is_named)
{
	int pidfd = begin(ONE_THREAD);
	struct peer_process p = peer_process_of(fd, pidfd_open(getpid(), 0));

	ck_assert_int_eq(peer_process_fd(&p), -1);
	end(&p);
	close(pidfd);
}
END_TEST

START_TEST(a_descriptor_of_another_kind_names_no_process)
{
	int pidfd = begin(ONE_THREAD), other = dup(fd);
	struct peer_process p = peer_process_of(fd, other);

	ck_assert_int_eq(peer_process_fd(&p), -1);
	ck_assert_int_eq(close(other), -1); /* it was closed */
	p = peer_process_of(fd, -1);
	ck_assert_int_eq(peer_process_fd(&p), -1);
	end(&p);
	close(pidfd);
}
END_TEST

START_TEST(behind_a_tcp_socket_nobody_is_known)
{
	int s = socket(AF_INET, SOCK_STREAM, 0);
	struct peer_process p = peer_process_of(s, pidfd_open(getpid(), 0));

	ck_assert_int_eq(peer_process_fd(&p), -1);
	ck_assert_int_eq(peer_process_fate(&p), PEER_FATE_UNKNOWN);
	close(s);
}
END_TEST

UNIT(peer_process)
{
	const TTest *const facts[] = {
		a_running_process_is_not_dead,
		a_stopped_process_is_not_dead,
		a_killed_process_is_dead_whether_it_was_waited_for_or_not,
		a_process_whose_first_thread_has_ended_is_not_dead,
		a_killed_process_with_a_thread_still_in_the_kernel_is_not_dead,
		the_process_behind_the_socket_has_to_be_the_one_that_is_named,
		a_descriptor_of_another_kind_names_no_process,
		behind_a_tcp_socket_nobody_is_known,
	};

	return suite_run("peer_process", facts, SUITE_LEN(facts));
}
