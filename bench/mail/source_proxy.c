/* source_proxy.c: the PROXY header in front of a connection of smtp-source. */
#include "bench/mail/source_transaction.h"
#include "net/address.h"
#include "proto/proxy_header.h"

static void fill_address(const struct sockaddr *a, uint8_t out[static 16], uint16_t *port)
{
	address_bytes(a, out);
	*port = address_port(a);
}

void source_session_write_proxy_header(struct source_session *s)
{
	const struct source_options *o = s->host->options;
	struct sockaddr_storage from, to;
	struct proxy_header h = { .version = (uint8_t)o->proxy_version, .command = PROXY_PROXIED };
	uint8_t out[PROXY_V1_MAX + 64];
	if (stream_local(&s->wire.stream, &from) < 0 || stream_peer(&s->wire.stream, &to) < 0)
		return;
	uint16_t port = address_port((struct sockaddr *)&from);
	if (source_ranges_get(&o->claimed, s->connections + s->number, &from))
		address_set_port((struct sockaddr *)&from, port);
	h.family = from.ss_family == AF_INET6 ? PROXY_TCP6 : PROXY_TCP4;
	fill_address((struct sockaddr *)&from, h.source, &h.source_port);
	if (to.ss_family == from.ss_family)
		fill_address((struct sockaddr *)&to, h.destination, &h.destination_port);
	ptrdiff_t len = proxy_header_write(&h, out, sizeof out);
	if (len > 0)
		stream_write(&s->wire.stream, out, (size_t)len);
}
