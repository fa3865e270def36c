/* courier.c: from one receiver to the next, until the message is settled. */
#include "smtpproxy/delivery/courier.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/memory/container_of.h"
#include "net/report/error_text.h"
#include "net/report/log_pace.h"
#include "proto/error.h"
#include "smtpproxy/delivery/courier_dialogue.h"
#include "smtpproxy/delivery/courier_name.h"
#include "smtpproxy/delivery/courier_settle.h"
#include "smtpproxy/outward/outward.h"

/* The end */

static void leave_receiver(struct courier *c)
{
	if (c->state == COURIER_WAITS)
		want_nothing(&c->want);
	if (c->onward) {
		onward_abort(c->onward);
		destination_take_back(c->destination, c->onward);
	}
	c->onward = NULL;
}

static void courier_over(struct courier *c, enum courier_line line)
{
	way_forget(&c->way);
	if (c->destination)
		destination_leave(c->destination);
	LIST_REMOVE(c, next);
	c->parts->couriers->count--;
	c->errand->on_over(c, line);
	worker_at_turn_end(c->parts->worker, c->parts->couriers->at_end);
	queue_taken_free(&c->mail);
	fates_free(&c->fates);
	free(c);
}

/* The lease is over, and the receiver is between transactions. */
static void return_receiver(struct courier *c)
{
	struct onward *o = c->onward;

	c->onward = NULL;
	onward_release(o);
	destination_take_back(c->destination, o);
}

static void courier_finish(struct courier *c)
{
	return_receiver(c);
	courier_settle(c);
	courier_over(c, COURIER_LINE_NOW);
}

/* The receiver may have had enough of a connection for what others did on it. At last there is a new one. */
static bool waits_again(struct courier *c, unsigned messages)
{
	if (!c->errand->asks_again || !c->errand->asks_again(c, messages))
		return false;
	c->at = 0;
	c->state = COURIER_WAITS;
	smtp_reply_begin(&c->reader, c->buffer, sizeof c->buffer);
	return want_turn(&c->want, &c->destination->wants) == 0;
}

static void finish_with_reset(struct courier *c)
{
	const unsigned messages = c->onward ? c->onward->messages : 0;

	leave_receiver(c);
	if (waits_again(c, messages))
		return;
	courier_settle(c);
	courier_over(c, COURIER_LINE_NOW);
}

void courier_end(struct courier *c, enum courier_end how)
{
	leave_receiver(c);
	if (how == COURIER_PUT_BACK && c->errand->task == COURIER_DELIVERS)
		queue_put_back(c->parts->queue, c->mail.id, 0, QUEUE_CLEAR);
	courier_over(c, COURIER_LINE_NOW);
}

/* The receiver */

static void courier_do(struct courier *c, enum courier_outcome outcome)
{
	switch (outcome) {
	case COURIER_GOES_ON: break;
	case COURIER_IS_DONE: courier_finish(c); break;
	case COURIER_BREAKS_OFF: finish_with_reset(c); break;
	case COURIER_MAY_NOT: courier_end(c, COURIER_PUT_BACK); break;
	}
}

void courier_cut(struct courier *c)
{
	courier_dialogue_doubt(c, "the queue lease ended before the receiver had its end");
	finish_with_reset(c);
}

/* After a whole reply the courier may have ended. */
static void on_courier_reply(void *ctx, const char *data, size_t len)
{
	courier_do(ctx, courier_dialogue_hear(ctx, data, len));
}

static void on_courier_room(void *ctx)
{
	courier_do(ctx, courier_dialogue_on_room(ctx));
}

static void on_courier_lost(void *ctx, enum smtp_own why)
{
	struct courier *c = ctx;
	struct onward *o = c->onward;
	const unsigned messages = o->messages;

	c->onward = NULL;
	destination_note_lost(c->destination, o);
	courier_dialogue_doubt(c, smtp_own_reply(why)->text);
	if (waits_again(c, messages))
		return;
	courier_settle(c);
	courier_over(c, COURIER_LINE_NOW);
}

static const struct onward_user user = {
	.on_reply = on_courier_reply, .on_room = on_courier_room, .on_lost = on_courier_lost
};

/* The turn */

/* 0, or as queue_open(). It may be open already. */
static int open_mail(struct courier *c)
{
	int r = c->mail.memory ? 0 : queue_open(c->parts->queue, &c->mail);
	struct smtp_span note = { (const char *)c->mail.note.data, c->mail.note.len };

	r = r ? r : envelope_read(&c->envelope, (const char *)c->mail.envelope.data, c->mail.envelope.len);
	fates_free(&c->fates);
	r = r ? r : fates_begin(&c->fates, c->envelope.recipients, note);
	c->rest = c->envelope.rest;
	return r;
}

/* There is no memory for it, or it is held now. */
static void end_unopened(struct courier *c, int why)
{
	log_paced(LOG_ERROR, NULL, "a message cannot be delivered now", "message=%" PRIx64 " cause=%s", c->mail.id,
		why < 0 ? error_text(why) : "it is held");
	if (why != QUEUE_NONE && c->errand->task == COURIER_DELIVERS)
		queue_put_back(
			c->parts->queue, c->mail.id, queue_now_ms(c->parts->queue) + COURIER_LATER_MS, QUEUE_CLEAR);
	courier_over(c, COURIER_LINE_NOW);
}

static void try_next(struct courier *c);

static void on_courier_turn(struct want *w, struct onward *o)
{
	struct courier *c = container_of(w, struct courier, want);
	const int r = open_mail(c);

	c->onward = o;
	onward_lease(o, &user, c);
	if (r) {
		return_receiver(c);
		end_unopened(c, r);
		return;
	}
	if (envelope_is_secured(&c->envelope) && onward_is_too_clear(o)) {
		return_receiver(c);
		c->why = SMTP_OWN_BACKEND_NO_TLS;
		c->said[0] = '\0'; /* what the receiver said is about another connection */
		try_next(c);
		return;
	}
	c->parts->counters->sent_in_clear += envelope_is_secured(&c->envelope) && !o->tls;
	courier_dialogue_begin(c);
}

/* 0: it waits for its turn at the next receiver. 1: there is none. Negative: no room. */
static int go_to_next(struct courier *c)
{
	struct destination_goal goal;

	if (c->destination)
		destination_leave(c->destination);
	c->destination = NULL;
	if (!way_next(&c->way, &goal))
		return 1;
	courier_name_begin(c, &goal);
	c->destination = outward_find(c->parts->outward, &goal, &c->want.sender);
	if (!c->destination)
		return CSSL_E_FULL;
	destination_enter(c->destination);
	c->want.roams = (uint8_t)way_has_next(&c->way);
	c->state = COURIER_WAITS;
	return want_turn(&c->want, &c->destination->wants);
}

/* No receiver is left. Also one that refuses the connection for good says nothing about this message: its administrator
 * may have made a mistake. It is tried again until it expires. Only the DNS can say that there is no receiver. */
static void courier_give_up(struct courier *c)
{
	const enum smtp_own why = c->why ? c->why : c->way.why;
	enum fate fate = !c->why && smtp_own_reply(why)->code / 100 == 5 ? FATE_FAILED : FATE_OPEN;
	char line[SMTP_REPLY_LINE_MAX];
	const int r = open_mail(c);

	c->state = COURIER_MAIL; /* it waits no more */
	if (r) {
		end_unopened(c, r);
		return;
	}
	smtp_own_line(why, c->why ? c->said : "", line);
	fates_set_open(&c->fates, fate, smtp_span_of(line));
	courier_settle(c);
	courier_over(c, COURIER_LINE_NOW);
}

/* No receiver was tried, so this is no failure of the message. It waits for a place, or for memory. */
static void wait_for_place(struct courier *c)
{
	if (c->errand->task == COURIER_DELIVERS)
		queue_put_back(c->parts->queue, c->mail.id, 0, QUEUE_CLEAR);
	c->state = COURIER_WAITS;
	courier_over(c, COURIER_LINE_LATER);
}

static void try_next(struct courier *c)
{
	int r = go_to_next(c);

	if (r == CSSL_E_FULL && !c->why && !courier_has_expired(c)) {
		wait_for_place(c);
		return;
	}
	if (r < 0)
		c->why = SMTP_OWN_OVERLOADED;
	if (r)
		courier_give_up(c);
}

static void on_way_found(struct way *w)
{
	try_next(container_of(w, struct courier, way));
}

static void on_failed(struct want *w, enum smtp_own why)
{
	struct courier *c = container_of(w, struct courier, want);

	c->why = why;
	snprintf(c->said, sizeof c->said, "%s", want_said(w, why));
	try_next(c);
}

static const struct want_ops want_ops = { .on_turn = on_courier_turn, .on_failed = on_failed };

struct courier *courier_create(
	const struct delivery_parts *parts, const struct courier_errand *errand, void *sender, struct queue_taken *mail)
{
	struct courier *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->parts = parts;
	c->errand = errand;
	c->sender = sender;
	c->mail = *mail;
	c->want.ops = &want_ops;
	c->want.name = parts->conf->name;
	c->want.weight = 1; /* without a sender: at a receiver all couriers are one; sources took turns in their line */
	c->way.on_found = on_way_found;
	smtp_reply_begin(&c->reader, c->buffer, sizeof c->buffer);
	return c;
}

void courier_start(struct courier *c, const char *name)
{
	int r;

	LIST_INSERT_HEAD(&c->parts->couriers->all, c, next);
	c->parts->couriers->count++;
	r = way_begin(&c->way, c->parts, name);
	if (r == WAY_KNOWN)
		try_next(c);
	else if (r < 0)
		wait_for_place(c);
}
