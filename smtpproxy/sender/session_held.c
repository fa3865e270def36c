/* session_held.c: a message that is kept in memory while hooks judge it. The sender gets the 354 from us. The receiver
 * gets DATA when they have agreed, and its reply is the reply to the sender, so no 250 is ours. With deliver: queue the
 * queue gets the message then. */
#include <string.h>

#include "proto/error.h"
#include "smtpproxy/sender/session_filtered.h"

#define PIECE_MAX 16384u
#define DOTS_MAX  1024u /* for the dots that DATA adds, which SIZE does not count (RFC 1870 3) */

static enum filtered_phase phase_of(const struct session *s)
{
	return s->filtered ? s->filtered->phase : FILTERED_PASSES;
}

int session_is_unsent(const struct session *s)
{
	return phase_of(s) >= FILTERED_TAKES && phase_of(s) < FILTERED_SENT;
}

int session_is_held(const struct session *s)
{
	return phase_of(s) == FILTERED_DISCARDS || phase_of(s) == FILTERED_TAKES;
}

int session_is_judged(const struct session *s)
{
	return phase_of(s) == FILTERED_JUDGED;
}

uint64_t session_held_taken(const struct session *s)
{
	return s->filtered ? s->filtered->share.taken : 0;
}

/* Toward the sender */

int session_held_begin(struct session *s, const struct smtp_client_event *e)
{
	static const char go_ahead[] = "354 End data with <CR><LF>.<CR><LF>\r\n";

	if (!s->filtered || (phase_of(s) != FILTERED_DISCARDS && !filter_holds(s->filtered->filter)))
		return 0;
	if (phase_of(s) != FILTERED_DISCARDS)
		s->filtered->phase = FILTERED_TAKES;
	smtp_tx_pass(&s->tx, e);
	session_answer(s, go_ahead, strlen(go_ahead));
	if (s->onward)
		session_expect_receiver(s); /* the sender has to act */
	return 1;
}

static void add(struct session *s, struct smtp_span piece)
{
	struct filtered *f = s->filtered;
	int r;

	if (f->flaw || phase_of(s) == FILTERED_DISCARDS || piece.len == 0)
		return;
	r = body_share_add(&f->share, &f->message, piece.at, piece.len, s->home->conf->limits.held_message + DOTS_MAX);
	if (r == 0)
		return;
	f->flaw = r == CSSL_E_TOO_LONG ? FILTERED_TOO_BIG : FILTERED_NO_ROOM;
	message_free(&f->message); /* the share ends with the transaction */
	body_share_resize(&f->share, 0);
}

static void decide(struct session *s, const char *reply)
{
	session_decide(s, smtp_span_of(reply));
}

/* Hooks judge the whole message. */
static void judge(struct session *s)
{
	static const char *const refusals[] = {
		[FILTERED_TOO_BIG] = "552 5.3.4 Message is too big\r\n",
		[FILTERED_NO_ROOM] = "452 4.3.1 No memory for the message, try again later\r\n",
	};
	struct filtered *f = s->filtered;
	const int r = f->flaw || f->phase == FILTERED_DISCARDS ? 0 : message_read(&f->message);

	if (r < 0)
		f->flaw = r == CSSL_E_TOO_LONG ? FILTERED_TOO_BIG : FILTERED_NO_ROOM;
	if (f->phase == FILTERED_DISCARDS) {
		decide(s, "250 2.0.0 Ok\r\n");
	} else if (f->flaw) {
		decide(s, refusals[f->flaw]);
	} else {
		f->phase = FILTERED_JUDGED;
		filter_ask_message(f->filter, &f->message);
	}
}

void session_held_take(struct session *s, const struct smtp_client_event *e)
{
	s->home->counters->bytes += e->wire.len;
	pace_count(&s->pace, e->wire.len);
	add(s, e->wire);
	if (e->kind != SMTP_CLIENT_CONTENT_END || s->tx.state != SMTP_TX_DOT)
		return;
	session_move(s, SESSION_DECIDES);
	session_tx_wait(s);
	pace_set_turn(&s->pace, PACE_RECEIVER, worker_now_ms(s->home->worker));
	deadline_cancel(&s->deadline); /* the hooks have time limits of their own */
	if (s->onward)
		onward_expect(s->onward, 0);
	judge(s);
}

/* Toward the receiver */

static void say_data(struct session *s)
{
	struct filtered *f = s->filtered;

	f->phase = FILTERED_SAYS_DATA;
	smtp_reply_begin(&f->reader, f->line, sizeof f->line);
	onward_write(s->onward, "DATA\r\n", strlen("DATA\r\n")); /* a failure comes as on_lost */
	onward_expect(s->onward, s->home->conf->outward.data_ms);
}

/* deliver: queue. The message is moved out first, because the answer may come at once, and end the transaction. */
static void store(struct session *s)
{
	struct filtered *f = s->filtered;
	struct message judged = f->message;

	body_share_resize(&f->share, 0);
	f->message = (struct message){ 0 };
	f->phase = FILTERED_SENT;
	session_store_judged(s, &judged);
	message_free(&judged);
}

void session_held_judged(struct session *s, enum filter_verdict verdict, struct smtp_span reply)
{
	switch (verdict) {
	case FILTER_REFUSES: session_decide(s, reply); break;
	case FILTER_DISCARDS: decide(s, "250 2.0.0 Ok\r\n"); break;
	case FILTER_CONTINUES:
		if (s->store)
			store(s);
		else
			say_data(s);
		break;
	}
}

void session_held_go_on(struct session *s)
{
	char piece[PIECE_MAX];
	size_t len;

	if (phase_of(s) != FILTERED_SENDS)
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
static void on_reply_to_data(struct session *s, const struct smtp_reply_line *line)
{
	if (line->code / 100 == 3) {
		s->filtered->phase = FILTERED_SENDS;
		session_held_go_on(s);
	} else if (line->code >= 400) {
		session_decide(s, line->wire);
	} else {
		session_lose_receiver(s, SMTP_OWN_BACKEND_BROKEN);
	}
}

static void read_reply_to_data(struct session *s, const char *in, size_t len)
{
	struct smtp_reply_line line;
	size_t used = 0, taken;
	int r = SMTP_REPLY_MORE;

	for (; r == SMTP_REPLY_MORE; used += taken)
		r = smtp_reply_read(&s->filtered->reader, in + used, len - used, &taken, &line);
	if (r < 0)
		session_lose_receiver(s, SMTP_OWN_BACKEND_BROKEN);
	else if (r == SMTP_REPLY_DONE)
		on_reply_to_data(s, &line);
}

size_t session_held_read(struct session *s, const char *in, size_t len)
{
	switch (phase_of(s)) {
	case FILTERED_SAYS_DATA: read_reply_to_data(s, in, len); return len;
	case FILTERED_JUDGED:
	case FILTERED_SENDS: /* it does not wait for the message: whatever it says, it has not got it */
		session_lose_receiver(s, SMTP_OWN_BACKEND_LOST);
		return len;
	default: return 0;
	}
}
