/* address.c: a strict reader: an address that inet_pton takes, and a decimal port. It resolves no names and makes no
 * guesses. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "net/socket/address.h"
#include "proto/error.h"

#define UNIX_PREFIX "unix:"

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff }; /* ::ffff:0:0/96, RFC 4291 2.5.5.2 */

static int parse_unix(const char *path, struct sockaddr_storage *out)
{
	struct sockaddr_un *un = (struct sockaddr_un *)out;
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof un->sun_path)
		return CSSL_E_CONFIG;
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, len + 1);
	return 0;
}

/* Decimal, no sign, no space, no leading zero. */
static int parse_number(const char *text, unsigned limit, unsigned *out)
{
	unsigned value = 0;

	if (!text[0] || (text[0] == '0' && text[1]))
		return CSSL_E_CONFIG;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return CSSL_E_CONFIG;
		value = value * 10 + (unsigned)(*text - '0');
		if (value > limit)
			return CSSL_E_CONFIG;
	}
	*out = value;
	return 0;
}

static int parse_ip(const char *text, size_t len, struct sockaddr_storage *out)
{
	char host[INET6_ADDRSTRLEN];

	if (len == 0 || len >= sizeof host)
		return CSSL_E_CONFIG;
	memcpy(host, text, len);
	host[len] = '\0';

	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		return 0;
	}
	if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		return 0;
	}
	return CSSL_E_CONFIG;
}

int address_parse_host(const char *text, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof *out);
	return parse_ip(text, strlen(text), out);
}

int address_parse(const char *text, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof *out);
	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0)
		return parse_unix(text + strlen(UNIX_PREFIX), out);

	const char *colon = strrchr(text, ':');
	if (!colon)
		return CSSL_E_CONFIG;
	unsigned port;
	if (parse_number(colon + 1, UINT16_MAX, &port) < 0)
		return CSSL_E_CONFIG;

	bool bracketed = text[0] == '[';
	if (bracketed && (colon - text < 2 || colon[-1] != ']'))
		return CSSL_E_CONFIG;
	int r = bracketed ? parse_ip(text + 1, (size_t)(colon - text) - 2, out)
			  : parse_ip(text, (size_t)(colon - text), out);
	/* only IPv6 has brackets, because 1:2:443 could be read in two ways */
	if (r < 0 || bracketed != (out->ss_family == AF_INET6))
		return CSSL_E_CONFIG;
	address_set_port((struct sockaddr *)out, (uint16_t)port);
	return 0;
}

const char *address_format(const struct sockaddr *a, char out[static ADDRESS_TEXT_MAX])
{
	char host[INET6_ADDRSTRLEN] = "?";

	switch (a->sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, host, sizeof host);
		snprintf(out, ADDRESS_TEXT_MAX, "%s:%u", host, address_port(a));
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, host, sizeof host);
		snprintf(out, ADDRESS_TEXT_MAX, "[%s]:%u", host, address_port(a));
		break;
	case AF_UNIX:
		snprintf(out, ADDRESS_TEXT_MAX, UNIX_PREFIX "%.*s", (int)sizeof((struct sockaddr_un *)0)->sun_path,
			((const struct sockaddr_un *)a)->sun_path);
		break;
	default: snprintf(out, ADDRESS_TEXT_MAX, "?");
	}
	return out;
}

socklen_t address_len(const struct sockaddr *a)
{
	switch (a->sa_family) {
	case AF_INET: return sizeof(struct sockaddr_in);
	case AF_INET6: return sizeof(struct sockaddr_in6);
	case AF_UNIX: return sizeof(struct sockaddr_un);
	default: return 0;
	}
}

uint16_t address_port(const struct sockaddr *a)
{
	switch (a->sa_family) {
	case AF_INET: return ntohs(((const struct sockaddr_in *)a)->sin_port);
	case AF_INET6: return ntohs(((const struct sockaddr_in6 *)a)->sin6_port);
	default: return 0;
	}
}

void address_set_port(struct sockaddr *a, uint16_t port)
{
	if (a->sa_family == AF_INET)
		((struct sockaddr_in *)a)->sin_port = htons(port);
	else if (a->sa_family == AF_INET6)
		((struct sockaddr_in6 *)a)->sin6_port = htons(port);
}

size_t address_bytes(const struct sockaddr *a, uint8_t out[static 16])
{
	if (a->sa_family == AF_INET) {
		memcpy(out, &((const struct sockaddr_in *)a)->sin_addr, 4);
		return 4;
	}
	if (a->sa_family != AF_INET6)
		return 0;
	const uint8_t *bytes = ((const struct sockaddr_in6 *)a)->sin6_addr.s6_addr;
	if (memcmp(bytes, mapped_prefix, sizeof mapped_prefix) == 0) {
		memcpy(out, bytes + sizeof mapped_prefix, 4);
		return 4;
	}
	memcpy(out, bytes, 16);
	return 16;
}

bool address_is_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	uint8_t x[16], y[16];
	const size_t len = address_bytes(a, x);

	return address_bytes(b, y) == len && memcmp(x, y, len) == 0;
}

bool address_is_same(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family == AF_UNIX || b->sa_family == AF_UNIX)
		return a->sa_family == b->sa_family &&
		       !strcmp(((const struct sockaddr_un *)a)->sun_path, ((const struct sockaddr_un *)b)->sun_path);
	return address_is_same_host(a, b) && address_port(a) == address_port(b);
}

bool address_is_any(const struct sockaddr *a)
{
	static const uint8_t zero[16];
	uint8_t bytes[16];
	size_t len = address_bytes(a, bytes);

	return len > 0 && memcmp(bytes, zero, len) == 0;
}

/* Are the bits of @bytes from @prefix on all zero? */
static bool host_bits_are_zero(const uint8_t *bytes, unsigned len, unsigned prefix)
{
	for (unsigned bit = prefix; bit < len * 8; bit++)
		if (bytes[bit / 8] & (0x80u >> (bit % 8)))
			return false;
	return true;
}

int address_net_parse(const char *text, struct address_net *out)
{
	struct sockaddr_storage a = { 0 };
	const char *slash = strchr(text, '/');
	size_t host_len = slash ? (size_t)(slash - text) : strlen(text);

	if (parse_ip(text, host_len, &a) < 0)
		return CSSL_E_CONFIG;
	/* As written: ::ffff:10.0.0.0/104 is compared as the IPv4 net it means. */
	unsigned written_bits = a.ss_family == AF_INET ? 32 : 128, prefix = written_bits;
	if (slash && parse_number(slash + 1, written_bits, &prefix) < 0)
		return CSSL_E_CONFIG;

	struct address_net net = { 0 };
	net.len = (uint8_t)address_bytes((struct sockaddr *)&a, net.bytes);
	unsigned folded_bits = written_bits - net.len * 8u;
	if (prefix < folded_bits)
		return CSSL_E_CONFIG;
	net.prefix = (uint8_t)(prefix - folded_bits);
	if (!host_bits_are_zero(net.bytes, net.len, net.prefix))
		return CSSL_E_CONFIG;
	*out = net;
	return 0;
}

const char *address_net_format(const struct address_net *n, char out[static ADDRESS_TEXT_MAX])
{
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(n->len == 4 ? AF_INET : AF_INET6, n->bytes, host, sizeof host);
	snprintf(out, ADDRESS_TEXT_MAX, "%s/%u", host, n->prefix);
	return out;
}

bool address_net_has(const struct address_net *n, const struct sockaddr *a)
{
	uint8_t bytes[16];

	return address_net_has_bytes(n, bytes, address_bytes(a, bytes));
}

bool address_nets_have(const struct address_net *nets, size_t count, const struct sockaddr *a)
{
	for (size_t i = 0; i < count; i++)
		if (address_net_has(&nets[i], a))
			return true;
	return false;
}

bool address_net_has_bytes(const struct address_net *n, const uint8_t *bytes, size_t len)
{
	if (len != n->len || n->prefix > 8 * len)
		return false;
	unsigned whole = n->prefix / 8, rest = n->prefix % 8;
	if (memcmp(bytes, n->bytes, whole) != 0)
		return false;
	return rest == 0 || (bytes[whole] >> (8 - rest)) == (n->bytes[whole] >> (8 - rest));
}

bool address_is_local(const struct sockaddr *a)
{
	uint8_t bytes[16];
	size_t len = address_bytes(a, bytes);

	if (a->sa_family == AF_UNIX)
		return true;
	if (len == 4)
		return bytes[0] == 127;
	return len == 16 && memcmp(bytes, &in6addr_loopback, sizeof in6addr_loopback) == 0;
}
