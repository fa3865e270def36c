/* carrier.h: carries a connection's records to and from the client. A carrier is a stream on a link from RAgent
 * or a TCP connection of this agent's own TLS listener (carrier_home.h). A connection sees only this interface.
 *
 * Credit limits the output: sealing_credit() grows as the client takes bytes, and never allows more than one
 * window beyond them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/end_reason.h"
#include "proto/frame.h"
#include "proto/link.pb-c.h"

struct carrier;

enum carrier_end { CARRIER_ORDERLY, CARRIER_ABORT };

struct carrier_ops {
	/* Room for at most @cap bytes of whole records (cap <= FRAME_PAYLOAD_MAX); NULL: out of memory. Then send
	 * the written bytes, with the FRAME_ flags that hold after their last record. */
	uint8_t *(*reserve)(struct carrier *c, size_t cap);
	void (*send)(struct carrier *c, size_t len, uint8_t flags);

	/* Client records consumed (credit, acknowledgement, checkpoint mark). */
	void (*consumed)(struct carrier *c, const struct frame_consumed *consumed, uint8_t flags);

	/* Send the client FIN after all that was sent. The client may go on sending. */
	void (*fin)(struct carrier *c, uint8_t flags);

	/* The connection is over for this agent. It makes no more calls. */
	void (*end)(struct carrier *c, enum end_reason reason, enum carrier_end how);

	/* No record waits to be opened any more (connection_waiting() is 0 again). Direct carriers only; NULL on a
	 * link, where RAgent uses its credit. */
	void (*taken)(struct carrier *c);

	/* Ownership, links only (NULL on a direct carrier: such a connection never has a live part). */
	void (*say)(struct carrier *c, enum frame_type type, const ProtobufCMessage *m);
	/* How many of the records that were sent RAgent has not confirmed. Negative: not known. */
	ptrdiff_t (*unconfirmed)(const struct carrier *c);
	/* Send all output now, not at the end of the turn: the next step may end this process. */
	void (*flush)(struct carrier *c);
	void (*refused)(struct carrier *c, Cssl__LinkRefused__Reason reason, const char *detail);
	/* The connection continues elsewhere: send nothing, and ignore what still comes for this carrier. */
	void (*retire)(struct carrier *c);
};

enum carrier_pace {
	CARRIER_AT_WORK,
	CARRIER_PAUSED /* nobody takes anything for now: open no record, read no backend, seal no answer */
};

/* Embedded in its holder, as the first member. */
struct carrier {
	const struct carrier_ops *ops;
	enum carrier_pace pace;
};

static inline bool carrier_moves(const struct carrier *c)
{
	return c->ops->say != NULL;
}
