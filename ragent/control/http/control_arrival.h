/* control_arrival.h: connections to the control address that begin with a PROXY header. The header names the client,
 * and is removed before libmicrohttpd sees the rest. It is a part of its own because a client has no place and no HTTP
 * until its header is whole.
 */
#pragma once

#include "ragent/control/http/control_clients.h"

/* Embedded. Its owner sets the first two. */
struct control_arrivals {
	struct control_clients *clients; /* who gets them */
	enum control_names names;        /* whether the header may name a certificate */
	struct newcomers waiting;        /* for their header */
};

/* @clients has its limits. */
void control_arrivals_begin(struct control_arrivals *a);

/* @fd is owned from now on. When the header is whole it goes to control_clients_admit(); when no header comes in time
 * it is closed. */
void control_arrivals_await(struct control_arrivals *a, int fd, const struct sockaddr_storage *peer);

/* Close all connections that still wait for their header. */
void control_arrivals_end(struct control_arrivals *a);
