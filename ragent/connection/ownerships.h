/* ownerships.h: who owned a worker's connections, as far back as a ring of bounded size goes: for people who look at
 * one connection. It costs a connection nothing, and goes on in a new RAgent in place of this one.
 */
#ifndef CSSL_RAGENT_OWNERSHIPS_H
#define CSSL_RAGENT_OWNERSHIPS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/sess_obj.h"
#include "proto/wire.h"

#define OWNERSHIPS_KEPT   8192u /* of a worker */
#define OWNERSHIPS_LISTED 64u   /* of a connection */

/* X(NAME, "name"): how it came to own */
#define OWNERSHIP_CAUSES(X)                                                                                            \
	X(HANDSHAKE, "handshake")                                                                                      \
	X(HAND_OFF, "hand-off")                                                                                        \
	X(MOVE, "move")                                                                                                \
	X(DRAIN, "drain")                                                                                              \
	X(WAKE, "wake")                                                                                                \
	X(TAKEOVER, "takeover")                                                                                        \
	X(REST, "rest")

enum ownership_cause {
#define X(NAME, name) OWNERSHIP_##NAME,
	OWNERSHIP_CAUSES(X)
#undef X
		OWNERSHIP_CAUSE_COUNT
};

struct ownership {
	struct connection_id connection;
	uint64_t since_ms; /* of the worker's clock */
	uint32_t pause_us; /* in which nobody owned it */
	uint16_t epoch;
	int16_t agent; /* NO_AGENT: it rests */
	uint8_t cause; /* enum ownership_cause */
};

struct ownerships;

struct ownerships *ownerships_create(void); /* NULL: out of memory */
void ownerships_destroy(struct ownerships *o);

void ownerships_note(struct ownerships *o, const struct ownership *next);
/* The last ones of that connection, oldest first; returns how many. */
size_t ownerships_of(
	const struct ownerships *o, const struct connection_id *id, struct ownership out[static OWNERSHIPS_LISTED]);

/* All of them, for another process. */
size_t ownerships_packed_len(const struct ownerships *o);
void ownerships_pack(const struct ownerships *o, struct wire_writer *w);
/* Behind what is noted here; agent i of the process that packed is @agents[i] here, or NO_AGENT: what that one owned is
 * left out. 0, or CSSL_E_TRUNCATED or CSSL_E_RANGE, and nothing is noted. */
int ownerships_unpack(struct ownerships *o, const int *agents, unsigned agent_count, const uint8_t *in, size_t len);

const char *ownership_cause_name(enum ownership_cause c);

#endif
