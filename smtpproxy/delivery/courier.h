/* courier.h: one message on its way to one receiver, or the question whether a receiver takes mail for a recipient. A
 * part of its own, because the queue and the probes both send couriers, and neither knows the other.
 *
 *   RESOLVES --> WAITS --turn--> MAIL --> RCPT (each open recipient) --> DATA --> CONTENT --lease holds--> DOT
 *                  |              ^         '--none taken--> RESET
 *                  '--in doubt--> ASK
 *
 * It is settled by the replies to DOT and RESET, by a refusal of MAIL, and by the answer to ASK (courier_name.h).
 *
 * The members of a courier are read by the parts that do its work (courier_dialogue.h, courier_name.h,
 * courier_settle.h, notice.h), and by delivery.c and probe.c, which send it. */
#pragma once

#include "smtp/data.h"
#include "smtpproxy/delivery/delivery.h"
#include "smtpproxy/delivery/way.h"
#include "smtpproxy/envelope/envelope.h"
#include "smtpproxy/envelope/fates.h"
#include "smtpproxy/outward/destination.h"
#include "smtpproxy/queue/queue.h"

#define COURIER_LATER_MS 60000 /* when a message that could not be opened is tried again */
#define COURIER_LINE_MAX 1024u /* bytes of a reply's line; RFC 5321 4.5.3.1.5 allows 512 */

struct courier;

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

/* When the line of the queue that sent it is looked at again. LATER: it found no place, and the next one would not,
 * either. */
enum courier_line { COURIER_LINE_NOW, COURIER_LINE_LATER };

/* PROBES: it has no message. It asks by MAIL and RCPT, and the queue knows nothing of it. */
enum courier_task { COURIER_DELIVERS, COURIER_PROBES };

/* Who sent it, and what for. */
struct courier_errand {
	enum courier_task task;
	/* Its connection, which was leased @messages times, is gone. True: it waits for another one of the same
	 * receiver, if there is memory for that. NULL: never. */
	bool (*asks_again)(const struct courier *c, unsigned messages);
	/* It is over, and settled if it has a message. The courier frees itself when this returns. */
	void (*on_over)(struct courier *c, enum courier_line line);
};

/* All couriers on their way. @at_end has a turn when one of them is over. */
struct couriers {
	LIST_HEAD(, courier) all;
	unsigned count;
	struct turn_end *at_end;
};

struct courier {
	struct want want;
	const struct delivery_parts *parts;
	const struct courier_errand *errand;
	void *sender; /* for the functions of @errand */
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

/* A courier for @mail, which was taken from the queue and not opened, or made by a probe. NULL: out of memory; then
 * @mail is still the caller's. */
struct courier *courier_create(const struct delivery_parts *parts, const struct courier_errand *errand, void *sender,
	struct queue_taken *mail);
/* It is among @parts->couriers now, and goes to the receiver of the queue's line @name, which lives as long. When it
 * ends, on_over comes, maybe before this returns. */
void courier_start(struct courier *c, const char *name);

/* The place of the message when its delivery is ended from outside. */
enum courier_end {
	COURIER_PUT_BACK, /* it goes back to its line in the queue */
	COURIER_LET_GO,   /* the queue belongs to another gateway now */
};
void courier_end(struct courier *c, enum courier_end how);

/* DOT: it lets go of a receiver that may not have got the final dot, and the message is in doubt. */
void courier_cut(struct courier *c);
