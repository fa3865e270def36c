/* connection_preamble.h: a client of service smtp before its TLS begins (RFC 3207). RAgent passes the bytes of
 * client and agent and reads none of them. RFC 3207 4.2 discards at STARTTLS all that was sent before. So no agent
 * owns anything here, and another agent may make the handshake.
 *
 * Injection (CVE-2011-0411): the agent reports how many bytes it had read when it answered STARTTLS. Before the
 * client gets that answer, RAgent compares this number with all bytes that came, including those in the kernel's
 * buffer. After the answer, only TLS records may come.
 *
 * connection_preamble.c has its life, connection_clear.c the bytes in both directions.
 */
#ifndef CSSL_RAGENT_CONNECTION_PREAMBLE_H
#define CSSL_RAGENT_CONNECTION_PREAMBLE_H

#include "ragent/connection/connection_internal.h"
#include "smtp/reply_write.h"

/* The replies that the client has got. RAgent itself may send one between two replies, but never inside one. */
enum preamble_said { PREAMBLE_NOTHING, PREAMBLE_WHOLE_REPLIES, PREAMBLE_PART_OF_REPLY };

/* Lives until the handshake after it is over. The client's bytes from number @taken up to @passed are kept. */
struct preamble {
	struct handshake_place place; /* in the limit of its worker */
	uint64_t passed, taken;       /* bytes of the client: passed to the agent; reported by TAKEN */
	uint64_t wait_began_ms;       /* since when it waits for an agent; 0: it does not wait */
	uint64_t hello_ms;            /* when STARTTLS was answered and the time for the handshake began; 0: not yet */
	uint8_t said;                 /* enum preamble_said */
	uint8_t finishing;            /* enum preamble_finishing: whether the agent was told to end it */
	uint8_t told;                 /* FINISHING: enum end_reason that it was told last */
};
enum preamble_finishing { PREAMBLE_GOES_ON, PREAMBLE_FINISHING };

/* connection_preamble.c */
/* PREAMBLE: begin it at an agent, because it has none or lost it. @except has just refused it, or is NO_AGENT. */
void connection_preamble_open(struct connection *c, int except);
/* End it by a reply of RAgent between two replies of the agent; if that is impossible, by a reset. */
void connection_preamble_end(struct connection *c, enum end_reason reason, enum smtp_own words);
/* STARTTLS was answered, and the answer may go to the client: TLS begins. */
void connection_preamble_over(struct connection *c);
/* RELAYED: mail has begun, so it is no preamble any more. */
void connection_preamble_relayed(struct connection *c);

#endif
