/* daemon.c: the process goes into the background by two forks and a pipe. The process in the middle exits at once.
 * So the last one is a child of init, or of the service manager, which can then watch it. The service manager gets
 * one datagram.
 */
#include "net/process/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/report/log.h"

#define ALIVE_EVERY_US UINT64_C(5000000) /* a sixth of WatchdogSec in our unit */

static int settled_fd = -1;
static int kept_fd = -1; /* to the service manager */

static void wait_and_exit(int fd, pid_t between)
{
	uint8_t status = EXIT_FAILURE;

	waitpid(between, NULL, 0);
	if (read(fd, &status, 1) != 1)
		status = EXIT_FAILURE;
	_exit(status);
}

int background_begin(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	pid_t between = fork();
	if (between < 0)
		return -1;
	if (between > 0) {
		close(fds[1]);
		wait_and_exit(fds[0], between);
	}
	close(fds[0]);
	setsid();
	pid_t stays = fork();
	if (stays != 0)
		_exit(stays < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	settled_fd = fds[1];
	return 0;
}

void background_settle(int status)
{
	uint8_t byte = (uint8_t)status;

	if (settled_fd < 0)
		return;
	if (write(settled_fd, &byte, 1) == 1) /* on failure no process waits any more */
		close(settled_fd);
	settled_fd = -1;
}

void background_forget(void)
{
	settled_fd = -1;
}

static int open_socket(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

void service_keep_socket(void)
{
	if (getenv("NOTIFY_SOCKET"))
		kept_fd = open_socket();
}

bool service_has(int fd)
{
	return fd >= 0 && fd == kept_fd;
}

static void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	if (!path || strlen(path) >= sizeof to.sun_path)
		return;
	strcpy(to.sun_path, path);
	if (path[0] == '@')
		to.sun_path[0] = '\0'; /* an abstract name */
	int fd = kept_fd >= 0 ? kept_fd : open_socket();
	socklen_t to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (fd < 0 ||
		sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to, to_len) < 0)
		log_event(LOG_WARNING, NULL, "service manager not notified", "path=%s cause=%s", path, strerror(errno));
	if (fd >= 0 && fd != kept_fd)
		close(fd);
}

void service_notify_ready(pid_t main)
{
	char state[64];

	snprintf(state, sizeof state, "READY=1\nMAINPID=%d\n", (int)main);
	notify(state);
}

/* systemd gives its limit only to the process that it started first, not to one that took over at a reload. Where
 * there is no watchdog, the manager ignores the message. */
static uint64_t alive_every_us(void)
{
	const char *limit = getenv("WATCHDOG_USEC");

	return limit ? strtoull(limit, NULL, 10) / 3 : ALIVE_EVERY_US;
}

void service_notify_alive(void)
{
	static uint64_t due_us;
	struct timespec t;

	if (!getenv("NOTIFY_SOCKET"))
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	uint64_t now_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
	if (now_us < due_us)
		return;
	due_us = now_us + alive_every_us();
	notify("WATCHDOG=1\n");
}
