/* courier.h: one message on its way to one receiver.
 *
 *   WAITS --turn--> MAIL --> RCPT (each open recipient) --> DATA --> CONTENT --lease holds--> DOT --> settled
 *                    |         '--none taken--> RESET --> settled
 *                    '--refused--> settled
 */
#ifndef CSSL_SMTPPROXY_COURIER_H
#define CSSL_SMTPPROXY_COURIER_H

#include "smtp/dots.h"
#include "smtpproxy/delivery/delivery.h"
#include "smtpproxy/envelope/envelope.h"
#include "smtpproxy/envelope/fates.h"

#define COURIER_LINE_MAX 1024u /* of a reply; RFC 5321 4.5.3.1.5 has 512 */

enum courier_state {
	COURIER_WAITS,
	COURIER_MAIL,
	COURIER_RCPT,
	COURIER_DATA,
	COURIER_CONTENT,
	COURIER_DOT,
	COURIER_RESET,
};

/* Of one destination of the queue. */
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
	struct destination *destination;
	struct onward *onward; /* leased, or NULL */
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

/* Takes over @mail, which was taken from the queue. It ends by itself, by courier_over() of its delivery. NULL: out of
 * memory, @mail is the caller's. */
struct courier *courier_start(
	struct delivery *d, const struct delivery_parts *parts, struct delivery_line *line, struct queue_taken *mail);

/* What is done with a message whose delivery is ended from outside. */
enum courier_end {
	COURIER_PUT_BACK, /* it is in the queue still */
	COURIER_LET_GO,   /* the queue belongs to another */
};
void courier_end(struct courier *c, enum courier_end how);

/* delivery.c: its message is settled; the courier is freed behind the call. */
void courier_over(struct courier *c);

/* notice.c: who sent the message learns that recipients have failed (RFC 3464). 0: the message is settled, or will be
 * when the notice is stored; else as queue_bounce(). */
int notice_send(struct courier *c);

#endif
