/* outward.h: all destinations. */
#ifndef CSSL_SMTPPROXY_OUTWARD_H
#define CSSL_SMTPPROXY_OUTWARD_H

#include "conf/smtpproxy.h"
#include "smtpproxy/outward/destination.h"

/* @home has to outlive it. NULL: out of memory. */
struct outward *outward_create(const struct outward_home *home);

/* The destination for that goal, for a session that enters it. With `as_sender`, each sender @from has its own. NULL:
 * no room for another one, or out of memory. */
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

const struct outward_home *outward_home(const struct outward *o);

/* For destination.c. */
void outward_forget(struct outward *o, struct destination *d);
void outward_note_step(struct outward *o);
/* Applies the configuration for the receiver of @d. Returns the most connections to it. */
uint32_t outward_apply_file(const struct outward *o, struct destination *d);
void outward_note_used(struct outward *o, struct destination *d);
void outward_note_unused(struct outward *o, struct destination *d);

/* For outward.c: of destination.c. @share: NULL: its own one. */
struct destination *destination_create(struct outward *outward, const struct onward_route *route,
	const struct destination_goal *goal, struct receiver_share *share);
void destination_destroy(struct destination *d);

void destination_stop(struct destination *d);
void destination_reload(struct destination *d);
unsigned destination_connections(const struct destination *d);

/* For receiver_share.c. */
void destination_ask_for_step(struct destination *d);
void destination_retire_idle(struct destination *d);

/* Of receiver_share.c. */
void receiver_share_init(struct receiver_share *s, uint64_t now_ms);
uint32_t receiver_share_connections(const struct receiver_share *s);
/* @d waits for the end of a connection of another destination with its share: as the first one if it was woken and has
 * got nothing, else as the last. Idle connections of the others end. */
void receiver_share_wait(struct destination *d);
void receiver_share_wait_no_more(struct destination *d);
/* There is room for a connection: the first that waits has a step. */
void receiver_share_wake(struct receiver_share *s);
/* Another destination waits for room. */
bool receiver_share_is_wanted(const struct destination *d);

/* The pool of addresses that connections to receivers come from. */

/* The source of the @nth connection to a destination of @family, by weight and in turn. NULL: the pool has none of this
 * family, so the kernel chooses. */
const struct smtpproxy_source *sources_pick(const struct smtpproxy_outward *outward, sa_family_t family, uint32_t nth);

#endif
