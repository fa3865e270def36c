/* peer_process.c: a pidfd's process number (/proc/self/fdinfo) is compared with SO_PEERCRED; poll() tells whether the
 * process is dead.
 */
#include "ragent/link/peer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FDINFO_LEN_MAX 512u
#define PID_LINE       "\nPid:"

/* The process of a pidfd (proc_pid_fdinfo(5)); 0 or negative: the process cannot be seen from here, or @pidfd is no
 * pidfd. */
static pid_t pid_of(int pidfd)
{
	char path[40], info[FDINFO_LEN_MAX];

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t len = fd < 0 ? -1 : read(fd, info, sizeof info - 1);
	if (fd >= 0)
		close(fd);
	info[len > 0 ? len : 0] = '\0';
	const char *line = strstr(info, PID_LINE);
	return line ? (pid_t)strtol(line + strlen(PID_LINE), NULL, 10) : -1;
}

static pid_t pid_behind(int socket)
{
	struct ucred cred = { 0 };
	socklen_t len = sizeof cred;

	return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ? -1 : cred.pid;
}

struct peer_process peer_process_of(int socket, int pidfd)
{
	struct peer_process p = { pidfd < 0 ? 0 : pidfd };
	const pid_t behind = p.pidfd ? pid_behind(socket) : -1;

	if (behind <= 0 || pid_of(pidfd) != behind)
		peer_process_forget(&p);
	return p;
}

enum peer_fate peer_process_fate(const struct peer_process *p)
{
	struct pollfd ended = { .fd = p->pidfd, .events = POLLIN };

	if (p->pidfd == 0 || poll(&ended, 1, 0) != 1)
		return PEER_FATE_UNKNOWN;
	return ended.revents & POLLIN ? PEER_DEAD : PEER_FATE_UNKNOWN;
}

int peer_process_fd(const struct peer_process *p)
{
	return p->pidfd ? p->pidfd : -1;
}

void peer_process_forget(struct peer_process *p)
{
	if (p->pidfd)
		close(p->pidfd);
	p->pidfd = 0;
}
