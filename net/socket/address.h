/* address.h: socket addresses as text and back: "127.0.0.1:443", "[::1]:443", "unix:/path". No name look-ups. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_MAX 128u

/* 0 or CSSL_E_CONFIG. */
int address_parse(const char *text, struct sockaddr_storage *out);
/* An address without a port, as "127.0.0.1"; the port becomes 0. 0 or CSSL_E_CONFIG. */
int address_parse_host(const char *text, struct sockaddr_storage *out);
const char *address_format(const struct sockaddr *a, char out[static ADDRESS_TEXT_MAX]);
socklen_t address_len(const struct sockaddr *a);
uint16_t address_port(const struct sockaddr *a);
void address_set_port(struct sockaddr *a, uint16_t port);
/* 4 or 16 address bytes in network order (IPv4-mapped IPv6 becomes 4); 0 for UNIX. */
size_t address_bytes(const struct sockaddr *a, uint8_t out[static 16]);

/* Have they the same bytes (as above)? The same with the port, or the same path? */
bool address_is_same_host(const struct sockaddr *a, const struct sockaddr *b);
bool address_is_same(const struct sockaddr *a, const struct sockaddr *b);

/* Does it stand for all addresses of its family ("0.0.0.0", "[::]")? */
bool address_is_any(const struct sockaddr *a);

/* Is it an address of this host alone (UNIX, loopback)? */
bool address_is_local(const struct sockaddr *a);

/* "10.0.0.0/8", "::1/128". */
struct address_net {
	uint8_t bytes[16];
	uint8_t len;
	uint8_t prefix;
};
int address_net_parse(const char *text, struct address_net *out);
bool address_net_has(const struct address_net *n, const struct sockaddr *a);
/* The same for address_bytes(). @n may be malformed: 0. */
bool address_net_has_bytes(const struct address_net *n, const uint8_t *bytes, size_t len);
bool address_nets_have(const struct address_net *nets, size_t count, const struct sockaddr *a); /* one of them */
const char *address_net_format(const struct address_net *n, char out[static ADDRESS_TEXT_MAX]);
