/* affinity.h: chooses the agent of a client's address: rendezvous hashing over the candidates, with bounded load, so
 * that one address of a big NAT cannot overload one agent. Pure.
 */
#ifndef CSSL_RAGENT_AFFINITY_H
#define CSSL_RAGENT_AFFINITY_H

#include "proto/sess_obj.h"
#include "ragent/dispatch/agents.h"

/* Index of the affinity agent of @client, -1 without candidates. @bound 0: unbounded; else (>= 1.0) no agent gets more
 * than @bound times its fair share by weight of all connections, the new one included. */
int affinity_pick(const struct candidate *candidates, size_t count, const struct client_address *client, double bound);

#endif
