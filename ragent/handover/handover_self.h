/* handover_self.h: the state of a worker of RAgent beside its links and connections, as one message: its numbers, its
 * counters, the words of agents, and the past owners of its connections.
 */
#ifndef CSSL_RAGENT_HANDOVER_SELF_H
#define CSSL_RAGENT_HANDOVER_SELF_H

#include "ragent/connection/connection_handover.h"
#include "ragent/handover/handover_message.h"
#include "ragent/worker/ragent_worker.h"

/* WORKER. 0 or CSSL_E_NO_MEMORY. */
int handover_self_pack(struct ragent_worker *rw, struct handover_message *m);
/* Unpack to a parked worker. 0, or negative: @rw may have a part of it, and must be let go. */
int handover_self_unpack(struct ragent_worker *rw, const struct handover_map *map, const struct handover_message *m);

#endif
