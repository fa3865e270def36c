/* connection_clear.h: bytes of a client and an agent that speak in clear, before STARTTLS and in mail without TLS.
 * RAgent only looks at their number, and at whether the agent's reply is complete; and it guards the border: nothing
 * that came before the answer to STARTTLS is TLS (CVE-2011-0411).
 */
#pragma once

#include "proto/first_bytes.h"
#include "ragent/connection/connection_body.h"

/* PREAMBLE, RELAYED: passes bytes of the client on. Returns how many. */
size_t connection_clear_take(struct connection *c, uint8_t *data, size_t len);
/* There is room for more bytes, or the client's end has to be passed on. */
void connection_clear_pump(struct connection *c);
void connection_clear_fin(struct connection *c);
/* A frame of the current stream, but END. 0, or negative: a breach of the link protocol. */
int connection_clear_frame(struct connection *c, const struct frame *f);

/* Its first bytes are not TLS. true: it had sent STARTTLS before, and was reset for that. */
bool connection_clear_goes_on(struct connection *c, enum first_bytes what);
/* HELLO, of another process: the client sent something before it can have heard the answer to STARTTLS. true: it was
 * reset for that. */
bool connection_clear_hello_is_injected(struct connection *c);
