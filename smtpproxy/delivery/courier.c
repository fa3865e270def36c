/* courier.c: the dialogue with the receiver, one command at a time. */
#include "smtpproxy/delivery/courier.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/container_of.h"
#include "net/error_text.h"
#include "net/log.h"
#include "net/log_pace.h"
#include "proto/error.h"
#include "smtp/params.h"
#include "smtpproxy/delivery/probe.h"

#define PENDING_MAX  65536u
#define PIECE        16384u
#define LINE_MAX_OUT 2048u

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

static void courier_leave_line(struct courier *c, enum courier_line line)
{
	way_forget(&c->way);
	if (c->destination)
		destination_leave(c->destination);
	courier_over(c, line);
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
	courier_leave_line(c, COURIER_LINE_NOW);
}

static void finish_with_reset(struct courier *c)
{
	const unsigned messages = c->onward ? c->onward->messages : 0;

	leave_receiver(c);
	if (probe_asks_again(c, messages))
		return;
	courier_settle(c);
	courier_leave_line(c, COURIER_LINE_NOW);
}

void courier_end(struct courier *c, enum courier_end how)
{
	leave_receiver(c);
	if (how == COURIER_PUT_BACK && !c->probe)
		queue_put_back(c->parts->queue, c->mail.id, 0, QUEUE_CLEAR);
	courier_leave_line(c, COURIER_LINE_NOW);
}

/* Toward the receiver */

void courier_say(struct courier *c, enum courier_state state, const char *line, int len)
{
	c->state = state;
	c->demand = COURIER_DEMANDS_NOTHING;
	onward_write(c->onward, line, (size_t)len); /* if it fails, on_lost tells */
	onward_expect(c->onward,
		state == COURIER_DATA ? c->parts->conf->outward.data_ms : c->parts->conf->outward.command_ms);
}

/* A parameter goes on unchanged if the receiver knows it. */
static const struct {
	enum smtp_verb verb;
	enum smtp_param_kind param;
	enum smtp_cap cap;
	const char *keyword;
} passed[] = {
	{ SMTP_VERB_MAIL, SMTP_PARAM_BODY, SMTP_CAP_8BITMIME, "BODY" },
	{ SMTP_VERB_MAIL, SMTP_PARAM_RET, SMTP_CAP_DSN, "RET" },
	{ SMTP_VERB_MAIL, SMTP_PARAM_ENVID, SMTP_CAP_DSN, "ENVID" },
	{ SMTP_VERB_RCPT, SMTP_PARAM_NOTIFY, SMTP_CAP_DSN, "NOTIFY" },
	{ SMTP_VERB_RCPT, SMTP_PARAM_ORCPT, SMTP_CAP_DSN, "ORCPT" },
};

static int write_params(const struct courier *c, enum smtp_verb verb, struct smtp_span text, char *out, int len)
{
	struct smtp_params p = { 0 };

	if (smtp_params_read(verb, text, &p))
		return len;
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		if (passed[i].verb == verb && smtp_params_has(&p, passed[i].param) &&
			c->onward->greeting.has & SMTP_CAP_BIT(passed[i].cap))
			len += snprintf(out + len, LINE_MAX_OUT - (size_t)len, " %s=%.*s", passed[i].keyword,
				(int)p.value[passed[i].param].len, p.value[passed[i].param].at);
	return len;
}

static void say_mail(struct courier *c)
{
	char line[LINE_MAX_OUT];
	int len = snprintf(line, sizeof line, "MAIL FROM:<%.*s>", (int)c->envelope.sender.len, c->envelope.sender.at);

	if (c->onward->greeting.has & SMTP_CAP_BIT(SMTP_CAP_SIZE))
		len += snprintf(line + len, sizeof line - (size_t)len, " SIZE=%zu", c->mail.body.len);
	len = write_params(c, SMTP_VERB_MAIL, c->envelope.params, line, len);
	len += courier_name_write(c, line + len, sizeof line - (size_t)len);
	len += snprintf(line + len, sizeof line - (size_t)len, "\r\n");
	courier_say(c, COURIER_MAIL, line, len);
}

/* Name the next open recipient. After the last one, send DATA, or RSET if the receiver took none of them. */
static void say_next(struct courier *c)
{
	struct envelope_recipient one;
	char line[LINE_MAX_OUT];

	while (envelope_next(&c->rest, &one)) {
		int len;

		if (c->fates.at[++c->at - 1].fate != FATE_OPEN)
			continue;
		len = snprintf(line, sizeof line, "RCPT TO:<%.*s>", (int)one.mailbox.len, one.mailbox.at);
		len = write_params(c, SMTP_VERB_RCPT, one.params, line, len);
		len += snprintf(line + len, sizeof line - (size_t)len, "\r\n");
		courier_say(c, COURIER_RCPT, line, len);
		return;
	}
	if (c->probe || !fates_count(&c->fates, FATE_SENT))
		courier_say(c, COURIER_RESET, "RSET\r\n", 6);
	else if (c->naming == COURIER_NAMED && c->refused)
		courier_say(c, COURIER_REPEAT, "RSET\r\n", 6);
	else
		courier_say(c, COURIER_DATA, "DATA\r\n", 6);
}

/* A gateway that was replaced can write nothing to Redis, but it could still send mail. So ask right before the final
 * dot whether the lease holds. */
static void say_dot(struct courier *c)
{
	struct smtp_span dot = smtp_dots_end(&c->dots);

	if (!queue_may_deliver(c->parts->queue)) {
		courier_end(c, COURIER_PUT_BACK);
		return;
	}
	c->state = COURIER_DOT;
	onward_write(c->onward, dot.at, dot.len);
	onward_expect(c->onward, c->parts->conf->outward.end_ms);
}

static void send_content(struct courier *c)
{
	char out[2 * PIECE];

	while (c->sent < c->mail.body.len && onward_pending(c->onward) < PENDING_MAX) {
		size_t left = c->mail.body.len - c->sent, len = left < PIECE ? left : PIECE;
		size_t made = smtp_dots_add(&c->dots, (const char *)c->mail.body.data + c->sent, len, out);

		c->sent += len;
		onward_write(c->onward, out, made);
	}
	onward_expect(c->onward, c->parts->conf->outward.block_ms);
	if (c->sent == c->mail.body.len)
		say_dot(c);
}

/* Replies */

static void courier_go_on(struct courier *c, enum courier_next next)
{
	if (next == COURIER_NEXT_ASK)
		courier_name_ask(c);
	else
		say_mail(c);
}

static void on_mail_reply(struct courier *c, const struct smtp_reply_line *line)
{
	if (line->code / 100 == 2) {
		say_next(c);
		return;
	}
	if (line->code == 503 && c->naming == COURIER_NAMED) {
		courier_go_on(c, courier_name_refused(c));
		return;
	}
	if (c->demand == COURIER_DEMANDS_TLS)
		destination_give_up_clear(c->destination, c->onward);
	courier_note_reply(c, line);
	courier_finish(c);
}

/* RFC 5321 4.5.3.1.10: the receiver takes no more recipients in this transaction, which it may also say by 552. Both
 * codes have other meanings as well. So at least one recipient has to be accepted before, and an enhanced code has to
 * be that for too many recipients (RFC 3463 3.6). */
static bool has_too_many(const struct courier *c, const struct smtp_reply_line *line)
{
	const struct smtp_enhanced *e = &line->enhanced;

	return (line->code == 452 || line->code == 552) && fates_count(&c->fates, FATE_SENT) &&
	       (!e->status || (e->subject == 5 && e->detail == 3));
}

/* With an enhanced code it means all further recipients, so they are not named. Without one it may mean this one. */
static void leave_for_next(struct courier *c, struct smtp_enhanced enhanced)
{
	c->left = COURIER_REST_LEFT;
	c->fates.at[c->at - 1].fate = FATE_OPEN;
	if (enhanced.status)
		c->rest = (struct smtp_span){ 0 };
}

/* Without a name. */
static void on_repeat_reply(struct courier *c, const struct smtp_reply_line *line)
{
	fates_unsend(&c->fates);
	if (line->code / 100 != 2) {
		finish_with_reset(c);
		return;
	}
	c->naming = COURIER_UNNAMED;
	c->left = COURIER_REST_NONE;
	c->rest = c->envelope.rest;
	c->at = 0;
	say_mail(c);
}

static void on_ask_reply(struct courier *c, const struct smtp_reply_line *line)
{
	const enum courier_next next = courier_name_answered(c, line, &c->decided);

	if (next != COURIER_NEXT_SETTLE) {
		courier_go_on(c, next);
		return;
	}
	c->naming = COURIER_NAMED;
	c->state = COURIER_DOT;
	fates_set_open(&c->fates, FATE_SENT, (struct smtp_span){ 0 });
	courier_note_reply(c, &c->decided);
	courier_finish(c);
}

/* The reply to the last command, or to the content. */
static void on_expected(struct courier *c, const struct smtp_reply_line *line)
{
	const unsigned class = line->code / 100;

	switch (c->state) {
	case COURIER_MAIL: on_mail_reply(c, line); break;
	case COURIER_RCPT:
		c->refused += class != 2;
		courier_note_reply(c, line);
		if (has_too_many(c, line))
			leave_for_next(c, line->enhanced);
		say_next(c);
		break;
	case COURIER_DATA:
		if (class == 3) {
			c->state = COURIER_CONTENT;
			send_content(c);
			break;
		}
		courier_note_reply(c, line);
		courier_say(c, COURIER_RESET, "RSET\r\n", 6);
		break;
	case COURIER_DOT:
		courier_note_reply(c, line);
		if (c->left == COURIER_REST_LEFT && class == 2)
			c->left = COURIER_REST_NEXT;
		courier_finish(c);
		break;
	case COURIER_ASK: on_ask_reply(c, line); break;
	case COURIER_REPEAT: on_repeat_reply(c, line); break;
	case COURIER_RESET:
		if (class == 2) {
			courier_finish(c);
			break;
		}             /* fall through */
	case COURIER_CONTENT: /* the receiver refuses the content before its end */
	case COURIER_RESOLVES:
	case COURIER_WAITS: finish_with_reset(c); break;
	}
}

/* A 421 ends the connection. The command that it answers is put off. */
static void on_courier_answer(struct courier *c, const struct smtp_reply_line *line)
{
	if (line->code >= 400) /* the receiver counts them, too */
		c->onward->refusals++;
	else if (c->state == COURIER_DOT)
		c->onward->refusals = 0;
	if (line->code != 421) {
		on_expected(c, line);
		return;
	}
	if (c->state != COURIER_RESET)
		courier_note_reply(c, line);
	finish_with_reset(c);
}

/* Nobody knows whether the receiver took the message. It is asked, or gets it again (RFC 1047). */
static void note_doubt(struct courier *c, const char *cause)
{
	if (c->state != COURIER_DOT)
		return;
	if (c->naming == COURIER_NAMED)
		c->naming = COURIER_ASKS_FIRST;
	c->parts->counters->in_doubt++;
	log_event(LOG_WARNING, NULL, "delivery in doubt", "message=%" PRIx64 " cause=%s", c->mail.id, cause);
}

void courier_cut(struct courier *c)
{
	note_doubt(c, "the queue lease ended before the receiver had its end");
	finish_with_reset(c);
}

/* More bytes came behind the reply, so nothing tells which command the next one would answer. But a reply to the final
 * dot has decided the message, and one to RCPT its recipient: behind the refusal of one too many, Postfix says 421. */
static void on_crowded_answer(struct courier *c, const struct smtp_reply_line *line)
{
	if (c->state == COURIER_DOT || c->state == COURIER_RCPT)
		courier_note_reply(c, line);
	if (c->state == COURIER_RCPT && has_too_many(c, line))
		leave_for_next(c, line->enhanced);
	finish_with_reset(c);
}

/* After a whole reply the courier may have ended. A receiver that sends more replies than it was asked for loses its
 * connection. */
static void on_courier_reply(void *ctx, const char *data, size_t len)
{
	struct courier *c = ctx;
	struct smtp_reply_line line;
	size_t used = 0, taken;
	int r = SMTP_REPLY_MORE;

	for (; r == SMTP_REPLY_MORE; used += taken) {
		r = smtp_reply_read(&c->reader, data + used, len - used, &taken, &line);
		/* MAIL in clear, after TLS had failed: the message is tried again with TLS. Each line may say so. */
		if (r > SMTP_REPLY_NONE && c->state == COURIER_MAIL && fallback_is_refused(c->onward, &line))
			c->demand = COURIER_DEMANDS_TLS;
	}
	if (r < 0) {
		note_doubt(c, "its reply cannot be read");
		finish_with_reset(c);
	} else if (r == SMTP_REPLY_DONE && used < len) {
		on_crowded_answer(c, &line);
	} else if (r == SMTP_REPLY_DONE) {
		on_courier_answer(c, &line);
	}
}

static void on_room(void *ctx)
{
	struct courier *c = ctx;

	if (c->state == COURIER_CONTENT && onward_pending(c->onward) < PENDING_MAX / 2)
		send_content(c);
}

static void on_courier_lost(void *ctx, enum smtp_own why)
{
	struct courier *c = ctx;
	struct onward *o = c->onward;
	const unsigned messages = o->messages;

	c->onward = NULL;
	destination_note_lost(c->destination, o);
	note_doubt(c, smtp_own_reply(why)->text);
	if (probe_asks_again(c, messages))
		return;
	courier_settle(c);
	courier_leave_line(c, COURIER_LINE_NOW);
}

static const struct onward_user user = { .on_reply = on_courier_reply, .on_room = on_room, .on_lost = on_courier_lost };

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
	if (why != QUEUE_NONE && !c->probe)
		queue_put_back(
			c->parts->queue, c->mail.id, queue_now_ms(c->parts->queue) + COURIER_LATER_MS, QUEUE_CLEAR);
	courier_leave_line(c, COURIER_LINE_NOW);
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
	courier_go_on(c, courier_name_begins(c));
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
	return want_turn(&c->want, c->destination);
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
	courier_leave_line(c, COURIER_LINE_NOW);
}

/* No receiver was tried, so this is no failure of the message. It waits for a place, or for memory. */
static void wait_for_place(struct courier *c)
{
	if (!c->probe)
		queue_put_back(c->parts->queue, c->mail.id, 0, QUEUE_CLEAR);
	c->state = COURIER_WAITS;
	courier_leave_line(c, COURIER_LINE_LATER);
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
	struct delivery *d, const struct delivery_parts *parts, struct delivery_line *line, struct queue_taken *mail)
{
	struct courier *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	c->delivery = d;
	c->parts = parts;
	c->line = line;
	c->mail = *mail;
	c->want.ops = &want_ops;
	c->want.name = parts->conf->name;
	c->want.weight = 1;
	c->way.on_found = on_way_found;
	smtp_reply_begin(&c->reader, c->buffer, sizeof c->buffer);
	return c;
}

void courier_start(struct courier *c, const char *name)
{
	const int r = way_begin(&c->way, c->parts, name);

	if (r == WAY_KNOWN)
		try_next(c);
	else if (r < 0)
		wait_for_place(c);
}
