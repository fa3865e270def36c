/* settle.h: an owner that is to leave, or to end, waits for a checkpoint. It is a part by itself, because moves and
 * ends wait in the same way.
 */
#pragma once

#include "sslagent/connection/connection_events.h"

/* MOVE: for as long as the move may wait. */
struct ordered_move {
	char target[64];
	uint16_t next_epoch;
	uint64_t until_ms; /* so long it may wait for a checkpoint; 0: not at all */
};

/* Why it waits for a checkpoint. STRAND: no agent can go on with its backend connection. So the client is asked to
 * leave, and the connection ends; or, if the client does not read meanwhile, moves without its backend connection. */
enum settle_to { SETTLES_TO_MOVE, SETTLES_TO_END, SETTLES_TO_STRAND };

#define LEAVE_MS 1000u /* so long a client that asks for nothing may take to see that it has to leave */

/* OWNER again, at a checkpoint of a service that stands between. */
typedef void settle_reached(struct connection *c, const struct ordered_move *order);

/* OWNER -> SETTLING, or REFUSED. @reached is for services that stand between. */
void settle_begin(
	struct connection *c, enum settle_to wanted, const struct ordered_move *order, settle_reached *reached);

connection_reaction settle_is_late; /* no checkpoint came in time */
connection_reaction settle_give_up; /* it has to end: in order where that is possible */
