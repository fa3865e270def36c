/* connection_states.h: the state of a connection: which follow each other, how long it may be in each, and what happens
 * when that time is over. All changes of state go through connection_to(), which checks, counts and logs them.
 */
#pragma once

#include "ragent/connection/connection_body.h"

/* The drawing in connection.h has to allow it. */
void connection_to(struct connection *c, enum connection_state to);
/* Add @by (1 or -1) to the gauge of this state, if there is one. */
void connection_count_state(struct connection *c, enum connection_state state, int by);
/* Has its handshake begun and not ended? */
bool connection_shakes_hands(const struct connection *c);

/* Set the longest time that it may wait in its state. */
void connection_arm_deadline(struct connection *c);
void connection_deadline_is_over(struct deadline *d); /* connection.deadline */

/* It counts in the connections of @affinity and in the handshakes of @handshake, and no longer in those of the agents
 * before. NO_AGENT: of none. */
void connection_assign(struct connection *c, int affinity, int handshake);
