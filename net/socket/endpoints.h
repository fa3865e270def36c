/* endpoints.h: the addresses of a client's connection on both sides: from its socket, or from a trusted balancer's
 * PROXY header. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "proto/ids.h"
#include "proto/link.pb-c.h"
#include "proto/proxy_header.h"

/* Embedded. All zero: unknown. */
struct endpoints {
	struct client_address client, server;
	uint16_t client_port, server_port;
	uint8_t unique_id_len;
	uint8_t *unique_id; /* owned */
};

void endpoints_from_sockets(struct endpoints *e, const struct sockaddr *client, const struct sockaddr *server);
/* The addresses of @h replace those of the sockets. A LOCAL header or one without addresses changes nothing. 0 or
 * CSSL_E_NO_MEMORY. */
int endpoints_from_proxy(struct endpoints *e, const struct proxy_header *h);
/* Version, command, family, addresses and ports of a v2 header for a server behind; LOCAL where they are not known. */
void endpoints_to_proxy(const struct endpoints *e, struct proxy_header *out);
void endpoints_clear(struct endpoints *e);

/* Fill @out, with pointers into @e. */
void endpoints_message(const struct endpoints *e, Cssl__Endpoints *out);
/* 1 if @m holds legal addresses and ports, else 0. NULL holds none. */
bool endpoints_message_is_sane(const Cssl__Endpoints *m);
/* Copy a sane @m into a zeroed @e. 0 or CSSL_E_NO_MEMORY. */
int endpoints_from_message(struct endpoints *e, const Cssl__Endpoints *m);
void endpoint_sockaddr(const struct client_address *a, uint16_t port, struct sockaddr_storage *out);
