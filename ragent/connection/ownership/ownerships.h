/* ownerships.h: a ring of bounded size with the last owners of a worker's connections, for people who look at one
 * connection. It needs no memory in the connection, and a new RAgent in place of this one takes it over.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/ids.h"
#include "proto/wire.h"

#define OWNERSHIPS_KEPT   8192u /* for each worker */
#define OWNERSHIPS_LISTED 64u   /* for each connection */

/* X(NAME, "name"): why the agent became owner */
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
	uint64_t since_ms; /* by the worker's clock */
	uint32_t pause_us; /* how long no agent owned it before */
	uint16_t epoch;
	int16_t agent; /* NO_AGENT: it rests */
	uint8_t cause; /* enum ownership_cause */
};

struct ownerships;

struct ownerships *ownerships_create(void); /* for free(); NULL: out of memory */

void ownerships_note(struct ownerships *o, const struct ownership *next);
/* The last entries for that connection, oldest first. Returns how many. */
size_t ownerships_of(
	const struct ownerships *o, const struct connection_id *id, struct ownership out[static OWNERSHIPS_LISTED]);

/* All entries, for another process. */
size_t ownerships_packed_len(const struct ownerships *o);
void ownerships_pack(const struct ownerships *o, struct wire_writer *w);
/* Puts them after the entries of this process. Agent i of the other process is @agents[i] here, or NO_AGENT: then
 * its entries are left out. 0, or CSSL_E_TRUNCATED or CSSL_E_RANGE, and nothing changes. */
int ownerships_unpack(struct ownerships *o, const int *agents, unsigned agent_count, const uint8_t *in, size_t len);
