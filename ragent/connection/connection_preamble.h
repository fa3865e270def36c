/* connection_preamble.h: a client of service smtp before its TLS begins (RFC 3207): RAgent passes what it and an agent
 * say, and looks at none of it. RFC 3207 4.2 drops all that was said at STARTTLS, so no agent owns anything here, and
 * the handshake may be another's.
 *
 * Injection (CVE-2011-0411): the agent says how many bytes it had read when it answered STARTTLS. Before the client
 * gets that answer, RAgent compares them with all that came, the kernel's buffer included; what follows the answer has
 * to be TLS records.
 *
 * connection_preamble.c has its life, connection_clear.c the bytes both ways.
 */
#ifndef CSSL_RAGENT_CONNECTION_PREAMBLE_H
#define CSSL_RAGENT_CONNECTION_PREAMBLE_H

#include "ragent/connection/connection_internal.h"
#include "smtp/own_reply.h"

/* What the client has got of an agent. RAgent itself may speak between two replies, and never within one. */
enum preamble_said { PREAMBLE_NOTHING, PREAMBLE_WHOLE_REPLIES, PREAMBLE_PART_OF_REPLY };

/* Lives until the handshake behind it is over. */
struct preamble {
	struct handshake_place place; /* of its worker's preambles */
	uint64_t passed, taken;       /* bytes of the client: given to the agent; told by TAKEN */
	uint64_t wait_began_ms;       /* for an agent; 0: it does not wait */
	uint64_t hello_ms;            /* the handshake's time begins: STARTTLS was answered; 0: it was not */
	uint8_t said;                 /* enum preamble_said */
	uint8_t finishing;            /* enum preamble_finishing: the agent was told to end it */
};
enum preamble_finishing { PREAMBLE_GOES_ON, PREAMBLE_FINISHING };

/* connection_preamble.c */
/* PREAMBLE: its agent cannot have it, or is lost; @except has just refused it, or is NO_AGENT. */
void connection_preamble_open(struct connection *c, int except);
/* End it by a reply of ours where one may stand, else by a reset. */
void connection_preamble_end(struct connection *c, enum end_reason reason, enum smtp_own words);
/* STARTTLS was answered, and this answer may go to the client: TLS begins. */
void connection_preamble_over(struct connection *c);
/* RELAYED: it is no preamble any more. */
void connection_preamble_relayed(struct connection *c);

#endif
