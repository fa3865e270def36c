/* captured_listener.c: the socket is made here, because libuv has no such option. */
#include "smtpproxy/process/captured_listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

#include "net/address.h"

static int set(int fd, int level, int option)
{
	const int on = 1;
	return setsockopt(fd, level, option, &on, sizeof on);
}

static int prepare(int fd, const struct sockaddr *address, int backlog)
{
	const int v6 = address->sa_family == AF_INET6;
	if (set(fd, SOL_SOCKET, SO_REUSEADDR) < 0 || (v6 && set(fd, IPPROTO_IPV6, IPV6_V6ONLY) < 0))
		return -errno;
	if (set(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT) < 0)
		return -errno;
	if (bind(fd, address, address_len(address)) < 0 || listen(fd, backlog) < 0)
		return -errno;
	return 0;
}

int captured_listener_try(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = fd < 0 || set(fd, SOL_IP, IP_TRANSPARENT) < 0 ? -errno : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

struct listener *captured_listener_create(struct worker *w, const struct sockaddr *address, int backlog,
	const struct listener_ops *ops, void *ctx, int *uv_error)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	*uv_error = fd < 0 ? -errno : prepare(fd, address, backlog);
	if (*uv_error == 0)
		return listener_create_fd(w, fd, ops, ctx, uv_error);
	if (fd >= 0)
		close(fd);
	return NULL;
}
