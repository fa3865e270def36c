/* session_filter.c: hooks judge the commands of a transaction, and then its message. A command waits for their verdict
 * as it was read. A message is kept in memory: the sender gets the 354 from us. The receiver gets DATA when they have
 * agreed, and its reply is the reply to the sender, so no 250 is ours. With deliver: queue the queue gets the message
 * then. */
#include "smtpproxy/sender/session_filter.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "smtpproxy/hooks/filter.h"
#include "smtpproxy/sender/session_commands.h"
#include "smtpproxy/sender/session_lease.h"
#include "smtpproxy/sender/session_life.h"
#include "smtpproxy/sender/session_store.h"

#define MINUTE_MS 60000u
#define LEAST_MS  10000u /* for hooks, whatever the file leaves of the sender's time */
#define PIECE_MAX 16384u
#define DOTS_MAX  1024u /* for the dots that DATA adds, which SIZE does not count (RFC 1870 3) */

/* PASSES: the content is not kept.
 *
 *   PASSES --DATA, and a hook wants the message--> TAKES --end of content--> JUDGED --verdict--> SAYS_DATA
 *     '--discarded at a command--> DISCARDS                                           SENT <-- SENDS <--354--'
 *
 * With deliver: queue, JUDGED --verdict--> SENT: the queue has it.
 */
enum filtered_phase {
	FILTERED_PASSES,
	FILTERED_DISCARDS,
	FILTERED_TAKES,
	FILTERED_JUDGED,
	FILTERED_SAYS_DATA, /* toward the receiver */
	FILTERED_SENDS,
	FILTERED_SENT,
};

struct filtered {
	struct filter *filter; /* NULL: it has refused DATA */
	enum session_state from;
	enum filtered_phase phase;
	const char *flaw; /* the reply, if the content should be kept, and is not; NULL: it is */
	struct message message;
	struct body_share share; /* of the room for kept messages */
	/* The receiver's reply to DATA. */
	struct smtp_reply_reader reader;
	char line[SESSION_REPLY_MAX];
};

static enum filtered_phase filtered_phase_of(const struct session *s)
{
	return s->filtered ? s->filtered->phase : FILTERED_PASSES;
}

bool session_is_unsent(const struct session *s)
{
	return filtered_phase_of(s) >= FILTERED_TAKES && filtered_phase_of(s) < FILTERED_SENT;
}

bool session_is_judged(const struct session *s)
{
	return filtered_phase_of(s) == FILTERED_JUDGED;
}

uint64_t session_held_taken(const struct session *s)
{
	return s->filtered ? s->filtered->share.taken : 0;
}

/* Toward the sender */

bool session_held_begin(struct session *s, const struct smtp_client_event *e)
{
	static const char go_ahead[] = "354 End data with <CR><LF>.<CR><LF>\r\n";

	if (!s->filtered || (filtered_phase_of(s) != FILTERED_DISCARDS && !filter_holds(s->filtered->filter)))
		return false;
	if (filtered_phase_of(s) != FILTERED_DISCARDS)
		s->filtered->phase = FILTERED_TAKES;
	smtp_tx_pass(&s->tx, e);
	session_answer(s, go_ahead, strlen(go_ahead));
	if (s->onward)
		session_expect_receiver(s); /* the sender has to act */
	return true;
}

const char *session_flaw_of(int r)
{
	return r == CSSL_E_TOO_LONG ? "552 5.3.4 Message is too big\r\n"
				    : "452 4.3.1 No memory for the message, try again later\r\n";
}

static void filtered_add(struct session *s, struct smtp_span piece)
{
	struct filtered *f = s->filtered;
	int r;

	if (f->flaw || filtered_phase_of(s) == FILTERED_DISCARDS || piece.len == 0)
		return;
	r = body_share_add(&f->share, &f->message, piece.at, piece.len, s->home->conf->limits.held_message + DOTS_MAX);
	if (r == 0)
		return;
	f->flaw = session_flaw_of(r);
	message_free(&f->message); /* the share ends with the transaction */
	body_share_resize(&f->share, 0);
}

static void filtered_decide(struct session *s, const char *reply)
{
	session_decide(s, smtp_span_of(reply));
}

/* Hooks judge the whole message. */
static void filtered_judge(struct session *s)
{
	struct filtered *f = s->filtered;
	const int r = f->flaw || f->phase == FILTERED_DISCARDS ? 0 : message_read(&f->message);

	if (r < 0)
		f->flaw = session_flaw_of(r);
	if (f->phase == FILTERED_DISCARDS) {
		filtered_decide(s, "250 2.0.0 Ok\r\n");
	} else if (f->flaw) {
		filtered_decide(s, f->flaw);
	} else {
		f->phase = FILTERED_JUDGED;
		filter_ask_message(f->filter, &f->message);
	}
}

bool session_held_take(struct session *s, const struct smtp_client_event *e)
{
	if (filtered_phase_of(s) != FILTERED_DISCARDS && filtered_phase_of(s) != FILTERED_TAKES)
		return false;
	s->home->counters->bytes += e->wire.len;
	pace_count(&s->pace, e->wire.len);
	filtered_add(s, e->wire);
	if (e->kind != SMTP_CLIENT_CONTENT_END || s->tx.state != SMTP_TX_DOT)
		return true;
	session_move(s, SESSION_DECIDES);
	session_tx_wait(s);
	pace_set_turn(&s->pace, PACE_RECEIVER, worker_now_ms(s->home->worker));
	deadline_cancel(&s->deadline); /* the hooks have time limits of their own */
	if (s->onward)
		onward_expect(s->onward, 0);
	filtered_judge(s);
	return true;
}

/* Toward the receiver */

static void filtered_judged(struct session *s, enum filter_verdict verdict, struct smtp_span reply)
{
	struct filtered *f = s->filtered;
	struct message judged = f->message;

	if (verdict == FILTER_REFUSES) {
		session_decide(s, reply);
	} else if (verdict == FILTER_DISCARDS) {
		filtered_decide(s, "250 2.0.0 Ok\r\n");
	} else if (s->store) { /* it is moved out first, because the answer may come at once, and end the transaction */
		body_share_resize(&f->share, 0);
		f->message = (struct message){ 0 };
		f->phase = FILTERED_SENT;
		session_store_judged(s, &judged);
		message_free(&judged);
	} else {
		f->phase = FILTERED_SAYS_DATA;
		smtp_reply_begin(&f->reader, f->line, sizeof f->line);
		onward_write(s->onward, "DATA\r\n", strlen("DATA\r\n")); /* a failure comes as on_lost */
		onward_expect(s->onward, s->home->conf->outward.data_ms);
	}
}

void session_held_go_on(struct session *s)
{
	char piece[PIECE_MAX];
	size_t len;

	if (filtered_phase_of(s) != FILTERED_SENDS)
		return;
	onward_expect(s->onward, s->home->conf->outward.block_ms);
	while (onward_pending(s->onward) < SESSION_PENDING_MAX) {
		len = message_next(&s->filtered->message, piece, sizeof piece);
		if (len == 0) {
			s->filtered->phase = FILTERED_SENT;
			onward_expect(s->onward, s->home->conf->outward.end_ms);
			return;
		}
		if (onward_write(s->onward, piece, len) < 0)
			return;
	}
}

/* The reply to DATA. If it is no 3xx, it is the reply to the message. */
static void read_reply_to_data(struct session *s, const char *in, size_t len)
{
	struct smtp_reply_line line;
	size_t used = 0, taken;
	int r = SMTP_REPLY_MORE;

	for (; r == SMTP_REPLY_MORE; used += taken)
		r = smtp_reply_read(&s->filtered->reader, in + used, len - used, &taken, &line);
	if (r == SMTP_REPLY_DONE && line.code / 100 == 3) {
		s->filtered->phase = FILTERED_SENDS;
		session_held_go_on(s);
	} else if (r == SMTP_REPLY_DONE && line.code >= 400) {
		session_decide(s, line.wire);
	} else if (r < 0 || r == SMTP_REPLY_DONE) {
		session_lose_receiver(s, SMTP_OWN_BACKEND_BROKEN);
	}
}

size_t session_held_read(struct session *s, const char *in, size_t len)
{
	switch (filtered_phase_of(s)) {
	case FILTERED_SAYS_DATA: read_reply_to_data(s, in, len); return len;
	case FILTERED_JUDGED:
	case FILTERED_SENDS: /* it does not wait for the message: whatever it says, it has not got it */
		session_lose_receiver(s, SMTP_OWN_BACKEND_LOST);
		return len;
	default: return 0;
	}
}

/* --- the commands --- */

bool session_is_filtered(const struct session *s)
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
static void filtered_refuse(struct session *s, const struct smtp_client_event *e, struct smtp_span reply)
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
	struct held_command held = s->held;

	if (s->state != SESSION_FILTERS) {
		filtered_judged(s, verdict, reply);
		return;
	}
	e = held_command_event(&s->held, s->tx.rules.parse);
	s->held = (struct held_command){ 0 };
	session_move(s, s->filtered->from);
	if (verdict == FILTER_DISCARDS)
		s->filtered->phase = FILTERED_DISCARDS;
	if (verdict == FILTER_REFUSES)
		filtered_refuse(s, &e, reply);
	else
		session_resume(s, &e);
	held_command_free(&held);
	session_end_drained(s);
	session_go_on(s);
}

/* The question */

static int filtered_begin(struct session *s)
{
	const struct destination *d = s->destination; /* deliver: queue: the receivers are chosen later */
	char destination[ADDRESS_TEXT_MAX];
	struct filter_facts facts = {
		.listener = s->home->conf->name,
		.hello = s->tx.name,
		.client = session_client(s),
		.destination = d ? address_format((const struct sockaddr *)&d->route.to, destination) : "queue",
		.connection = s->number,
	};
	const struct conf_smtpproxy *c = s->home->conf;
	const uint32_t turn_ms = s->home->queue ? 0 : c->limits.turn_ms,
		       data_ms = s->home->queue ? 0 : c->outward.data_ms;
	struct filtered *f = calloc(1, sizeof *f);

	if (!f)
		return -1;
	/* A sender waits 5 minutes for the replies to MAIL and RCPT, 2 for that to DATA, and 10 for that to a message
	 * (RFC 5321 4.5.3.2). MAIL also waits for its turn. Behind a message's verdict, the receiver gets DATA and the
	 * message. */
	facts.most_ms[FILTER_MAIL] = turn_ms < 5 * MINUTE_MS - LEAST_MS ? 5 * MINUTE_MS - turn_ms : LEAST_MS;
	facts.most_ms[FILTER_RCPT] = 4 * MINUTE_MS;
	facts.most_ms[FILTER_DATA] = 3 * MINUTE_MS / 2;
	facts.most_ms[FILTER_MESSAGE] = data_ms < 8 * MINUTE_MS - LEAST_MS ? 8 * MINUTE_MS - data_ms : LEAST_MS;
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
static enum smtp_own filtered_refusal(struct session *s, enum smtp_verb verb)
{
	if (verb == SMTP_VERB_MAIL && filtered_begin(s) < 0)
		return SMTP_OWN_LOCAL_ERROR;
	if (!s->filtered || (!s->filtered->filter && verb == SMTP_VERB_DATA)) /* they have refused it */
		return SMTP_OWN_BAD_SEQUENCE;
	if (verb == SMTP_VERB_DATA && s->tx.rcpts_accepted == 0)
		return SMTP_OWN_NO_RECIPIENTS;
	return SMTP_OWN_NONE;
}

bool session_filter(struct session *s, const struct smtp_client_event *e)
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
		return false;
	own = filtered_refusal(s, verb);
	if (!own && (s->filtered->phase == FILTERED_DISCARDS || !s->filtered->filter))
		return false;
	if (!own && held_command_keep(&s->held, e) < 0)
		own = SMTP_OWN_LOCAL_ERROR;
	if (own) {
		if (verb == SMTP_VERB_MAIL) { /* else the next MAIL would meet what this one began */
			session_tx_forget(s);
			session_filter_drop(s);
		}
		session_answer_own(s, e, own);
		return true;
	}
	s->filtered->from = (enum session_state)s->state;
	session_move(s, SESSION_FILTERS);
	pace_set_turn(&s->pace, PACE_RECEIVER, worker_now_ms(s->home->worker));
	session_expect_sender(s);
	held = held_command_event(&s->held, s->tx.rules.parse);
	filter_ask(s->filtered->filter, steps[verb], held.command.path.mailbox, held.command.params);
	return true;
}
