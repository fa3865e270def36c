/* transaction_server.c: the server's direction. A complete reply answers the first command in the queue, and has
 * its effect on the transaction. */
#include <string.h>

#include "proto/error.h"
#include "smtp/transaction.h"
#include "smtp/transaction_inside.h"

/* The reply to a command of the transaction that the client is in. */
static bool is_current(const struct smtp_tx *t, const struct smtp_tx_turn *turn)
{
	return turn->tx != 0 && turn->tx == smtp_tx_mark(t);
}

/* RFC 5321 4.1.4: a greeting or RSET ends an open transaction. Nothing was read after it, so it can be no other. */
static void on_reset(struct smtp_tx *t, unsigned code)
{
	if (code / 100 == 2)
		smtp_tx_move(t, SMTP_TX_NONE);
}

static void on_greeting(struct smtp_tx *t, const struct smtp_tx_turn *turn, unsigned code)
{
	if (code / 100 == 2)
		t->greeting = turn->turn;
	on_reset(t, code);
}

/* Postfix XCLIENT_README: the session begins again, after its banner. */
static void on_xclient(struct smtp_tx *t, unsigned code)
{
	if (code / 100 == 2)
		t->greeting = 0;
	on_reset(t, code);
}

static void on_smtp_tx_mail(struct smtp_tx *t, const struct smtp_tx_turn *turn, unsigned code)
{
	bool accepted = code / 100 == 2;
	if (turn->tx == 0 && accepted) /* inside a transaction, or after one that failed meanwhile */
		smtp_tx_open(t);
	if (turn->tx != 0 && !is_current(t, turn))
		return;
	if (turn->tx != 0 || accepted)
		t->mail_code = (uint16_t)code;
	if (turn->tx != 0 && !accepted && t->state == SMTP_TX_MAIL)
		smtp_tx_move(t, SMTP_TX_NONE);
}

/* Accepted outside of any transaction that we know of. */
static void note_stray(struct smtp_tx *t, const struct smtp_tx_turn *turn, unsigned code)
{
	t->opaque |= turn->tx == 0 && code / 100 == 2;
}

static void on_smtp_tx_rcpt(struct smtp_tx *t, const struct smtp_tx_turn *turn, unsigned code)
{
	note_stray(t, turn, code);
	t->rcpts_accepted += is_current(t, turn) && code / 100 == 2;
	t->rcpts_refused += is_current(t, turn) && code / 100 != 2;
}

/* RFC 5321 4.1.1.4. A server that takes content without a transaction that we know of has one that we do not. */
static void on_smtp_tx_data(struct smtp_tx *t, unsigned code)
{
	bool goes_on = code / 100 == 3;
	bool is_open = t->state == SMTP_TX_MAIL || t->state == SMTP_TX_DATA || t->state == SMTP_TX_CONTENT;
	if (goes_on) {
		t->mode = SMTP_TX_DATA_CONTENT;
		smtp_data_begin(&t->data, t->rules.data_refuse);
		t->opaque |= !is_open;
	}
	if (goes_on && is_open)
		smtp_tx_move(t, SMTP_TX_CONTENT);
	if (!goes_on && t->state == SMTP_TX_DATA)
		smtp_tx_move(t, t->mail_code / 100 == 2 ? SMTP_TX_MAIL : SMTP_TX_NONE);
}

static void on_bdat(struct smtp_tx *t, const struct smtp_tx_turn *turn, unsigned code)
{
	bool no_chunk_was_taken = code / 100 != 2 && t->rcpts_accepted == 0;
	note_stray(t, turn, code);
	if (is_current(t, turn) && no_chunk_was_taken && t->state == SMTP_TX_CONTENT && t->mode == SMTP_TX_COMMANDS)
		smtp_tx_move(t, t->mail_code / 100 == 2 ? SMTP_TX_MAIL : SMTP_TX_NONE);
}

/* A server may refuse the last chunk before all of it has come. */
static void on_smtp_tx_message(struct smtp_tx *t, const struct smtp_tx_turn *turn, unsigned code)
{
	t->done += turn->tx != 0;
	t->accepted += turn->tx != 0 && code / 100 == 2;
	note_stray(t, turn, code);
	if (!is_current(t, turn))
		return;
	enum smtp_tx_early answer = smtp_tx_ends(t, turn->turn, code) ? SMTP_TX_ANSWERED_OVER : SMTP_TX_ANSWERED_OPEN;
	if (t->state == SMTP_TX_DOT)
		smtp_tx_end_message(t, answer);
	else
		t->early = (uint8_t)answer;
}

static void take_effect(struct smtp_tx *t, const struct smtp_tx_turn *turn, unsigned code)
{
	const bool is_accepted = code / 100 == 2;
	switch (turn->turn) {
	case SMTP_VERB_EHLO:
	case SMTP_VERB_HELO: on_greeting(t, turn, code); break;
	case SMTP_VERB_MAIL: on_smtp_tx_mail(t, turn, code); break;
	case SMTP_VERB_RCPT: on_smtp_tx_rcpt(t, turn, code); break;
	case SMTP_VERB_DATA: on_smtp_tx_data(t, code); break;
	case SMTP_VERB_BDAT: on_bdat(t, turn, code); break;
	case SMTP_VERB_XCLIENT: on_xclient(t, code); break;
	case SMTP_VERB_RSET: on_reset(t, code); break;
	case SMTP_VERB_AUTH:
	case SMTP_TURN_AUTH_LINE:
		t->mode = code / 100 == 3 ? SMTP_TX_AUTH : SMTP_TX_COMMANDS;
		t->authenticated |= is_accepted;
		break;
	/* The server accepted a command that CSSL does not know. No successor can repeat its effect. */
	case SMTP_VERB_UNKNOWN: t->authenticated |= is_accepted; break;
	case SMTP_VERB_STARTTLS: t->tls |= is_accepted; break;
	case SMTP_VERB_QUIT: t->closing = 1; break;
	case SMTP_TURN_DOT:
	case SMTP_TURN_BDAT_LAST: on_smtp_tx_message(t, turn, code); break;
	default: break;
	}
}

static struct smtp_tx_turn smtp_tx_dequeue(struct smtp_tx *t)
{
	struct smtp_tx_turn turn = t->queue[t->queue_from];
	t->queue_from = (uint16_t)((t->queue_from + 1) % SMTP_TX_QUEUE_MAX);
	t->queue_len--;
	return turn;
}

/* Behind a 3xx to a command that CSSL does not know, the server may take the next bytes for something else than it. */
static bool is_possible(unsigned turn, const struct smtp_reply_line *line)
{
	if (turn == SMTP_TURN_NOTHING)
		return line->code == 421;
	return turn != SMTP_VERB_UNKNOWN || line->code / 100 != 3;
}

static void on_reply_line(struct smtp_tx *t, int result, struct smtp_server_event *out)
{
	struct smtp_tx_turn turn = { SMTP_TURN_NOTHING, 0, 0 };
	if (t->queue_len > 0)
		turn = t->queue[t->queue_from];
	if (result < 0 || !is_possible(turn.turn, &out->line)) {
		out->kind = SMTP_SERVER_BAD;
		out->error = result < 0 ? result : CSSL_E_STATE;
		return;
	}
	out->kind = SMTP_SERVER_LINE;
	out->turn = turn.turn;
	if (t->memory.ehlo && turn.turn == SMTP_VERB_EHLO && out->line.code / 100 == 2)
		smtp_ehlo_note(t->memory.ehlo, &out->line);
	if (result == SMTP_REPLY_MORE)
		return;
	t->closing |= out->line.code == 421;
	if (t->queue_len > 0)
		smtp_tx_dequeue(t);
	if (t->queue_len == 0) /* all that waited for a reply waited for this one */
		t->waits = 0;
	if (is_current(t, &turn) && t->classes_len < SMTP_TX_CLASSES_MAX)
		t->classes[t->classes_len++] = (char)('0' + out->line.code / 100);
	take_effect(t, &turn, out->line.code);
}

void smtp_tx_server(struct smtp_tx *t, const char *in, size_t len, size_t *taken, struct smtp_server_event *out)
{
	memset(out, 0, sizeof *out);
	*taken = 0;
	if (t->server.lines == 0 && t->queue_len > 0 && t->queue[t->queue_from].own) {
		struct smtp_tx_turn turn = smtp_tx_dequeue(t);
		out->kind = SMTP_SERVER_OWN;
		out->turn = turn.turn;
		out->own = (enum smtp_own)turn.own;
		return;
	}
	const int result = smtp_reply_read(&t->server, in, len, taken, &out->line);
	if (result != SMTP_REPLY_NONE)
		on_reply_line(t, result, out);
}

void smtp_tx_drop_reply(struct smtp_tx *t)
{
	smtp_reply_drop(&t->server);
}
