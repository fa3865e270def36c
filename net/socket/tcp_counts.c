/* tcp_counts.c: read bytes are the received ones minus those in the receive queue. Written bytes are the
 * acknowledged ones plus those in the send queue. The kernel counts a FIN as a byte. The numbers come from several
 * calls. So they are only valid if the first number is still the same after the others.
 */
#include "net/socket/tcp_counts.h"

#include <netinet/in.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "proto/error.h"

#define ATTEMPTS 16u

/* include/net/tcp_states.h of the kernel, a bit for each. */
enum {
	FIN_WAIT1 = 1 << 4,
	FIN_WAIT2 = 1 << 5,
	TIME_WAIT = 1 << 6,
	CLOSED = 1 << 7, /* what a descriptor shows when both sides have sent FIN, or one a reset */
	CLOSE_WAIT = 1 << 8,
	LAST_ACK = 1 << 9,
	CLOSING = 1 << 11
};

#define FIN_CAME     (TIME_WAIT | CLOSED | CLOSE_WAIT | LAST_ACK | CLOSING)
#define FIN_WAS_SENT (FIN_WAIT1 | FIN_WAIT2 | TIME_WAIT | CLOSED | LAST_ACK | CLOSING)

static bool is_in(const struct tcp_info *info, unsigned states)
{
	return (states >> info->tcpi_state & 1) != 0;
}

static int get_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof *info;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) < 0)
		return CSSL_E_SYSTEM;
	return len < offsetof(struct tcp_info, tcpi_segs_out) ? CSSL_E_SYSTEM : 0;
}

bool tcp_has_ended(int fd)
{
	struct tcp_info info;

	return get_info(fd, &info) == 0 && is_in(&info, FIN_WAS_SENT);
}

static bool is_same(const struct tcp_info *a, const struct tcp_info *b)
{
	return a->tcpi_bytes_received == b->tcpi_bytes_received && a->tcpi_bytes_acked == b->tcpi_bytes_acked &&
	       a->tcpi_state == b->tcpi_state;
}

/* Of the kernel, which is the same for all processes and threads. */
static int counts_wrong;

int tcp_counts_get(int fd, struct tcp_counts *out)
{
	struct tcp_info before, after;
	int unread, unsent;

	if (counts_wrong)
		return CSSL_E_SYSTEM;
	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (get_info(fd, &before) < 0 || ioctl(fd, SIOCINQ, &unread) < 0 || ioctl(fd, SIOCOUTQ, &unsent) < 0 ||
			get_info(fd, &after) < 0)
			return CSSL_E_SYSTEM;
		if (!is_same(&before, &after))
			continue;
		out->read = after.tcpi_bytes_received - (uint64_t)unread - (uint64_t)is_in(&after, FIN_CAME);
		out->written = after.tcpi_bytes_acked + (uint64_t)unsent - (uint64_t)is_in(&after, FIN_WAS_SENT);
		return 0;
	}
	return CSSL_E_SYSTEM;
}

/* --- does the kernel count right? --- */

/* Both ends; -1: none. */
static void connect_to_self(int listening, int ends[2])
{
	const struct timeval limit = { .tv_sec = 1 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;

	if (bind(listening, (struct sockaddr *)&a, len) < 0 || listen(listening, 1) < 0 ||
		getsockname(listening, (struct sockaddr *)&a, &len) < 0)
		return;
	ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ends[0] < 0 || connect(ends[0], (struct sockaddr *)&a, len) < 0)
		return;
	ends[1] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	if (ends[1] >= 0)
		setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

/* Two bytes of three are read, and one is written. */
static int counts_of(const int ends[2])
{
	struct tcp_counts counts;
	char bytes[3] = "abc";

	if (ends[1] < 0 || send(ends[0], bytes, 3, MSG_NOSIGNAL) != 3 || recv(ends[1], bytes, 2, MSG_WAITALL) != 2 ||
		send(ends[1], bytes, 1, MSG_NOSIGNAL) != 1)
		return CSSL_E_SYSTEM;
	return tcp_counts_get(ends[1], &counts) == 0 && counts.read == 2 && counts.written == 1;
}

int tcp_counts_hold(void)
{
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ends[2] = { -1, -1 };

	if (listening < 0)
		return CSSL_E_SYSTEM;
	connect_to_self(listening, ends);
	int r = counts_of(ends);
	close(listening);
	for (unsigned i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
	counts_wrong = r == 0;
	return r;
}
