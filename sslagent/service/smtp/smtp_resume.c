/* smtp_resume.c: how a session continues after the loss of its owner. An incomplete mail is sent again. A mail that
 * may have been complete is never sent again before the server has answered that it will not take the first attempt.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/report/log_pace.h"
#include "proto/error.h"
#include "smtp/reply_write.h"
#include "sslagent/counters.h"
#include "sslagent/service/service.h"
#include "sslagent/service/smtp/smtp_session.h"

/* --- what is there to go on with --- */

/* The agent asks about the epochs in which the transaction may have a name. */
static bool can_ask(const struct smtp_session *s, struct smtp_mark tx)
{
	const struct smtp_note *note = &s->past->note;

	return s->id[0] && note->entry[0] && smtp_mark_number(tx, note->epoch) && s->epoch > note->epoch;
}

/* SMTP_OWN_NONE, or the last reply to the client. */
static enum smtp_own plan_to_ask(struct smtp_session *s, enum smtp_resuming how)
{
	if (!can_ask(s, s->past->heard.tx))
		return SMTP_OWN_AGENT_LOST;
	s->past->how = (uint8_t)how;
	s->past->epoch = (uint16_t)(s->epoch - 1);
	return SMTP_OWN_NONE;
}

/* Decides how the waiting bytes continue. SMTP_OWN_NONE: they go on. Else this is the last reply to the client. */
static enum smtp_own smtp_resume_judge(struct smtp_session *s)
{
	struct smtp_past *p = s->past;

	if (smtp_rehearse(&s->rules, &p->note, p->replies, &s->waiting, &p->heard) < 0)
		return SMTP_OWN_OVERLOADED;
	smtp_session_use(s, p->heard.answered_len);
	p->classes_at += p->heard.answered_replies;
	p->replies -= p->heard.answered_replies;
	if (p->heard.verdict == SMTP_IS_LOST)
		return SMTP_OWN_AGENT_LOST;
	p->how = SMTP_REPEATS;
	if (p->heard.verdict == SMTP_MAY_BE_REPEATED)
		return SMTP_OWN_NONE;
	p->heard.ended_len -= p->heard.answered_len;
	p->heard.ended_replies -= p->heard.answered_replies;
	return plan_to_ask(s, SMTP_ASKS_FIRST);
}

/* SMTP_OWN_NONE, or the last reply to the client. */
static enum smtp_own smtp_resume_repeat(struct smtp_session *s)
{
	if (s->waiting.first && s->past->again == SERVICE_SAYS_NOTHING_AGAIN)
		return SMTP_OWN_AGENT_LOST;
	s->past->how = SMTP_REPEATS;
	if (s->waiting.first) {
		count(COUNT_MAIL_REPEATED);
		log_paced(
			LOG_INFO, s->connection, "mail repeated", "listener=%s epoch=%u", s->listener->name, s->epoch);
	}
	return SMTP_OWN_NONE;
}

void service_heard_all(struct service *of)
{
	struct smtp_session *s = of->state;

	if (s->stage != SMTP_HEARING)
		return;
	s->stage = SMTP_IDLE;
	enum smtp_own end = smtp_resume_judge(s);
	if (!end && s->past->how == SMTP_REPEATS)
		end = smtp_resume_repeat(s);
	if (end)
		smtp_session_end(s, end);
}

/* At a checkpoint the transaction of the note is over. If the next one has begun, then with an owner whose note did not
 * arrive. */
static uint16_t first_epoch(
	const struct smtp_session *s, const struct smtp_note *note, const struct service_resumption *r)
{
	const unsigned untold = s->epoch > SMTP_EPOCHS_UNTOLD_MAX ? s->epoch - SMTP_EPOCHS_UNTOLD_MAX : 0;

	return r->at_checkpoint && untold > note->epoch ? (uint16_t)untold : note->epoch;
}

/* Takes the facts of the note that still hold. */
static void take_note(struct smtp_session *s, const struct smtp_note *note, const struct service_resumption *r)
{
	const uint8_t banner = r->at_checkpoint || r->replies ? SMTP_BANNER_HAD : note->banner; /* sent before it */

	s->note = *note;
	s->note.banner = banner;
	s->note.classes_len = r->replies < note->classes_len ? (uint8_t)r->replies : note->classes_len;
	if (r->at_checkpoint) { /* the transaction of the note is over */
		s->note.tx = (struct smtp_mark){ 0 };
		s->note.end_reply = 0;
	}
	if (r->from == SERVICE_RESUME_AT_CHECKPOINT)
		smtp_session_at_checkpoint(s);
}

static int begin_past(struct smtp_session *s, const struct smtp_note *note, const struct service_resumption *r)
{
	s->past = calloc(1, sizeof *s->past);
	if (!s->past)
		return CSSL_E_NO_MEMORY;
	s->past->note = *note;
	s->past->replies = (uint32_t)r->replies;
	s->past->heard.tx = note->tx;
	s->past->again = (uint8_t)r->again;
	s->replies = (uint32_t)r->replies;
	return 0;
}

int service_resume(struct service *of, const struct service_resumption *r)
{
	struct smtp_session *s = of->state;
	struct smtp_note note = s->note;
	int result = r->len ? smtp_note_read(r->note, r->len, &note) : 0;

	if (r->len == 0)
		note.epoch = 0;
	if (result == 0 && r->from != SERVICE_RESUME_AT_CHECKPOINT && note.replies == SMTP_REPLIES_COUNTLESS)
		result = CSSL_E_STATE; /* the client may have got half a reply */
	if (result < 0)
		return result;
	note.epoch = first_epoch(s, &note, r);
	take_note(s, &note, r);
	if (note.authenticated) /* this cannot be repeated */
		smtp_session_end(s, SMTP_OWN_AGENT_LOST);
	if (r->from == SERVICE_RESUME_AT_CHECKPOINT || s->stage == SMTP_OVER)
		return 0;
	result = begin_past(s, &note, r);
	if (result == 0 && r->from == SERVICE_RESUME_CUT)
		s->stage = SMTP_HEARING;
	else if (result == 0 && plan_to_ask(s, SMTP_ASKS_BLIND))
		smtp_session_end(s, SMTP_OWN_AGENT_LOST);
	return result;
}

/* --- the question --- */

bool smtp_resume_ask(struct smtp_session *s, char *out, size_t cap)
{
	const struct smtp_past *p = s->past;
	struct smtp_tx_question question;
	struct wire_writer w = wire_writer((uint8_t *)out, cap - 1);

	if (p->how != SMTP_ASKS_FIRST && p->how != SMTP_ASKS_BLIND)
		return false;
	if (!smtp_ehlo_has(&s->relay->offers, SMTP_CAP_XCSSLTX)) {
		s->doubt = SMTP_OWN_AGENT_LOST;
		return false;
	}
	memcpy(question.name.id, s->id, sizeof question.name.id);
	memcpy(question.entry, p->note.entry, sizeof question.entry);
	question.name.number = smtp_mark_number(p->heard.tx, p->epoch);
	smtp_tx_question_write(&w, &question);
	out[wire_writer_len(&w)] = 0;
	count(COUNT_MAIL_ASKED);
	return true;
}

/* The fate in which all lines of the answer agree. @decided gets the reply to the mail. */
static enum smtp_fate read_answer(const struct smtp_session *s, struct wire_writer *decided)
{
	struct smtp_span rest = { (const char *)s->reply.data, s->reply.len };
	int fate = SMTP_FATE_UNKNOWN;

	while (rest.len) {
		struct smtp_reply_line line, reply;
		struct smtp_span text = smtp_span_until(&rest, '\n');
		text.len -= text.len && text.at[text.len - 1] == '\r';
		fate = smtp_reply_line_parse(text, &line) == 0 ? smtp_fate_parse(&line, &reply) : SMTP_FATE_UNKNOWN;
		if (fate != SMTP_FATE_DECIDED)
			break;
		char code[8];
		snprintf(code, sizeof code, "%03u%c", reply.code % 1000u, reply.is_last ? ' ' : '-');
		smtp_word_write(decided, code);
		smtp_text_write(decided, reply.text);
		smtp_word_write(decided, "\r\n");
	}
	return fate < 0 ? SMTP_FATE_UNKNOWN : (enum smtp_fate)fate;
}

/* Is the reply to the end of that mail the next one that the client waits for? If not, the replies before it are not
 * known, or the client may wait for a reply to a later command. */
static bool is_next(const struct smtp_past *p)
{
	if (p->how == SMTP_ASKS_BLIND)
		return p->note.end_reply && p->note.end_reply == p->replies;
	return p->heard.ended_replies == p->replies + 1;
}

/* The client's bytes after that mail are judged next. */
static void on_decided(struct smtp_session *s, const char *reply, size_t len)
{
	struct smtp_past *p = s->past;

	if (is_next(p))
		smtp_session_say(s, reply, len);
	if (!is_next(p) || p->how == SMTP_ASKS_BLIND) {
		s->doubt = SMTP_OWN_AGENT_LOST;
		return;
	}
	smtp_session_use(s, p->heard.ended_len);
	p->replies = 0;
	p->classes_at = 0;
	p->note.classes_len = 0;
	s->doubt = (uint8_t)smtp_resume_judge(s);
}

/* The transaction may also have a name in an older epoch. */
static void on_never(struct smtp_session *s)
{
	struct smtp_past *p = s->past;
	const bool older = p->epoch > p->note.epoch;

	if (older && (unsigned)(s->epoch - p->epoch) < SMTP_EPOCHS_ASKED_MAX)
		p->epoch--;
	else if (older || p->how == SMTP_ASKS_BLIND)
		s->doubt = SMTP_OWN_AGENT_LOST;
	else
		s->doubt = (uint8_t)smtp_resume_repeat(s);
}

void smtp_resume_answer(struct smtp_session *s)
{
	static const struct {
		enum agent_counter counter;
		const char *word;
	} rows[] = {
		[SMTP_FATE_DECIDED] = { COUNT_MAIL_DECIDED, "decided" },
		[SMTP_FATE_NEVER] = { COUNT_MAIL_NEVER, "never" },
		[SMTP_FATE_UNKNOWN] = { COUNT_MAIL_UNKNOWN, "unknown" },
	};
	uint8_t reply[SMTP_REPLY_TEXT_MAX];
	struct wire_writer w = wire_writer(reply, sizeof reply);
	enum smtp_fate fate = read_answer(s, &w);

	if (wire_writer_len(&w) < 0)
		fate = SMTP_FATE_UNKNOWN;
	count(rows[fate].counter);
	log_paced(LOG_INFO, s->connection, "mail asked about", "listener=%s epoch=%u fate=%s", s->listener->name,
		s->past->epoch, rows[fate].word);
	if (fate == SMTP_FATE_DECIDED)
		on_decided(s, (const char *)reply, (size_t)wire_writer_len(&w));
	else if (fate == SMTP_FATE_NEVER)
		on_never(s);
	else
		s->doubt = SMTP_OWN_AGENT_LOST;
}
