/* capture.c: asks the kernel, or a PROXY header. */
#include "smtpproxy/policy/capture.h"

#include <netinet/in.h>
#include <string.h>

/* after netinet/in.h, which defines the same names */
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>

#include "proto/error.h"

static int ask_conntrack(int fd, sa_family_t family, struct sockaddr_storage *out)
{
	socklen_t len = sizeof *out;
	if (family == AF_INET6)
		return getsockopt(fd, SOL_IPV6, IP6T_SO_ORIGINAL_DST, out, &len);
	return getsockopt(fd, SOL_IP, SO_ORIGINAL_DST, out, &len);
}

static int is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	uint8_t x[16], y[16];
	const size_t len = address_bytes(a, x);
	return address_bytes(b, y) == len && memcmp(x, y, len) == 0 && address_port(a) == address_port(b);
}

int capture_destination(
	int fd, enum smtpproxy_capture how, const struct sockaddr *listener, struct sockaddr_storage *out)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof local;
	memset(out, 0, sizeof *out);
	if (getsockname(fd, (struct sockaddr *)&local, &len) < 0)
		return CSSL_E_NOT_FOUND;
	if (how == SMTPPROXY_CAPTURE_REDIRECT && ask_conntrack(fd, local.ss_family, out) < 0)
		return CSSL_E_NOT_FOUND;
	if (how == SMTPPROXY_CAPTURE_TPROXY)
		*out = local;
	const struct sockaddr *to = (const struct sockaddr *)out;
	const int direct = how == SMTPPROXY_CAPTURE_REDIRECT
				   ? is_same(to, (const struct sockaddr *)&local)
				   : is_same(to, listener) || address_port(to) == address_port(listener);
	return direct ? CSSL_E_NOT_FOUND : 0;
}

static void fill(struct sockaddr_storage *out, enum proxy_family family, const uint8_t bytes[16], uint16_t port)
{
	memset(out, 0, sizeof *out);
	if (family == PROXY_TCP4) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;
		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, bytes, 4);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, bytes, 16);
	}
	address_set_port((struct sockaddr *)out, port);
}

int capture_of_header(
	const struct proxy_header *h, struct sockaddr_storage *source, struct sockaddr_storage *destination)
{
	if (h->family != PROXY_TCP4 && h->family != PROXY_TCP6)
		return CSSL_E_NOT_FOUND;
	fill(source, h->family, h->source, h->source_port);
	fill(destination, h->family, h->destination, h->destination_port);
	return 0;
}
