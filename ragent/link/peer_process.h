/* peer_process.h: the process behind a UNIX socket, and whether it is dead. A silent or disconnected agent may still
 * talk to its backends; only a dead agent cannot. So only after its death RAgent may repeat a request that must not run
 * twice at a time (RFC 9110 9.2.2).
 *
 * Only a pidfd proves it: it becomes readable when every thread of the process has ended. /proc proves nothing: the
 * first thread may have ended while others run, and a killed thread can stay in the kernel and finish a write there.
 */
#pragma once

/* Embedded; zero is an unknown process. */
struct peer_process {
	int pidfd; /* owned; 0: none, so its fate is never known */
};

enum peer_fate {
	PEER_FATE_UNKNOWN, /* alive, or not known */
	PEER_DEAD          /* no thread of it exists, for any cause of its end */
};

/* The process at the other end of @socket has sent @pidfd as its own (owned from now on; -1: it sent none). It is
 * believed when the kernel names the same process behind the socket. So a process in between, or one that got the
 * other's socket, is not taken for it. Otherwise the result is unknown; also when the process cannot be seen from here:
 * in another container, without pidfds (kernel or filter), without /proc. */
struct peer_process peer_process_of(int socket, int pidfd);
enum peer_fate peer_process_fate(const struct peer_process *p);
/* The pidfd of a known process, owned by @p: readable when the process is dead. -1: unknown. */
int peer_process_fd(const struct peer_process *p);
/* Close it; the process is unknown from now on. */
void peer_process_forget(struct peer_process *p);
