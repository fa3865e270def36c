/* courier_dialogue.c: one command at a time, and the reply to it. */
#include "smtpproxy/delivery/courier_dialogue.h"

#include <inttypes.h>
#include <stdio.h>

#include "net/report/log.h"
#include "smtp/params.h"
#include "smtpproxy/delivery/courier_name.h"
#include "smtpproxy/delivery/courier_settle.h"

#define PENDING_MAX  65536u
#define PIECE        16384u
#define LINE_MAX_OUT 2048u
#define ASK_MAX      256u

/* Toward the receiver */

static void courier_say(struct courier *c, enum courier_state state, const char *line, int len)
{
	c->state = state;
	c->demand = COURIER_DEMANDS_NOTHING;
	onward_write(c->onward, line, (size_t)len); /* if it fails, the lease ends */
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
	if (c->errand->task == COURIER_PROBES || !fates_count(&c->fates, FATE_SENT))
		courier_say(c, COURIER_RESET, "RSET\r\n", 6);
	else if (c->naming == COURIER_NAMED && c->refused)
		courier_say(c, COURIER_REPEAT, "RSET\r\n", 6);
	else
		courier_say(c, COURIER_DATA, "DATA\r\n", 6);
}

/* A gateway that was replaced can write nothing to Redis, but it could still send mail. So ask right before the final
 * dot whether the lease holds. */
static enum courier_outcome say_dot(struct courier *c)
{
	struct smtp_span dot = smtp_dots_end(&c->dots);

	if (!queue_may_deliver(c->parts->queue))
		return COURIER_MAY_NOT;
	c->state = COURIER_DOT;
	onward_write(c->onward, dot.at, dot.len);
	onward_expect(c->onward, c->parts->conf->outward.end_ms);
	return COURIER_GOES_ON;
}

static enum courier_outcome send_content(struct courier *c)
{
	char out[2 * PIECE];

	while (c->sent < c->mail.body.len && onward_pending(c->onward) < PENDING_MAX) {
		size_t left = c->mail.body.len - c->sent, len = left < PIECE ? left : PIECE;
		size_t made = smtp_dots_add(&c->dots, (const char *)c->mail.body.data + c->sent, len, out);

		c->sent += len;
		onward_write(c->onward, out, made);
	}
	onward_expect(c->onward, c->parts->conf->outward.block_ms);
	return c->sent == c->mail.body.len ? say_dot(c) : COURIER_GOES_ON;
}

/* Replies */

static enum courier_outcome say_mail_or_ask(struct courier *c, enum courier_next next)
{
	uint8_t question[ASK_MAX];

	if (next == COURIER_NEXT_ASK)
		courier_say(
			c, COURIER_ASK, (const char *)question, (int)courier_name_ask(c, question, sizeof question));
	else
		say_mail(c);
	return COURIER_GOES_ON;
}

void courier_dialogue_begin(struct courier *c)
{
	say_mail_or_ask(c, courier_name_begins(c));
}

static enum courier_outcome on_mail_reply(struct courier *c, const struct smtp_reply_line *line)
{
	if (line->code / 100 == 2) {
		say_next(c);
		return COURIER_GOES_ON;
	}
	if (line->code == 503 && c->naming == COURIER_NAMED)
		return say_mail_or_ask(c, courier_name_refused(c));
	if (c->demand == COURIER_DEMANDS_TLS)
		destination_give_up_clear(c->destination, c->onward);
	courier_note_reply(c, line);
	return COURIER_IS_DONE;
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
static enum courier_outcome on_repeat_reply(struct courier *c, const struct smtp_reply_line *line)
{
	fates_unsend(&c->fates);
	if (line->code / 100 != 2)
		return COURIER_BREAKS_OFF;
	c->naming = COURIER_UNNAMED;
	c->left = COURIER_REST_NONE;
	c->rest = c->envelope.rest;
	c->at = 0;
	say_mail(c);
	return COURIER_GOES_ON;
}

static enum courier_outcome on_ask_reply(struct courier *c, const struct smtp_reply_line *line)
{
	const enum courier_next next = courier_name_answered(c, line, &c->decided);

	if (next != COURIER_NEXT_SETTLE)
		return say_mail_or_ask(c, next);
	c->naming = COURIER_NAMED;
	c->state = COURIER_DOT;
	fates_set_open(&c->fates, FATE_SENT, (struct smtp_span){ 0 });
	courier_note_reply(c, &c->decided);
	return COURIER_IS_DONE;
}

static enum courier_outcome on_rcpt_reply(struct courier *c, const struct smtp_reply_line *line)
{
	c->refused += line->code / 100 != 2;
	courier_note_reply(c, line);
	if (has_too_many(c, line))
		leave_for_next(c, line->enhanced);
	say_next(c);
	return COURIER_GOES_ON;
}

static enum courier_outcome on_data_reply(struct courier *c, const struct smtp_reply_line *line)
{
	if (line->code / 100 == 3) {
		c->state = COURIER_CONTENT;
		return send_content(c);
	}
	courier_note_reply(c, line);
	courier_say(c, COURIER_RESET, "RSET\r\n", 6);
	return COURIER_GOES_ON;
}

static enum courier_outcome on_dot_reply(struct courier *c, const struct smtp_reply_line *line)
{
	courier_note_reply(c, line);
	if (c->left == COURIER_REST_LEFT && line->code / 100 == 2)
		c->left = COURIER_REST_NEXT;
	return COURIER_IS_DONE;
}

/* The reply to the last command, or to the content. */
static enum courier_outcome on_expected(struct courier *c, const struct smtp_reply_line *line)
{
	switch (c->state) {
	case COURIER_MAIL: return on_mail_reply(c, line);
	case COURIER_RCPT: return on_rcpt_reply(c, line);
	case COURIER_DATA: return on_data_reply(c, line);
	case COURIER_DOT: return on_dot_reply(c, line);
	case COURIER_ASK: return on_ask_reply(c, line);
	case COURIER_REPEAT: return on_repeat_reply(c, line);
	case COURIER_RESET: return line->code / 100 == 2 ? COURIER_IS_DONE : COURIER_BREAKS_OFF;
	case COURIER_CONTENT: /* the receiver refuses the content before its end */
	case COURIER_RESOLVES:
	case COURIER_WAITS: break;
	}
	return COURIER_BREAKS_OFF;
}

/* A 421 ends the connection. The command that it answers is put off. */
static enum courier_outcome on_courier_answer(struct courier *c, const struct smtp_reply_line *line)
{
	if (line->code >= 400) /* the receiver counts them, too */
		c->onward->refusals++;
	else if (c->state == COURIER_DOT)
		c->onward->refusals = 0;
	if (line->code != 421)
		return on_expected(c, line);
	if (c->state != COURIER_RESET)
		courier_note_reply(c, line);
	return COURIER_BREAKS_OFF;
}

/* Nobody knows whether the receiver took the message. It is asked, or gets it again (RFC 1047). */
void courier_dialogue_doubt(struct courier *c, const char *cause)
{
	if (c->state != COURIER_DOT)
		return;
	if (c->naming == COURIER_NAMED)
		c->naming = COURIER_ASKS_FIRST;
	c->parts->counters->in_doubt++;
	log_event(LOG_WARNING, NULL, "delivery in doubt", "message=%" PRIx64 " cause=%s", c->mail.id, cause);
}

/* More bytes came behind the reply, so nothing tells which command the next one would answer. But a reply to the final
 * dot has decided the message, and one to RCPT its recipient: behind the refusal of one too many, Postfix says 421. */
static enum courier_outcome on_crowded_answer(struct courier *c, const struct smtp_reply_line *line)
{
	if (c->state == COURIER_DOT || c->state == COURIER_RCPT)
		courier_note_reply(c, line);
	if (c->state == COURIER_RCPT && has_too_many(c, line))
		leave_for_next(c, line->enhanced);
	return COURIER_BREAKS_OFF;
}

/* A receiver that sends more replies than it was asked for loses its connection. */
enum courier_outcome courier_dialogue_hear(struct courier *c, const char *data, size_t len)
{
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
		courier_dialogue_doubt(c, "its reply cannot be read");
		return COURIER_BREAKS_OFF;
	}
	if (r != SMTP_REPLY_DONE)
		return COURIER_GOES_ON;
	return used < len ? on_crowded_answer(c, &line) : on_courier_answer(c, &line);
}

enum courier_outcome courier_dialogue_on_room(struct courier *c)
{
	if (c->state == COURIER_CONTENT && onward_pending(c->onward) < PENDING_MAX / 2)
		return send_content(c);
	return COURIER_GOES_ON;
}
