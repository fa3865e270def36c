/* from_client.h: the client's records and ends. It is a part by itself, because what a client says has to have one
 * order, whether it is served, heard again after a loss, or held back for the next owner.
 */
#pragma once

#include "sslagent/connection/connection_events.h"

struct interlude;

connection_reaction from_client_keep; /* records, until they can be opened */
connection_reaction from_client_open; /* records, while there is room for their plaintext */
connection_reaction
	from_client_take_tail; /* FIN or VIOLATION, when all records before are opened; without an event, too */
/* The connection's deadline: a report is due, a head is late, or a client that had to wait may go on. */
connection_reaction from_client_deadline;

void from_client_open_input(struct connection *c);   /* what waits */
void from_client_open_waiting(struct connection *c); /* the same if it serves and something waits */
/* Something of a request came, or it serves again. May begin with the backend, and may end the connection. */
void from_client_watch_head(struct connection *c);
/* It settles no longer: the backend gets what was held back, after all. */
void from_client_give_held(struct connection *c, const struct interlude *i);
