/* leftovers.c: /proc/self/fd names the descriptors. They are collected first, since closing changes the directory. */
#include "ragent/keeper/leftovers.h"

#include <dirent.h>
#include <netinet/in.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/log.h"
#include "proto/error.h"

struct numbers {
	int *at;
	size_t count, cap;
};

static int add(struct numbers *n, int number)
{
	if (n->count == n->cap) {
		size_t cap = n->cap ? 2 * n->cap : 64;
		int *at = realloc(n->at, cap * sizeof *at);
		if (!at)
			return CSSL_E_NO_MEMORY;
		n->at = at;
		n->cap = cap;
	}
	n->at[n->count++] = number;
	return 0;
}

static int list_descriptors(struct numbers *out)
{
	DIR *d = opendir("/proc/self/fd");
	int r = d ? 0 : CSSL_E_SYSTEM;

	for (struct dirent *e; r == 0 && (e = readdir(d)) != NULL;) {
		int fd = atoi(e->d_name); /* "." and ".." are 0 */
		if (fd > STDERR_FILENO && fd != dirfd(d))
			r = add(out, fd);
	}
	if (d)
		closedir(d);
	return r;
}

static int is_noted(const struct notes *n, int fd)
{
	for (uint32_t i = 0; i < n->socket_count; i++)
		if (n->sockets[i].fd == fd)
			return notes_socket_listens(&n->sockets[i]);
	return 0;
}

static int int_option(int fd, int name)
{
	int value = -1;
	socklen_t len = sizeof value;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) == 0 ? value : -1;
}

static int is_tcp_connection(int fd)
{
	int domain = int_option(fd, SO_DOMAIN);

	return (domain == AF_INET || domain == AF_INET6) && int_option(fd, SO_TYPE) == SOCK_STREAM &&
	       int_option(fd, SO_ACCEPTCONN) == 0;
}

/* Connections of our own to agents count their SYN as a byte written, so none of them passes. */
static int is_untouched(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof info;
	int unread = 0, unsent = 0;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0 ||
		len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
		return 0;
	if (ioctl(fd, SIOCOUTQ, &unsent) < 0 || ioctl(fd, SIOCINQ, &unread) < 0)
		return 0;
	return info.tcpi_bytes_received <= (uint64_t)unread && info.tcpi_bytes_acked + (uint64_t)unsent == 0;
}

static void end_by_reset(struct leftovers *l, int fd)
{
	const struct linger at_once = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
	l->reset++;
}

static void sort_one(struct leftovers *l, int fd)
{
	struct numbers fresh = { l->fresh, l->fresh_count, l->fresh_cap };

	if (!is_tcp_connection(fd)) {
		close(fd);
		return;
	}
	if (!is_untouched(fd) || add(&fresh, fd) < 0)
		end_by_reset(l, fd);
	l->fresh = fresh.at;
	l->fresh_count = fresh.count;
	l->fresh_cap = fresh.cap;
}

int leftovers_sort(struct leftovers *l, const struct notes *n)
{
	struct numbers all = { 0 };
	int r = list_descriptors(&all);

	for (size_t i = 0; r == 0 && i < all.count; i++)
		if (!is_noted(n, all.at[i]) && !log_has(all.at[i]))
			sort_one(l, all.at[i]);
	free(all.at);
	return r;
}

void leftovers_free(struct leftovers *l)
{
	free(l->fresh);
	*l = (struct leftovers){ 0 };
}
