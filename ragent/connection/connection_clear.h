/* connection_clear.h: bytes of a client and an agent that speak in clear, before STARTTLS and in mail without TLS.
 * RAgent only looks at their number, and at whether the agent's reply is complete; and it guards the border: nothing
 * that came before the answer to STARTTLS is TLS (CVE-2011-0411).
 */
#pragma once

#include "ragent/connection/connection_body.h"

/* PREAMBLE, RELAYED: passes bytes of the client on. Returns how many. */
size_t connection_clear_take(struct connection *c, uint8_t *data, size_t len);
/* There is room for more bytes, or the client's end has to be passed on. */
void connection_clear_pump(struct connection *c);
/* A frame of the current stream, but END. 0, or negative: a breach of the link protocol. */
int connection_clear_frame(struct connection *c, const struct frame *f);

/* Ends it: what its client sent came too early for TLS, or is none, although it had sent STARTTLS. */
void connection_clear_reset_injected(struct connection *c);
