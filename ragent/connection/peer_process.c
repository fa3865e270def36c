/* peer_process.c: SO_PEERCRED and /proc/PID/stat. The kernel closes a dying process's sockets after it has marked the
 * process as exiting and before anybody can reap it: so whoever sees the end of its link reads either that mark, a
 * zombie, or nothing.
 */
#include "ragent/connection/peer_process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STAT_LEN_MAX 1024u
#define PF_EXITING   0x4u /* include/linux/sched.h; part of proc(5)'s flags */

/* 0, a negative errno. */
static int read_stat(pid_t pid, char *out, size_t cap)
{
	char path[32];

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, out, cap - 1);
	int r = n < 0 ? -errno : 0;
	close(fd);
	out[n > 0 ? n : 0] = '\0';
	return r;
}

struct stat_fields {
	char state;
	unsigned flags;
	uint64_t started;
};

/* The command in parentheses may contain anything: fields are counted from the last one. 0 or -1. */
static int parse_stat(const char *stat, struct stat_fields *out)
{
	const char *end = strrchr(stat, ')');

	if (!end)
		return -1;
	int n = sscanf(end + 1, " %c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
		&out->state, &out->flags, &out->started);
	return n == 3 ? 0 : -1;
}

struct peer_process peer_process_of(int fd)
{
	struct ucred cred = { 0 };
	struct stat_fields fields;
	socklen_t len = sizeof cred;
	char stat[STAT_LEN_MAX];

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.pid <= 0)
		return (struct peer_process){ 0 };
	if (read_stat(cred.pid, stat, sizeof stat) < 0 || parse_stat(stat, &fields) < 0)
		return (struct peer_process){ 0 };
	return (struct peer_process){ .pid = cred.pid, .started = fields.started };
}

enum peer_fate peer_process_judge(const char *stat, uint64_t started)
{
	struct stat_fields now;

	if (parse_stat(stat, &now) < 0)
		return PEER_FATE_UNKNOWN;
	if (now.started != started || now.flags & PF_EXITING)
		return PEER_DEAD;
	return now.state == 'Z' || now.state == 'X' ? PEER_DEAD : PEER_FATE_UNKNOWN;
}

enum peer_fate peer_process_fate(const struct peer_process *p)
{
	char stat[STAT_LEN_MAX];

	if (p->pid == 0)
		return PEER_FATE_UNKNOWN;
	int r = read_stat(p->pid, stat, sizeof stat);
	if (r < 0) /* it was there to be looked at before */
		return r == -ENOENT || r == -ESRCH ? PEER_DEAD : PEER_FATE_UNKNOWN;
	return peer_process_judge(stat, p->started);
}
