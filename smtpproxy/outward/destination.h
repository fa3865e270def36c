/* destination.h: one receiver: its connections, its extensions, how many connections it takes, and the sessions that
 * wait for one. A part of its own, because here alone it is decided who gets which connection, and when there is a new
 * one. A session embeds a want (want.h): by it the session asks, and gets the answer. A destination of the queue is
 * another thing (smtpproxy/queue/items/destination.h): its couriers ask here, too, as the sessions do. */
#pragma once

#include "smtpproxy/outward/dane.h"
#include "smtpproxy/outward/receiver_share.h"
#include "smtpproxy/outward/route.h"
#include "smtpproxy/outward/want.h"

struct destination;
struct outward;

enum destination_state { DESTINATION_NEW, DESTINATION_KNOWN };

/* UNUSED: no session and no connection, so another destination may take its place. */
enum receiver_use { RECEIVER_USED, RECEIVER_UNUSED };

/* The owner of all destinations: what happened. */
struct destination_ops {
	/* No session and no connection is left. */
	void (*on_unused)(struct destination *d);
	/* It has had a step. */
	void (*on_step)(struct destination *d);
	/* It was unused for long, and is to be destroyed. The last call. */
	void (*on_expired)(struct destination *d);
};

/* Read by the control API. */
struct destination {
	struct table_link link;
	TAILQ_ENTRY(destination) unused_next;
	const struct outward_home *home;
	const struct destination_ops *ops;
	struct outward *outward;
	enum receiver_use use;
	struct onward_route route;
	char host[DNS_NAME_TEXT]; /* of its goal; empty: not known */
	enum dns_trust host_trust;
	enum smtpproxy_tls goal_tls;
	struct dane dane;
	struct smtp_ehlo offers;      /* KNOWN */
	struct receiver_share *share; /* @own, or that of all senders or all named messages to it */
	struct receiver_share own;
	LIST_ENTRY(destination) member_next;
	TAILQ_ENTRY(destination) share_next;
	enum destination_wait wait; /* in the list of @share */
	struct wants wants;
	struct onwards onwards;
	struct turn_end step;
	struct deadline deadline;
	uint32_t sessions;                        /* that have entered it */
	uint32_t opened;                          /* all so far */
	uint64_t transactions, accepted, turn_ms; /* that ended; and how long they waited, together */
	enum destination_state state;
};

/* For outward.c. @home lives longer. @share: NULL: its own one. NULL: out of memory. */
struct destination *destination_create(const struct outward_home *home, const struct destination_ops *ops,
	struct outward *outward, const struct onward_route *route, const struct destination_goal *goal,
	struct receiver_share *share);
/* Without sessions and connections. on_expired does not come. */
void destination_destroy(struct destination *d);
/* Close all connections. No session is there. */
void destination_stop(struct destination *d);
/* The file of @home has changed. */
void destination_reload(struct destination *d);

/* Call these when a session of this destination begins and ends. */
void destination_enter(struct destination *d);
void destination_leave(struct destination *d);

/* While the receiver has more sessions than @free_places are left for all, it gets no further one: so the senders of
 * one receiver cannot have all places, nor those of several. Call it behind destination_enter(). */
bool destination_has_its_part(const struct destination *d, uint32_t free_places);

/* True when senders wait for a connection, and the receiver takes no more of them. */
bool destination_is_short(const struct destination *d);

/* The sender that has leased @o has more than its share of the connections, and one that has less waits. */
bool destination_gives_too_much(const struct destination *d, const struct onward *o);

/* NULL: not known yet. */
const struct smtp_ehlo *destination_offers(const struct destination *d);

/* The receiver demands TLS of @o, which was in clear because TLS had failed: fallback_is_refused(). New connections try
 * TLS again, and those of now without TLS are used for no other transaction. */
void destination_give_up_clear(struct destination *d, const struct onward *o);

/* The lease is over. The caller has called onward_release() or onward_abort(). */
void destination_take_back(struct destination *d, struct onward *o);
/* The lease is over, by on_lost. */
void destination_note_lost(struct destination *d, struct onward *o);
