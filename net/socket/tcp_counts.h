/* tcp_counts.h: how many bytes of a TCP connection this host's processes have read and written, as the kernel counts
 * them. They are exact, whichever process did it and however it ended. After a reset they are too small.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tcp_counts {
	uint64_t read;    /* without the peer's FIN */
	uint64_t written; /* without our own FIN; with the SYN where this side connected */
};

/* 0, or CSSL_E_SYSTEM: not a TCP connection, the kernel does not count, or bytes come so fast that the numbers do not
 * stand still. */
int tcp_counts_get(int fd, struct tcp_counts *out);

/* Does the kernel count right? Some that only act like Linux do not. Looks at a connection of this process with itself,
 * and takes a second at most. 1; 0: tcp_counts_get() says CSSL_E_SYSTEM from then on, also in processes that this one
 * makes later; or CSSL_E_SYSTEM: there can be no such connection. Call it before there are threads. */
int tcp_counts_hold(void);

/* Has a process of this host said FIN on it, or did a reset end it? */
bool tcp_has_ended(int fd);
