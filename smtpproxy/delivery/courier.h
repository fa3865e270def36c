/* courier.h: one message on its way to one receiver.
 *
 *   ASKS --> WAITS --turn--> MAIL --> RCPT (each open recipient) --> DATA --> CONTENT --lease holds--> DOT --> settled
 *                    |         '--none taken--> RESET --> settled
 *                    '--refused--> settled
 */
#ifndef CSSL_SMTPPROXY_COURIER_H
#define CSSL_SMTPPROXY_COURIER_H

#include "smtp/dots.h"
#include "smtpproxy/delivery/delivery.h"
#include "smtpproxy/delivery/way.h"
#include "smtpproxy/envelope/envelope.h"
#include "smtpproxy/envelope/fates.h"

#define COURIER_LINE_MAX 1024u /* bytes of a reply's line; RFC 5321 4.5.3.1.5 allows 512 */

enum courier_state {
	COURIER_ASKS,
	COURIER_WAITS,
	COURIER_MAIL,
	COURIER_RCPT,
	COURIER_DATA,
	COURIER_CONTENT,
	COURIER_DOT,
	COURIER_RESET,
};

/* The deliveries to one destination of the queue. */
struct delivery_line {
	LIST_ENTRY(delivery_line) next;
	unsigned under_way;
	char name[];
};

struct courier {
	struct want want;
	const struct delivery_parts *parts;
	struct delivery *delivery;
	struct delivery_line *line;
	LIST_ENTRY(courier) next;
	struct way way;
	enum smtp_own why; /* the last receiver that was tried gave no connection, because of this; or NONE */
	struct destination *destination; /* NULL: none is tried */
	struct onward *onward;           /* leased, or NULL */
	struct queue_taken mail;
	struct envelope envelope;
	struct fates fates;
	struct smtp_span rest; /* of the recipients, behind @at */
	unsigned at;           /* RCPT: the recipient whose reply is due */
	size_t sent;           /* CONTENT: bytes of the body */
	struct smtp_dots dots;
	enum courier_state state;
	struct smtp_reply reply;
	struct smtp_line_reader reader;
	char buffer[COURIER_LINE_MAX];
};

/* Start a courier for @mail, which was taken from the queue. The courier owns @mail. When it ends, it calls
 * courier_over(). NULL: out of memory, and @mail is still the caller's. */
struct courier *courier_start(
	struct delivery *d, const struct delivery_parts *parts, struct delivery_line *line, struct queue_taken *mail);

/* What happens to the message when its delivery is ended from outside. */
enum courier_end {
	COURIER_PUT_BACK, /* it goes back to its line in the queue */
	COURIER_LET_GO,   /* the queue belongs to another gateway now */
};
void courier_end(struct courier *c, enum courier_end how);

/* In delivery.c: the message of this courier is settled. The courier frees itself after this call. */
void courier_over(struct courier *c);

/* In notice.c: tell the sender of the message which recipients have failed (RFC 3464). 0: the message is settled, or
 * will be when the notice is stored. Other results are those of queue_bounce(). */
int notice_send(struct courier *c);

#endif
