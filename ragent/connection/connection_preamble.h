/* connection_preamble.h: a client of service smtp before its TLS begins (RFC 3207): which agent speaks with it in
 * clear, and how that ends. No agent owns anything here, and another agent may make the handshake.
 */
#pragma once

#include "ragent/connection/connection_body.h"

/* The replies that the client has got. RAgent itself may send one between two replies, but never inside one. */
enum preamble_said { PREAMBLE_NOTHING, PREAMBLE_WHOLE_REPLIES, PREAMBLE_PART_OF_REPLY };
enum preamble_finishing { PREAMBLE_GOES_ON, PREAMBLE_FINISHING };

/* What changes of it; an image of it goes to the next process (connection_saved.h). What the agent has read of the
 * client is before the first kept byte. */
struct preamble_now {
	uint64_t wait_began_ms; /* since when it waits for an agent; 0: it does not wait */
	uint64_t hello_ms;      /* when STARTTLS was answered and the time for the handshake began; 0: not yet */
	uint8_t said;           /* enum preamble_said */
	uint8_t finishing;      /* enum preamble_finishing: whether the agent was told to end it */
	uint8_t told;           /* FINISHING: enum end_reason that it was told last */
};

/* Lives until the handshake after it is over. The client's bytes that the agent has not reported by TAKEN are kept. */
struct preamble {
	struct handshake_place place; /* in the limit of its worker */
	struct preamble_now now;
};

/* Its client speaks in clear, or did so until the link to the agent broke. */
static inline bool connection_is_in_clear(const struct connection *c)
{
	return c->busy && c->busy->preamble && c->busy->preamble->now.hello_ms == 0;
}

/* Its client is known, and begins in clear. */
void connection_preamble_begin(struct connection *c);
/* PREAMBLE: begin it at an agent, because it has none or lost it. @except has just refused it, or is NO_AGENT. */
void connection_preamble_open(struct connection *c, int except);
/* Its agent @agent is lost, or does not go on with it. This may end it. */
void connection_preamble_lost(struct connection *c, int agent);
/* Its agent has it still: PREAMBLE, RELAYED. */
void connection_preamble_goes_on(struct connection *c);

/* Ask its agent to end it between two replies; at the end of a drain RAgent does so itself. */
void connection_preamble_finish(struct connection *c, enum end_reason reason);
/* Ends the preamble, if there is one. It must have a busy part. */
void connection_preamble_drop(struct connection *c);

/* Of the process before: give it a place in the limit. 0 or CSSL_E_NO_MEMORY. */
int connection_preamble_count(struct connection *c);
/* Time until its deadline, and the action then. */
uint64_t connection_preamble_left_ms(const struct connection *c);
void connection_preamble_on_deadline(struct connection *c);
