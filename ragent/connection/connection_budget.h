/* connection_budget.h: a worker's budget for the bytes that it keeps for its connections: client records that wait, or
 * are kept to be asked again; the copies of them for the next process; bytes that clients have not received; notes.
 * Above the budget, the connection that keeps most first gives up bytes that it can do without, then those for the next
 * process, and then ends. An idle connection keeps nothing, so it is never asked.
 */
#ifndef CSSL_RAGENT_CONNECTION_BUDGET_H
#define CSSL_RAGENT_CONNECTION_BUDGET_H

#include "ragent/connection/connection.h"

/* It may keep more or fewer bytes than before: count them again. */
void connection_weigh(struct connection *c);
/* Above the budget: take memory back from the connections that keep most. May end any connection. */
void connection_relieve(struct connection_home *home);

#endif
