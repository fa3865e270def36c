/* connection_life.h: the memory of a connection, from its creation until it is freed, and how a silent one gives most
 * of it back (connection.c). One place makes and frees all of it, so that nothing is lost, and nothing is freed twice.
 *
 * A silent connection, resting or owned, is compact: it has no busy part. Its descriptor is in the worker's dormant
 * set. As soon as input comes, or bytes for the client, it gets a busy part again.
 */
#pragma once

#include "ragent/connection/connection_body.h"

/* Not counted anywhere yet; connection_join() puts it on its worker's list. NULL: out of memory. */
struct connection *connection_create(struct connection_home *home, struct front *front);
/* @c must be on no list. */
void connection_discard(struct connection *c);
void connection_join(struct connection *c);
/* The client's handle, or its descriptor, is closed. */
void connection_free(struct connection *c);

/* RESTING, OWNED: it becomes compact if nothing is left over at the end of this turn; when RESTING, also later. So a
 * callback that uses it is not disturbed. */
void connection_may_compact(struct connection *c);
/* It has no data that needs a busy part. */
bool connection_leaves_nothing_over(const struct connection *c);
/* It has a busy part from now on, at least until the end of the turn. 0; negative: out of memory, and the caller has
 * to reset it. */
int connection_expand(struct connection *c);
/* The same, but on failure it is reset. */
int connection_expand_or_end(struct connection *c);
/* Its kept queue; for a compact one, an empty queue with its record numbers. */
struct kept connection_kept(const struct connection *c);

/* --- its worker's budget --- */

/* For the bytes that a worker keeps for its connections: client records that wait, or are kept to be asked again; the
 * copies of them for the next process; bytes that clients have not received; notes. Above the budget, the connection
 * that keeps most first gives up bytes that it can do without, then those for the next process, and then ends. An idle
 * connection keeps nothing, so it is never asked. */

/* It may keep more or fewer bytes than before: count them again. */
void connection_weigh(struct connection *c);
/* Above the budget: take memory back from the connections that keep most. May end any connection. */
void connection_relieve(struct connection_home *home);
