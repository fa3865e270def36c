/* endpoints.c: addresses as 4 or 16 bytes and a port. */
#include "net/socket/endpoints.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "net/socket/address.h"
#include "proto/error.h"

static void endpoint_set(struct client_address *a, uint16_t *port, const struct sockaddr *from)
{
	a->len = (uint8_t)address_bytes(from, a->bytes);
	*port = a->len ? address_port(from) : 0;
}

void endpoints_from_sockets(struct endpoints *e, const struct sockaddr *client, const struct sockaddr *server)
{
	endpoint_set(&e->client, &e->client_port, client);
	endpoint_set(&e->server, &e->server_port, server);
}

static int keep_unique_id(struct endpoints *e, const uint8_t *id, size_t len)
{
	if (len == 0 || len > PROXY_UNIQUE_ID_MAX)
		return 0;
	e->unique_id = malloc(len);
	if (!e->unique_id)
		return CSSL_E_NO_MEMORY;
	memcpy(e->unique_id, id, len);
	e->unique_id_len = (uint8_t)len;
	return 0;
}

int endpoints_from_proxy(struct endpoints *e, const struct proxy_header *h)
{
	uint8_t len = h->family == PROXY_TCP4 ? 4 : h->family == PROXY_TCP6 ? 16 : 0;

	if (h->command != PROXY_PROXIED)
		return 0;
	if (len) {
		e->client.len = e->server.len = len;
		memcpy(e->client.bytes, h->source, len);
		memcpy(e->server.bytes, h->destination, len);
		e->client_port = h->source_port;
		e->server_port = h->destination_port;
	}
	return keep_unique_id(e, h->unique_id, h->unique_id_len);
}

void endpoints_to_proxy(const struct endpoints *e, struct proxy_header *out)
{
	const size_t len = e->client.len;

	out->version = 2;
	if (len == 0 || len != e->server.len) {
		out->command = PROXY_LOCAL;
		return;
	}
	out->command = PROXY_PROXIED;
	out->family = len == 4 ? PROXY_TCP4 : PROXY_TCP6;
	memcpy(out->source, e->client.bytes, len);
	memcpy(out->destination, e->server.bytes, len);
	out->source_port = e->client_port;
	out->destination_port = e->server_port;
}

void endpoints_clear(struct endpoints *e)
{
	free(e->unique_id);
	*e = (struct endpoints){ 0 };
}

void endpoints_message(const struct endpoints *e, Cssl__Endpoints *out)
{
	cssl__endpoints__init(out);
	out->client_address = (ProtobufCBinaryData){ e->client.len, (uint8_t *)e->client.bytes };
	out->client_port = e->client_port;
	out->server_address = (ProtobufCBinaryData){ e->server.len, (uint8_t *)e->server.bytes };
	out->server_port = e->server_port;
	out->unique_id = (ProtobufCBinaryData){ e->unique_id_len, e->unique_id };
}

static void take_address(struct client_address *a, const ProtobufCBinaryData *from)
{
	a->len = (uint8_t)from->len;
	if (from->len)
		memcpy(a->bytes, from->data, from->len);
}

static bool is_address_len(size_t len)
{
	return len == 0 || len == 4 || len == 16;
}

bool endpoints_message_is_sane(const Cssl__Endpoints *m)
{
	return m && is_address_len(m->client_address.len) && is_address_len(m->server_address.len) &&
	       m->client_port <= UINT16_MAX && m->server_port <= UINT16_MAX && m->unique_id.len <= PROXY_UNIQUE_ID_MAX;
}

int endpoints_from_message(struct endpoints *e, const Cssl__Endpoints *m)
{
	take_address(&e->client, &m->client_address);
	take_address(&e->server, &m->server_address);
	e->client_port = (uint16_t)m->client_port;
	e->server_port = (uint16_t)m->server_port;
	return keep_unique_id(e, m->unique_id.data, m->unique_id.len);
}

void endpoint_sockaddr(const struct client_address *a, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof *out);
	if (a->len == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)out;
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, a->bytes, 4);
	} else if (a->len == 16) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		memcpy(&in6->sin6_addr, a->bytes, 16);
	}
}
