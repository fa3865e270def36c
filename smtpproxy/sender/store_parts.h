/* store_parts.h: a message that is given to the queue, as one part for each destination of the queue: the body is the
 * same, each part has the recipients of its domain. The message is stored when all parts are.
 *
 *   OPEN --store_parts_submit()--> STORING --all are stored--> STORED
 *     ^                               '--one is refused, or store_parts_withdraw()--.
 *     '-----------------------------------------------------------------------------'
 *
 * Parts are given to the queue until it has no more room for now. From then on each part that is stored makes room for
 * the next one. So a message for many domains may be larger in sum than queue.memory.
 *
 * Parts that are stored are PARKED in the queue until the message is decided. So a message that is refused in the end
 * is delivered to nobody, and its sender may send it again.
 *
 * The transaction's name and reply go with the last part that is stored. So nobody who asks about the transaction
 * (doc/xcssltx.md) is told of a 250 while a part may still be lost. If the gateway dies before, parts that were stored
 * are delivered although their sender got no 250, and it sends the message again: copies, and nothing lost.
 */
#pragma once

#include <sys/queue.h>

#include "smtpproxy/envelope/envelope.h"
#include "smtpproxy/queue/queue.h"

struct store_part {
	struct queue_receipt receipt; /* first: on_stored gets the part back from it */
	struct store_parts *parts;
	STAILQ_ENTRY(store_part) next;
	struct envelope_text envelope;
	char destination[LINE_NAME_MAX + 1];
};

struct store_parts_ops {
	/* A part was stored, and others are to be stored still. */
	void (*on_progress)(struct store_parts *p);
	void (*on_decided)(struct store_parts *p, enum queue_outcome outcome);
};

enum store_parts_state { STORE_PARTS_OPEN, STORE_PARTS_STORING, STORE_PARTS_STORED };

/* Embedded. Call store_parts_begin() first. */
struct store_parts {
	STAILQ_HEAD(, store_part) list;
	struct queue *queue;
	const struct store_parts_ops *ops;
	struct queue_mail mail;  /* what all parts have */
	struct store_part *next; /* to be given; NULL: all but the first are given */
	unsigned count, given, waiting;
	enum store_parts_state state;
};

void store_parts_begin(struct store_parts *p, struct queue *q, const struct store_parts_ops *ops);

/* Bytes of memory that the part for that destination begins with; 0: there is one already. */
size_t store_parts_cost(const struct store_parts *p, const char *destination, const struct envelope_text *head);

/* A recipient for that destination. @head: an envelope without recipients, with which each part begins. 0 or
 * CSSL_E_NO_MEMORY. */
int store_parts_add(struct store_parts *p, const char *destination, const struct envelope_text *head,
	struct smtp_span mailbox, struct smtp_span params);

/* @mail without destination and envelope. If there is more than one part, its bytes live until on_decided or
 * store_parts_withdraw(). Returns as queue_add(); unless it is 0, nothing is stored. BUSY: there is no room for any
 * part. */
int store_parts_submit(struct store_parts *p, const struct queue_mail *mail);

/* STORING: neither callback comes any more, and parts that are stored are deleted. */
void store_parts_withdraw(struct store_parts *p);

/* Withdraws, and frees. */
void store_parts_free(struct store_parts *p);
