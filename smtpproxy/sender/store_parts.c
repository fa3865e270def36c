/* store_parts.c: gives the parts behind the first one to the queue, and the first one when they are stored. */
#include "smtpproxy/sender/store_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

void store_parts_begin(struct store_parts *p, struct queue *q, const struct store_parts_ops *ops)
{
	*p = (struct store_parts){ .queue = q, .ops = ops };
	STAILQ_INIT(&p->list);
}

static struct store_part *parts_find(const struct store_parts *p, const char *destination)
{
	struct store_part *part;
	STAILQ_FOREACH(part, &p->list, next)
	{
		if (strcmp(part->destination, destination) == 0)
			break;
	}
	return part;
}

static struct store_part *part_make(struct store_parts *p, const char *destination, const struct envelope_text *head)
{
	struct store_part *part = calloc(1, sizeof *part);
	if (!part)
		return NULL;
	if (envelope_copy(&part->envelope, head) != 0) {
		free(part);
		return NULL;
	}
	part->parts = p;
	snprintf(part->destination, sizeof part->destination, "%s", destination);
	STAILQ_INSERT_TAIL(&p->list, part, next);
	p->count++;
	return part;
}

size_t store_parts_cost(const struct store_parts *p, const char *destination, const struct envelope_text *head)
{
	return parts_find(p, destination) ? 0 : sizeof(struct store_part) + head->cap;
}

int store_parts_add(struct store_parts *p, const char *destination, const struct envelope_text *head,
	struct smtp_span mailbox, struct smtp_span params)
{
	struct store_part *part = parts_find(p, destination);
	if (!part)
		part = part_make(p, destination, head);
	return part ? envelope_add(&part->envelope, mailbox, params) : CSSL_E_NO_MEMORY;
}

/* Storing */

static void on_stored(struct queue_receipt *receipt, enum queue_outcome outcome);

/* The first part is the last one: when it is stored, the message is decided. The others go without the name of the
 * transaction. */
static int parts_give(struct store_parts *p, struct store_part *part, enum queue_turn turn)
{
	const bool is_first = part == STAILQ_FIRST(&p->list);
	struct queue_mail mail = { .body = p->mail.body, .start = QUEUE_PARKED };
	int r;
	if (is_first)
		mail = p->mail;
	mail.turn = turn;
	mail.destination = (struct content_bytes){ (const uint8_t *)part->destination, strlen(part->destination) };
	mail.envelope = (struct content_bytes){ (const uint8_t *)part->envelope.at, part->envelope.len };
	part->receipt.on_stored = on_stored;
	r = queue_add(p->queue, &mail, &part->receipt);
	if (r != 0)
		return r;
	p->given++;
	p->waiting++;
	if (!is_first)
		p->next = STAILQ_NEXT(part, next);
	return 0;
}

static void parts_decide(struct store_parts *p, enum queue_outcome outcome)
{
	if (outcome == QUEUE_STORED) {
		struct store_part *part;
		p->state = STORE_PARTS_STORED;
		STAILQ_FOREACH(part, &p->list, next)
		queue_unpark(p->queue, &part->receipt);
	} else {
		store_parts_withdraw(p);
	}
	p->ops->on_decided(p, outcome);
}

static void on_stored(struct queue_receipt *receipt, enum queue_outcome outcome)
{
	struct store_parts *p = ((struct store_part *)receipt)->parts;
	int r = 0;
	p->waiting--;
	if (outcome != QUEUE_STORED) {
		parts_decide(p, outcome);
		return;
	}
	if (p->next)
		r = parts_give(p, p->next, QUEUE_TURN_NEXT);
	else if (p->waiting == 0 && p->given < p->count)
		r = parts_give(p, STAILQ_FIRST(&p->list), QUEUE_TURN_NEXT);
	if (r != 0)
		parts_decide(p, QUEUE_REFUSED);
	else if (p->waiting == 0)
		parts_decide(p, QUEUE_STORED);
	else
		p->ops->on_progress(p);
}

int store_parts_submit(struct store_parts *p, const struct queue_mail *mail)
{
	struct store_part *first = STAILQ_FIRST(&p->list);
	int r = 0;
	p->mail = *mail;
	p->state = STORE_PARTS_STORING;
	p->next = STAILQ_NEXT(first, next);
	if (!p->next)
		r = parts_give(p, first, QUEUE_TURN_NEW);
	while (r == 0 && p->next) /* at least one of the others, and more while there is room */
		r = parts_give(p, p->next, p->given ? QUEUE_TURN_MORE : QUEUE_TURN_NEW);
	if (r == QUEUE_BUSY && p->given > 0)
		return 0;
	if (r != 0)
		store_parts_withdraw(p);
	return r;
}

void store_parts_withdraw(struct store_parts *p)
{
	struct store_part *part;
	if (p->state != STORE_PARTS_STORING)
		return;
	p->state = STORE_PARTS_OPEN;
	STAILQ_FOREACH(part, &p->list, next)
	queue_forget(p->queue, &part->receipt);
}

void store_parts_free(struct store_parts *p)
{
	struct store_part *part;
	store_parts_withdraw(p);
	while ((part = STAILQ_FIRST(&p->list))) {
		STAILQ_REMOVE_HEAD(&p->list, next);
		envelope_free(&part->envelope);
		free(part);
	}
}
