/* peer_process.h: the process behind a UNIX socket, and whether it is still able to do anything. An agent that is
 * silent or cut off may still talk to its backends; one whose process is dead does not, and only then may a request be
 * made again that must not overtake itself (RFC 9110 9.2.2).
 */
#ifndef CSSL_RAGENT_PEER_PROCESS_H
#define CSSL_RAGENT_PEER_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* Embedded; zero is an unknown process. */
struct peer_process {
	pid_t pid;        /* 0: unknown */
	uint64_t started; /* in clock ticks since the host's boot: a pid alone may be another process by now */
};

enum peer_fate {
	PEER_FATE_UNKNOWN, /* alive, or nobody knows */
	PEER_DEAD          /* no code of it runs any more */
};

/* Who is on the other side of @fd. Unknown: not a UNIX socket, or a process that this one cannot look at. */
struct peer_process peer_process_of(int fd);
enum peer_fate peer_process_fate(const struct peer_process *p);

/* A line of /proc/PID/stat (proc(5)): is it the process that began at @started and still able to run? Pure. */
enum peer_fate peer_process_judge(const char *stat, uint64_t started);

#endif
