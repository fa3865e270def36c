/* outward.h: all destinations. A part of its own, because only here is known which one a session enters, and which one
 * gives its place to another. */
#pragma once

#include "smtpproxy/outward/destination.h"

/* @home has to outlive it. NULL: out of memory. */
struct outward *outward_create(const struct outward_home *home);

/* The destination for that goal (route.h), for a session that enters it now. With `as_sender`, each sender @from has
 * its own. NULL: no room for another one, or out of memory. */
struct destination *outward_find(
	struct outward *o, const struct destination_goal *goal, const struct client_address *from);

/* The configuration of @home has changed. It counts for all connections that are opened from now on. Existing ones
 * end, at the latest after their transaction. */
void outward_reload(struct outward *o);

/* No session is left: close all connections. @done is called once nothing is open. */
void outward_stop(struct outward *o, void (*done)(void *ctx), void *ctx);
void outward_destroy(struct outward *o); /* NULL is legal */

void outward_each(const struct outward *o, void (*fn)(void *ctx, const struct destination *d), void *ctx);
unsigned outward_count(const struct outward *o);
/* limits.destinations are in use, so outward_find() makes no further one. */
bool outward_is_full(const struct outward *o);
