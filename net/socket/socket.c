/* socket.c: implements socket.h. */
#include "net/socket/socket.h"

#include <errno.h>
#include <netinet/in.h>

#include "net/socket/address.h"

int socket_option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof value) < 0 ? -errno : 0;
}

/* SO_REUSEPORT before bind() shares the address with sockets that have it, too; after bind() it only lets others in. */
int socket_bind(int fd, const struct sockaddr *address, enum socket_place place)
{
	int r = place == SOCKET_BESIDE ? socket_option(fd, SOL_SOCKET, SO_REUSEPORT, 1) : 0;

	if (r == 0 && address->sa_family == AF_INET6)
		r = socket_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (r == 0 && bind(fd, address, address_len(address)) < 0)
		r = -errno;
	if (r == 0 && place == SOCKET_FIRST)
		r = socket_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	return r;
}
