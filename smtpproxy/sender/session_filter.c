/* session_filter.c: hooks judge the commands of a transaction. A command waits for their verdict as it was read. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "smtpproxy/sender/session_filtered.h"

#define MINUTE_MS 60000u
#define LEAST_MS  10000u /* for hooks, whatever the file leaves of the sender's time */

int session_is_filtered(const struct session *s)
{
	return s->listener->hook_count > 0;
}

void session_filter_drop(struct session *s)
{
	struct filtered *f = s->filtered;

	if (!f)
		return;
	s->filtered = NULL;
	filter_leave(f->filter);
	body_share_end(&f->share);
	message_free(&f->message);
	free(f);
}

void session_filter_note_recipient(struct session *s)
{
	if (s->filtered && s->filtered->filter)
		filter_note_recipient(s->filtered->filter);
}

/* The verdict */

/* Our reply, as if the receiver had sent it. */
static void refuse(struct session *s, const struct smtp_client_event *e, struct smtp_span reply)
{
	const enum smtp_verb verb = e->command.verb;

	if (verb == SMTP_VERB_MAIL)
		session_record_begin(s, e->command.path.mailbox);
	if (verb == SMTP_VERB_RCPT)
		session_record_recipient(s, &e->command);
	smtp_tx_pass(&s->tx, e);
	session_answer(s, reply.at, reply.len);
	if (verb == SMTP_VERB_MAIL) {
		session_record_end(s, RECORD_REFUSED);
		session_tx_forget(s);
		session_filter_drop(s);
	} else if (verb == SMTP_VERB_DATA) {
		filter_leave(s->filtered->filter);
		s->filtered->filter = NULL;
	}
}

static void on_verdict(void *ctx, enum filter_verdict verdict, struct smtp_span reply)
{
	struct session *s = ctx;
	struct smtp_client_event e;
	char *held = s->held;

	if (s->state != SESSION_FILTERS) {
		session_held_judged(s, verdict, reply);
		return;
	}
	e = session_held_event(s);
	s->held = NULL;
	session_move(s, s->filtered->from);
	if (verdict == FILTER_DISCARDS)
		s->filtered->phase = FILTERED_DISCARDS;
	if (verdict == FILTER_REFUSES)
		refuse(s, &e, reply);
	else
		session_resume(s, &e);
	free(held);
	session_end_drained(s);
	session_go_on(s);
}

/* The question */

/* deliver: queue: the receivers are chosen later. */
static const char *destination_of(const struct session *s, char text[static ADDRESS_TEXT_MAX])
{
	const struct destination *d = s->destination;

	return d ? address_format((const struct sockaddr *)&d->route.to, text) : "queue";
}

/* A sender waits 5 minutes for the replies to MAIL and RCPT, 2 for that to DATA, and 10 for that to a message (RFC 5321
 * 4.5.3.2). MAIL also waits for its turn. Behind a message's verdict, the receiver gets DATA and the message. */
static void set_limits(const struct session *s, uint32_t most_ms[static FILTER_STEPS])
{
	const struct conf_smtpproxy *c = s->home->conf;
	const uint32_t turn_ms = s->home->queue ? 0 : c->limits.turn_ms,
		       data_ms = s->home->queue ? 0 : c->outward.data_ms;
	most_ms[FILTER_MAIL] = turn_ms < 5 * MINUTE_MS - LEAST_MS ? 5 * MINUTE_MS - turn_ms : LEAST_MS;
	most_ms[FILTER_RCPT] = 4 * MINUTE_MS;
	most_ms[FILTER_DATA] = 3 * MINUTE_MS / 2;
	most_ms[FILTER_MESSAGE] = data_ms < 8 * MINUTE_MS - LEAST_MS ? 8 * MINUTE_MS - data_ms : LEAST_MS;
}

static int begin(struct session *s)
{
	char destination[ADDRESS_TEXT_MAX];
	struct filter_facts facts = {
		.listener = s->home->conf->name,
		.hello = s->tx.name,
		.client = session_client(s),
		.destination = destination_of(s, destination),
		.connection = s->number,
	};
	struct filtered *f = calloc(1, sizeof *f);

	if (!f)
		return -1;
	set_limits(s, facts.most_ms);
	if (!body_share_begin(&s->home->held, &f->share, &s->source))
		f->filter = filter_create(&s->home->hooks, s->listener, &facts, on_verdict, s);
	if (!f->filter) {
		body_share_end(&f->share);
		free(f);
		return -1;
	}
	s->filtered = f;
	return 0;
}

/* Why it is not asked about. */
static enum smtp_own refusal(struct session *s, enum smtp_verb verb)
{
	if (verb == SMTP_VERB_MAIL && begin(s) < 0)
		return SMTP_OWN_LOCAL_ERROR;
	if (!s->filtered || (!s->filtered->filter && verb == SMTP_VERB_DATA)) /* they have refused it */
		return SMTP_OWN_BAD_SEQUENCE;
	if (verb == SMTP_VERB_DATA && s->tx.rcpts_accepted == 0)
		return SMTP_OWN_NO_RECIPIENTS;
	return SMTP_OWN_NONE;
}

int session_filter(struct session *s, const struct smtp_client_event *e)
{
	static const enum filter_step steps[SMTP_VERB_COUNT] = {
		[SMTP_VERB_MAIL] = FILTER_MAIL,
		[SMTP_VERB_RCPT] = FILTER_RCPT,
		[SMTP_VERB_DATA] = FILTER_DATA,
	};
	const enum smtp_verb verb = e->command.verb;
	enum smtp_own own;
	struct smtp_client_event held;

	if (!session_is_filtered(s) || (verb != SMTP_VERB_MAIL && !steps[verb]))
		return 0;
	own = refusal(s, verb);
	if (!own && (s->filtered->phase == FILTERED_DISCARDS || !s->filtered->filter))
		return 0;
	if (!own && session_hold(s, e) < 0)
		own = SMTP_OWN_LOCAL_ERROR;
	if (own) {
		if (verb == SMTP_VERB_MAIL) {
			session_tx_forget(s);
			session_filter_drop(s);
		}
		session_answer_own(s, e, own);
		return 1;
	}
	s->filtered->from = (enum session_state)s->state;
	session_move(s, SESSION_FILTERS);
	pace_set_turn(&s->pace, PACE_RECEIVER, worker_now_ms(s->home->worker));
	session_expect_sender(s);
	held = session_held_event(s);
	filter_ask(s->filtered->filter, steps[verb], held.command.path.mailbox, held.command.params);
	return 1;
}
