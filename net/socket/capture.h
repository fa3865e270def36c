/* capture.h: connections that the kernel (nftables) leads to a listener although they wanted to go elsewhere, and where
 * they wanted to go.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "proto/proxy_header.h"

enum capture {
	CAPTURE_NONE,     /* clients connect to the listener itself; a PROXY header may name another destination */
	CAPTURE_REDIRECT, /* the kernel remembers the destination (SO_ORIGINAL_DST) */
	CAPTURE_TPROXY    /* the accepted socket has it as its own address (IP_TRANSPARENT) */
};

/* As the configuration names it. */
const char *capture_name(enum capture how);

/* TPROXY: the kernel may deliver connections for other addresses to the listening socket @fd, and so accepted ones may
 * have such an address. Needs CAP_NET_ADMIN, if the socket is not so already. Otherwise it may not any more. 0 or
 * negative errno. */
int capture_prepare(int fd, enum capture how);
/* Does the socket have that right? Accepted sockets inherit it. */
bool capture_is_transparent(int fd);
/* May this process give it? 0 or negative errno. */
int capture_try(void);

/* The destination of the accepted @fd; with NONE its own address. 0, or CSSL_E_NOT_FOUND: the client connected to the
 * listener itself, which listens on @listener, or the kernel does not know. A TPROXY listener counts whatever came to
 * its port as such. */
int capture_destination(int fd, enum capture how, const struct sockaddr *listener, struct sockaddr_storage *out);

/* From a PROXY header. 0 with both addresses, or CSSL_E_NOT_FOUND: it has none (LOCAL: a health check). */
int capture_of_header(
	const struct proxy_header *h, struct sockaddr_storage *source, struct sockaddr_storage *destination);
