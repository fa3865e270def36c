/* want.h: what a session wants of a destination: its extensions, or a connection in its turn. A part of its own,
 * because who waits knows nothing of connections, and who makes them nothing of sessions. A session embeds a want, and
 * a destination embeds its wants. */
#pragma once

#include "net/loop/worker.h"
#include "smtp/reply_write.h"
#include "smtpproxy/outward/greeting.h"
#include "smtpproxy/outward/turns.h"

struct onward;
struct want;

struct want_ops {
	/* The extensions of the destination are known: destination_offers(). */
	void (*on_offers)(struct want *w);
	/* It is the turn of this want. The caller leases @o at once. */
	void (*on_turn)(struct want *w, struct onward *o);
	/* It gets no connection, because of @why; want_said() has the receiver's words. */
	void (*on_failed)(struct want *w, enum smtp_own why);
};

enum want_state { WANT_NOTHING, WANT_OFFERS, WANT_TURN, WANT_PROMISED };

/* Embedded. Set @ops, @sender, @name and @weight before asking. */
struct want {
	struct turn turn;
	TAILQ_ENTRY(want) next; /* in the list that waits for extensions */
	const struct want_ops *ops;
	struct wants *wants; /* where it asked last; NULL: nowhere */
	struct onward *promised;
	struct client_address sender;
	const char *name; /* of its EHLO, terminated */
	uint64_t since_ms;
	uint32_t weight;
	uint8_t state; /* enum want_state */
	uint8_t roams; /* it has another receiver to go to, and does not wait for one that takes no connection */
};

/* The wants of one destination. The destination reads @turns and @offers, and writes @said. */
struct wants {
	struct turns turns;
	TAILQ_HEAD(, want) offers; /* that wait for extensions */
	struct worker *worker;
	struct turn_end *step;        /* has a turn when there is a new want */
	char said[GREETING_SAID_MAX]; /* by the receiver, when it refused the last connection; else "" */
};

/* @worker and @step live longer. */
void wants_init(struct wants *all, struct worker *worker, struct turn_end *step);

/* Each ends with one call of @w->ops, or by want_nothing(). That call never comes before this one returns. */
void want_offers(struct want *w, struct wants *all);
/* 0 or CSSL_E_NO_MEMORY. */
int want_turn(struct want *w, struct wants *all);
void want_nothing(struct want *w);

/* The words of the receiver that are the cause of @why, until a connection of its changes; "": there are none. */
const char *want_said(const struct want *w, enum smtp_own why);

/* For the destination. A want gets no connection, because of @why. */
void want_fail(struct want *w, enum smtp_own why);
/* No waiting session can be served. */
void wants_fail(struct wants *all, enum smtp_own why);
/* All that wait for extensions: they are known. */
void wants_tell_offers(struct wants *all);
/* Those that have another receiver to go to. */
void wants_send_elsewhere(struct wants *all);
/* The first one with that name, or NULL. */
struct want *wants_find_named(const struct wants *all, const char *name);
/* The name of the first one. There is one. */
struct smtp_span wants_first_name(const struct wants *all);
