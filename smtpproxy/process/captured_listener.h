/* captured_listener.h: a listening socket to which the kernel delivers connections for other addresses (TPROXY). */
#ifndef CSSL_SMTPPROXY_CAPTURED_LISTENER_H
#define CSSL_SMTPPROXY_CAPTURED_LISTENER_H

#include "net/listener.h"

/* Like listener_create(), with IP_TRANSPARENT, which needs CAP_NET_ADMIN. */
struct listener *captured_listener_create(struct worker *w, const struct sockaddr *address, int backlog,
	const struct listener_ops *ops, void *ctx, int *uv_error);

/* May this process use addresses of other hosts (IP_TRANSPARENT)? 0, or negative errno. */
int captured_listener_try(void);

#endif
