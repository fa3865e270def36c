/* destination.h: one receiver: its connections, its extensions, how many connections it takes, and the sessions that
 * wait for one. A session embeds a want: by it the session asks, and gets the answer.
 */
#ifndef CSSL_SMTPPROXY_DESTINATION_H
#define CSSL_SMTPPROXY_DESTINATION_H

#include "net/table.h"
#include "smtpproxy/outward/dane.h"
#include "smtpproxy/outward/fallback.h"
#include "smtpproxy/outward/receiver_limit.h"
#include "smtpproxy/outward/turns.h"

struct want;
struct outward;

struct want_ops {
	/* The extensions of the destination are known: destination_offers(). */
	void (*on_offers)(struct want *w);
	/* It is the turn of this want. The caller leases @o at once. */
	void (*on_turn)(struct want *w, struct onward *o);
	/* It gets no connection, because of @why; want_said() has the receiver's words. */
	void (*on_failed)(struct want *w, enum smtp_own why);
};

enum want_state { WANT_NOTHING, WANT_OFFERS, WANT_TURN, WANT_PROMISED };

/* Embedded. Set @sender and @name before asking. */
struct want {
	struct turn turn;
	TAILQ_ENTRY(want) next; /* in the list that waits for extensions */
	const struct want_ops *ops;
	struct destination *destination;
	struct onward *promised;
	struct client_address sender;
	const char *name; /* of its EHLO, terminated */
	uint64_t since_ms;
	uint32_t weight;
	uint8_t state; /* enum want_state */
	uint8_t roams; /* it has another receiver to go to, and does not wait for one that takes no connection */
};

/* The lists of connections. */
enum destination_place {
	DESTINATION_OPENING,
	DESTINATION_IDLE,
	DESTINATION_LEASED,
	DESTINATION_LEAVING,
	DESTINATION_PLACES
};

enum destination_state { DESTINATION_NEW, DESTINATION_KNOWN };

LIST_HEAD(destination_list, destination);

/* Common to all destinations of one receiver: how many connections it takes, those that exist, and whether its TLS
 * works. A destination has its own, except when each is for one message with a name (destination_goal.unique_id),
 * or for one sender (`as_sender`). */
struct receiver_share {
	struct table_link link;
	struct sockaddr_storage to;
	enum onward_head head; /* of its destinations */
	struct receiver_limit limit;
	struct fallback fallback;
	struct destination_list members; /* not of a destination's own one */
	uint32_t in[DESTINATION_PLACES];
	uint32_t sessions;                 /* that have entered its destinations */
	TAILQ_HEAD(, destination) waiting; /* for the end of a connection of another destination */
};

/* UNUSED: no session and no connection, so another destination may take its place. */
enum receiver_use { RECEIVER_USED, RECEIVER_UNUSED };

/* WOKEN: it was the first that waited, and has its step next. */
enum destination_wait { DESTINATION_WAITS_NOT, DESTINATION_WAITS, DESTINATION_WOKEN };

/* The facts by which a destination is asked for. Two destinations are the same only if all these facts are. */
struct destination_goal {
	const struct sockaddr *to;
	const char *host;       /* its name; NULL: not known */
	enum dns_trust trust;   /* of @host */
	enum smtpproxy_tls tls; /* BY_ADDRESS: as the file says for the address */
	/* ONWARD_ID_LEN bytes: connections to it begin with a PROXY header that has this id, and each carries one
	 * transaction; NULL: no header */
	const uint8_t *unique_id;
};

/* Read by the control API. */
struct destination {
	struct table_link link;
	TAILQ_ENTRY(destination) unused_next;
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
	struct turns turns;
	TAILQ_HEAD(, want) offers_wanted;
	TAILQ_HEAD(, onward) onwards;
	struct turn_end step;
	struct deadline deadline;
	uint32_t sessions;               /* that have entered it */
	uint32_t in[DESTINATION_PLACES]; /* connections, by enum destination_place */
	uint32_t opened;                 /* all so far */
	uint32_t age; /* a new file, or a demand for TLS, adds one: connections of an earlier age end */
	uint64_t transactions, accepted, turn_ms; /* that ended; and how long they waited, together */
	enum destination_state state;
	char said[GREETING_SAID_MAX]; /* by the receiver, when it refused the last connection; else "" */
};

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

/* Each ends with one call of @w->ops, or by want_nothing(). That call never comes before this one returns. */
void want_offers(struct want *w, struct destination *d);
/* 0 or CSSL_E_NO_MEMORY. */
int want_turn(struct want *w, struct destination *d);
void want_nothing(struct want *w);

/* want.c, for destination.c. A want gets no connection, because of @why. */
void want_fail(struct want *w, enum smtp_own why);
/* No waiting session can be served. */
void wants_fail(struct destination *d, enum smtp_own why);
/* Those that have another receiver to go to. */
void wants_send_elsewhere(struct destination *d);
/* The words of the receiver that are the cause of @why, until a connection of its changes; "": there are none. */
const char *want_said(const struct want *w, enum smtp_own why);
/* The first one with that name, or NULL. */
struct want *wants_find_named(const struct destination *d, const char *name);
/* The name of the first one. */
struct smtp_span wants_first_name(const struct destination *d);

/* The receiver demands TLS of @o, which was in clear because TLS had failed: fallback_is_refused(). New connections try
 * TLS again, and those of now without TLS are used for no other transaction. */
void destination_give_up_clear(struct destination *d, const struct onward *o);

/* The lease is over. The caller has called onward_release() or onward_abort(). */
void destination_take_back(struct destination *d, struct onward *o);
/* The lease is over, by on_lost. */
void destination_note_lost(struct destination *d, struct onward *o);

#endif
