/* capture.c: asks the kernel, or a PROXY header. */
#include "net/socket/capture.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* after netinet/in.h, which defines the same names */
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>

#include "net/socket/address.h"
#include "net/socket/endpoints.h"
#include "proto/error.h"

const char *capture_name(enum capture how)
{
	static const char *const names[] = {
		[CAPTURE_NONE] = "none",
		[CAPTURE_REDIRECT] = "redirect",
		[CAPTURE_TPROXY] = "tproxy",
	};
	return names[how];
}

/* --- a socket for other addresses --- */

static bool is_v6(int fd)
{
	int domain = AF_UNSPEC;
	socklen_t len = sizeof domain;
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_INET6;
}

bool capture_is_transparent(int fd)
{
	const bool v6 = is_v6(fd);
	int on = 0;
	socklen_t len = sizeof on;
	return getsockopt(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, &on, &len) == 0 && on;
}

int capture_prepare(int fd, enum capture how)
{
	const int v6 = is_v6(fd), wanted = how == CAPTURE_TPROXY;
	if (capture_is_transparent(fd) == wanted)
		return 0;
	if (setsockopt(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, &wanted, sizeof wanted) < 0)
		return -errno;
	return 0;
}

int capture_try(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int r = capture_prepare(fd, CAPTURE_TPROXY);
	close(fd);
	return r;
}

/* --- where a connection wanted to go --- */

static int ask_conntrack(int fd, sa_family_t family, struct sockaddr_storage *out)
{
	socklen_t len = sizeof *out;
	memset(out, 0, sizeof *out);
	if (family == AF_INET6)
		return getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, out, &len);
	return getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, out, &len);
}

int capture_destination(int fd, enum capture how, const struct sockaddr *listener, struct sockaddr_storage *out)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof local;
	const struct sockaddr *own = (const struct sockaddr *)&local, *to = (const struct sockaddr *)out;
	if (how == CAPTURE_NONE && !address_is_any(listener)) { /* there is only one way to be accepted */
		memset(out, 0, sizeof *out);
		memcpy(out, listener, address_len(listener));
		return 0;
	}
	if (getsockname(fd, (struct sockaddr *)&local, &len) < 0)
		return CSSL_E_NOT_FOUND;
	*out = local;
	if (how == CAPTURE_REDIRECT && (ask_conntrack(fd, local.ss_family, out) < 0 || address_is_same(to, own)))
		return CSSL_E_NOT_FOUND;
	if (how == CAPTURE_TPROXY && address_port(own) == address_port(listener))
		return CSSL_E_NOT_FOUND;
	return 0;
}

int capture_of_header(
	const struct proxy_header *h, struct sockaddr_storage *source, struct sockaddr_storage *destination)
{
	struct proxy_header addresses = *h;
	struct endpoints e = { 0 };
	addresses.unique_id_len = 0;
	endpoints_from_proxy(&e, &addresses); /* only the id takes memory */
	if (e.client.len == 0)
		return CSSL_E_NOT_FOUND;
	endpoint_sockaddr(&e.client, e.client_port, source);
	endpoint_sockaddr(&e.server, e.server_port, destination);
	return 0;
}
