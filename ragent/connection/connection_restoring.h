/* connection_restoring.h: shared by connection_restoring.c, which finds the connections to restore, and
 * connection_restored.c, which makes one of them.
 */
#ifndef CSSL_RAGENT_CONNECTION_RESTORING_H
#define CSSL_RAGENT_CONNECTION_RESTORING_H

#include "ragent/connection/connection_handover.h"
#include "ragent/connection/connection_internal.h"

enum pass { PASS_OF_ACTIVE, PASS_OF_ALL };

/* One for each worker, from the start of its thread until all connections are restored. */
struct restoring {
	struct connection_home *home;
	struct handover_map map;
	struct slot_walk walk;
	enum pass pass;
	uint32_t forgotten;       /* so many chunks of the table were looked at, behind the last slot */
	struct turn_end next;     /* when the next connections are restored */
	uint32_t turn;            /* in which the last ones were */
	uint64_t stopped_ns;      /* behind the last ones; 0: there were none */
	const uint8_t *read_last; /* what the worker of the process before read last; NULL: it is overwritten */
};

/* Restores the connection of @s, or resets it. */
void connection_restore(const struct restoring *all, struct table_slot *s);

/* Did the process before read bytes of this client that are in no log, but in its worker's read buffer? 1 or 0. */
int connection_has_unlogged(const struct connection_home *home, const struct table_slot *s);

#endif
