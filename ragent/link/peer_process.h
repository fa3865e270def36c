/* peer_process.h: the process behind a UNIX socket, and whether it is dead. An agent that is silent or cut off may
 * still talk to its backends; only one that is dead does not, and only then may a request be made again that must not
 * overtake itself (RFC 9110 9.2.2).
 *
 * The one proof is a pidfd: it becomes readable when every thread of the process has ended. What /proc says of a
 * process is none: its first thread can have ended while others go on, and a thread that was killed can stay in the
 * kernel and finish a write there.
 */
#ifndef CSSL_RAGENT_PEER_PROCESS_H
#define CSSL_RAGENT_PEER_PROCESS_H

/* Embedded; zero is an unknown process. */
struct peer_process {
	int pidfd; /* owned; 0: none, and nothing is ever known of it */
};

enum peer_fate {
	PEER_FATE_UNKNOWN, /* alive, or nobody knows */
	PEER_DEAD          /* no thread of it exists, in whatever way it ended */
};

/* The process at the other end of @socket says that it is that of @pidfd (owned from now on; -1: it says nothing). It
 * is believed where the kernel names the same process behind the socket, so that whoever stands between both, or a
 * process that got the other's socket, is not taken for it. Unknown otherwise, and where the process cannot be seen
 * from here: in a container beside this one, on a kernel or under a filter without pidfds, without /proc. */
struct peer_process peer_process_of(int socket, int pidfd);
enum peer_fate peer_process_fate(const struct peer_process *p);
/* Of a known process, owned by @p: readable when it is dead. -1: unknown. */
int peer_process_fd(const struct peer_process *p);
/* Close; unknown from now on. */
void peer_process_forget(struct peer_process *p);

#endif
