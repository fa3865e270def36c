/* courier.h: one message on its way to one receiver.
 *
 *   RESOLVES --> WAITS --turn--> MAIL --> RCPT (each open recipient) --> DATA --> CONTENT --lease holds--> DOT -->
 * settled WAITS --turn, in doubt--> ASK --never--> MAIL; ASK --decided--> settled            (courier_name.c) | '--none
 * taken--> RESET --> settled
 *                    '--refused--> settled
 */
#ifndef CSSL_SMTPPROXY_COURIER_H
#define CSSL_SMTPPROXY_COURIER_H

#include "net/table.h"
#include "smtp/data.h"
#include "smtpproxy/delivery/delivery.h"
#include "smtpproxy/delivery/way.h"
#include "smtpproxy/envelope/envelope.h"
#include "smtpproxy/envelope/fates.h"

#define COURIER_LATER_MS 60000 /* when a message that could not be opened is tried again */
#define COURIER_LINE_MAX 1024u /* bytes of a reply's line; RFC 5321 4.5.3.1.5 allows 512 */

enum courier_state {
	COURIER_RESOLVES,
	COURIER_WAITS,
	COURIER_MAIL,
	COURIER_RCPT,
	COURIER_DATA,
	COURIER_CONTENT,
	COURIER_DOT,
	COURIER_RESET,
	COURIER_ASK,
	COURIER_REPEAT, /* RSET; then it begins again, without a name */
};

/* Does the receiver learn a name of the transaction (XCSSLTX)? */
enum courier_naming {
	COURIER_UNNAMED,
	COURIER_NAMED,
	COURIER_ASKS_FIRST, /* how the transaction of this name ended */
};

/* The recipients that this transaction has too many of (RFC 5321 4.5.3.1.10). NEXT: the others got the message. */
enum courier_rest { COURIER_REST_NONE, COURIER_REST_LEFT, COURIER_REST_NEXT };

/* Does a line of the reply to MAIL say that the mail has to come with TLS (fallback_is_refused())? */
enum courier_demand { COURIER_DEMANDS_NOTHING, COURIER_DEMANDS_TLS };

enum courier_next { COURIER_NEXT_MAIL, COURIER_NEXT_ASK, COURIER_NEXT_SETTLE };

/* RESTS: nothing is to do until a message comes or a courier ends. */
enum delivery_look { DELIVERY_RESTS, DELIVERY_LOOKS };

/* MISSED: limits.destinations were in use when its last courier looked for a place of its receiver. */
enum delivery_place { DELIVERY_PLACE_HOPED, DELIVERY_PLACE_MISSED };

/* The deliveries to one destination of the queue. */
struct delivery_line {
	struct table_link link;
	TAILQ_ENTRY(delivery_line) look_next;
	enum delivery_look look;
	enum delivery_place place;
	uint64_t try_ms; /* MISSED: until then it waits for a place that is free */
	unsigned under_way;
	char name[];
};

struct courier {
	struct want want;
	const struct delivery_parts *parts;
	struct delivery *delivery;
	struct delivery_line *line; /* NULL: of a probe */
	struct probe *probe;        /* NULL: it has a message of the queue */
	LIST_ENTRY(courier) next;
	struct way way;
	enum smtp_own why; /* the last receiver that was tried gave no connection, because of this; or NONE */
	char said[GREETING_SAID_MAX];    /* its words then, or "" */
	struct destination *destination; /* NULL: none is tried */
	struct onward *onward;           /* leased, or NULL */
	struct queue_taken mail;         /* opened with its turn: until then it waits sealed */
	struct envelope envelope;
	struct fates fates;
	struct smtp_span rest; /* of the recipients, behind @at */
	unsigned at;           /* RCPT: the recipient whose reply is due */
	size_t sent;           /* CONTENT: bytes of the body */
	struct smtp_dots dots;
	enum courier_state state;
	enum courier_naming naming;
	enum courier_rest left;
	uint8_t unique_id[ONWARD_ID_LEN];
	unsigned asked, refused;    /* questions so far; recipients that were refused or put off in this transaction */
	enum courier_demand demand; /* of a line of the reply since the last command */
	struct smtp_reply_line decided; /* ASK */
	struct smtp_reply_reader reader;
	char buffer[COURIER_LINE_MAX];
};

/* A courier for @mail, which was taken from the queue and not opened. NULL: out of memory; then @mail is still the
 * caller's. */
struct courier *courier_create(
	struct delivery *d, const struct delivery_parts *parts, struct delivery_line *line, struct queue_taken *mail);
/* It goes to the receiver of the queue's line @name, which lives as long. When it ends, it calls courier_over(), which
 * may come before this returns. */
void courier_start(struct courier *c, const char *name);

/* The place of the message when its delivery is ended from outside. */
enum courier_end {
	COURIER_PUT_BACK, /* it goes back to its line in the queue */
	COURIER_LET_GO,   /* the queue belongs to another gateway now */
};
void courier_end(struct courier *c, enum courier_end how);

/* DOT: it lets go of a receiver that may not have got the final dot, and the message is in doubt. */
void courier_cut(struct courier *c);

/* When its line is looked at again. LATER: it found no place, and the next one would not, either. */
enum courier_line { COURIER_LINE_NOW, COURIER_LINE_LATER };

/* In delivery.c: it counts from now on. */
void delivery_add(struct delivery *d, struct courier *c);
/* In delivery.c: the message of this courier is settled. The courier frees itself after this call. */
void courier_over(struct courier *c, enum courier_line line);

/* notice.c: the sender is to be told of a recipient: one has failed, or was passed on to a server that sends no reports
 * although the sender wants one (RFC 3461 5.2.2). */
bool notice_is_due(const struct courier *c);
/* Tell it (RFC 3464). 0: the message is settled, or will be when the notice is stored. Other results are those of
 * queue_bounce(). */
int notice_send(struct courier *c);

/* courier_settle.c */

/* RCPT: the reply decides the fate of that recipient; other states: of all that it concerns. */
void courier_note_reply(struct courier *c, const struct smtp_reply_line *line);
/* Decides by the fates of the recipients what the queue does with the message. */
void courier_settle(struct courier *c);
/* The message is older than queue.expire. */
bool courier_has_expired(const struct courier *c);

/* courier_name.c */

/* Before a receiver is tried: decides whether the message has a name there, and sets goal->unique_id then. Only the
 * configured next hop learns names. */
void courier_name_begin(struct courier *c, struct destination_goal *goal);
/* Its turn has come: MAIL or ASK. */
enum courier_next courier_name_begins(struct courier *c);
/* The parameter of MAIL, with a blank in front. Returns its length; 0: it has no name. */
int courier_name_write(const struct courier *c, char *out, size_t cap);
void courier_name_ask(struct courier *c);
/* MAIL got 503: another process used the number. MAIL or ASK. */
enum courier_next courier_name_refused(struct courier *c);
/* The question was answered. SETTLE: @decided is the reply to the end. MAIL: it has the next number. */
enum courier_next courier_name_answered(
	struct courier *c, const struct smtp_reply_line *line, struct smtp_reply_line *decided);

/* courier.c: send a line and wait for its reply. */
void courier_say(struct courier *c, enum courier_state state, const char *line, int len);

#endif
