/* flow.h: an owner in the midst of things, and with it all that the folders above use of this one. It is a part by
 * itself, because both directions wait for each other: what one takes may be what the other waited for. Each may end
 * the connection.
 */
#pragma once

#include "sslagent/connection/flow/from_client.h"
#include "sslagent/connection/flow/words.h"

void flow_start(struct connection *c); /* OWNER: open the backend if the service speaks first, take what waits */
void flow_go_on(struct connection *c); /* whatever became possible: seal, open, end */
/* Give the client [data + used, data + len) of an answer. Returns the bytes used. */
size_t flow_pass_on(struct connection *c, uint8_t *data, size_t used, size_t len);

connection_reaction flow_answer;       /* bytes of the backend */
connection_reaction flow_backend_took; /* and both ways go on */
connection_reaction flow_lose_backend;
