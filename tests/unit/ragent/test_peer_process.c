/* test_peer_process.c: facts of the process behind a UNIX socket. */
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ragent/connection/peer_process.h"
#include "tests/unit/proto/suite.h"

static int fd = -1;
static pid_t child;

/* A child listens, this process connects. */
static void begin(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int ready[2];
	char byte = 0;

	snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "cssl-peer-process-%d", (int)getpid());
	ck_assert_int_eq(pipe(ready), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		int s = socket(AF_UNIX, SOCK_STREAM, 0);
		if (bind(s, (struct sockaddr *)&address, sizeof address) < 0 || listen(s, 1) < 0 ||
			write(ready[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
}

static void end(void)
{
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	close(fd);
	child = 0;
}

START_TEST(a_running_process_is_not_dead)
{
	begin();
	struct peer_process p = peer_process_of(fd);
	ck_assert_int_eq(p.pid, child);
	ck_assert_int_eq(peer_process_fate(&p), PEER_FATE_UNKNOWN);
	end();
}
END_TEST

START_TEST(a_stopped_process_is_not_dead)
{
	int status;

	begin();
	struct peer_process p = peer_process_of(fd);
	kill(child, SIGSTOP);
	ck_assert_int_eq(waitpid(child, &status, WUNTRACED), child);
	ck_assert(WIFSTOPPED(status));
	ck_assert_int_eq(peer_process_fate(&p), PEER_FATE_UNKNOWN);
	end();
}
END_TEST

START_TEST(a_killed_process_is_dead_as_soon_as_its_socket_ends)
{
	char byte;

	begin();
	struct peer_process p = peer_process_of(fd);
	kill(child, SIGKILL);
	/* it never accepted: the end comes as a reset when its listening socket is closed */
	ck_assert_int_le(read(fd, &byte, 1), 0);
	ck_assert_int_eq(peer_process_fate(&p), PEER_DEAD);
	waitpid(child, NULL, 0);
	child = 0;
	ck_assert_int_eq(peer_process_fate(&p), PEER_DEAD);
	end();
}
END_TEST

START_TEST(another_process_of_the_same_pid_is_not_it)
{
	begin();
	struct peer_process p = peer_process_of(fd), other = p;
	other.started++;
	ck_assert_int_eq(peer_process_fate(&other), PEER_DEAD);
	end();
}
END_TEST

START_TEST(behind_a_tcp_socket_nobody_is_known)
{
	fd = socket(AF_INET, SOCK_STREAM, 0);
	struct peer_process p = peer_process_of(fd);
	ck_assert_int_eq(p.pid, 0);
	ck_assert_int_eq(peer_process_fate(&p), PEER_FATE_UNKNOWN);
	close(fd);
}
END_TEST

#define STAT(state, flags, started)                                                                                    \
	"42 (a) Z (b) " state " 1 42 42 0 -1 " flags " 95 0 0 0 0 0 0 0 20 0 3 0 " started                             \
	" 123456 78 18446744073709551615"

START_TEST(zombies_and_exiting_processes_are_dead_whatever_their_name)
{
	ck_assert_int_eq(peer_process_judge(STAT("S", "4194304", "777"), 777), PEER_FATE_UNKNOWN);
	ck_assert_int_eq(peer_process_judge(STAT("Z", "4194304", "777"), 777), PEER_DEAD);
	ck_assert_int_eq(peer_process_judge(STAT("X", "4194304", "777"), 777), PEER_DEAD);
	ck_assert_int_eq(peer_process_judge(STAT("R", "4194308", "777"), 777), PEER_DEAD);
	ck_assert_int_eq(peer_process_judge(STAT("S", "4194304", "778"), 777), PEER_DEAD);
}
END_TEST

START_TEST(a_line_that_is_not_understood_proves_nothing)
{
	ck_assert_int_eq(peer_process_judge("", 777), PEER_FATE_UNKNOWN);
	ck_assert_int_eq(peer_process_judge("42 (a", 777), PEER_FATE_UNKNOWN);
	ck_assert_int_eq(peer_process_judge("42 (a) Z 1 42", 777), PEER_FATE_UNKNOWN);
}
END_TEST

int main(void)
{
	const TTest *const facts[] = {
		a_running_process_is_not_dead,
		a_stopped_process_is_not_dead,
		a_killed_process_is_dead_as_soon_as_its_socket_ends,
		another_process_of_the_same_pid_is_not_it,
		behind_a_tcp_socket_nobody_is_known,
		zombies_and_exiting_processes_are_dead_whatever_their_name,
		a_line_that_is_not_understood_proves_nothing,
	};

	return suite_run("peer_process", facts, SUITE_LEN(facts));
}
