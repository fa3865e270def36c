/* transaction_client.c: the client's direction. What a byte is depends on the mode: a command, a line of an AUTH
 * exchange, content up to its dot, or a chunk. Behind DATA, AUTH and STARTTLS the server's reply decides on the mode:
 * the client's bytes wait for it. */
#include <assert.h>
#include <string.h>

#include "smtp/transaction.h"
#include "smtp/transaction_inside.h"

/* After these commands, nothing is read before their reply. It decides how the next bytes are read, or whether a
 * transaction is open; or nobody knows what it decides. */
static int smtp_verb_decides(enum smtp_verb verb)
{
	static const unsigned verbs = 1u << SMTP_VERB_DATA | 1u << SMTP_VERB_AUTH | 1u << SMTP_VERB_STARTTLS |
				      1u << SMTP_VERB_EHLO | 1u << SMTP_VERB_HELO | 1u << SMTP_VERB_RSET |
				      1u << SMTP_VERB_XCLIENT | 1u << SMTP_VERB_UNKNOWN;
	return verbs >> verb & 1;
}

/* The server decides whether a MAIL inside a transaction begins a new one (RFC 5321 4.1.4). */
static void pass_mail(struct smtp_tx *t)
{
	if (t->state == SMTP_TX_NONE || t->state == SMTP_TX_DOT)
		smtp_tx_open(t);
	else
		t->waits = 1;
}

static void begin_chunk(struct smtp_tx *t, const struct smtp_command *c, enum smtp_tx_mode mode)
{
	smtp_bdat_begin(&t->bdat, c->chunk_len, c->chunk_is_last); /* a chunk out of sequence is followed, too */
	t->mode = (uint8_t)mode;
}

/* The last chunk of a transaction is complete when its bytes are, which may be at once. */
static void end_chunk(struct smtp_tx *t)
{
	if (smtp_bdat_is_inside(&t->bdat))
		return;
	bool passed = t->mode == SMTP_TX_CHUNK;
	t->mode = SMTP_TX_COMMANDS;
	if (!passed || t->state != SMTP_TX_CONTENT)
		return;
	t->message_len = t->bdat.len;
	if (t->bdat.state != SMTP_BDAT_OVER)
		return;
	smtp_tx_move(t, SMTP_TX_DOT);
	if (t->early == SMTP_TX_NOT_ANSWERED)
		t->waits = 1; /* the reply says whether the transaction is over */
	else
		smtp_tx_end_message(t, t->early);
}

static void pass_bdat(struct smtp_tx *t, const struct smtp_command *c)
{
	if (t->state == SMTP_TX_MAIL || t->state == SMTP_TX_CONTENT)
		smtp_tx_move(t, SMTP_TX_CONTENT);
	begin_chunk(t, c, SMTP_TX_CHUNK);
}

static void take_effect(struct smtp_tx *t, const struct smtp_command *c)
{
	switch (c->verb) {
	case SMTP_VERB_EHLO:
	case SMTP_VERB_HELO: smtp_span_copy(c->argument, t->name, sizeof t->name); break;
	case SMTP_VERB_MAIL: pass_mail(t); break;
	case SMTP_VERB_RCPT: t->rcpts += t->state == SMTP_TX_MAIL; break;
	case SMTP_VERB_DATA:
		if (t->state == SMTP_TX_MAIL)
			smtp_tx_move(t, SMTP_TX_DATA);
		break;
	case SMTP_VERB_BDAT: pass_bdat(t, c); break;
	default: break;
	}
}

/* The mark for @verb: the commands of an open transaction have its number. */
static uint8_t smtp_tx_mark_of(const struct smtp_tx *t, enum smtp_verb verb, uint64_t number_before)
{
	if (verb == SMTP_VERB_MAIL)
		return t->number != number_before ? smtp_tx_mark(t) : 0;
	bool own = verb == SMTP_VERB_RCPT || verb == SMTP_VERB_DATA || verb == SMTP_VERB_BDAT;
	return own && t->state != SMTP_TX_NONE && t->state != SMTP_TX_DOT ? smtp_tx_mark(t) : 0;
}

void smtp_tx_pass(struct smtp_tx *t, const struct smtp_client_event *event)
{
	enum smtp_verb verb = event->command.verb;
	uint64_t number_before = t->number;
	assert(t->pending && event->refusal != SMTP_OWN_LINE_TOO_LONG && !(event->refusal && verb == SMTP_VERB_BDAT));
	t->pending = 0;
	take_effect(t, &event->command);
	unsigned turn = verb == SMTP_VERB_BDAT && event->command.chunk_is_last ? SMTP_TURN_BDAT_LAST : (unsigned)verb;
	smtp_tx_enqueue(t, turn, SMTP_OWN_NONE, smtp_tx_mark_of(t, verb, number_before));
	if (smtp_verb_decides(verb) || t->rules.one_by_one)
		t->waits = 1;
	if (verb == SMTP_VERB_BDAT)
		end_chunk(t);
}

void smtp_tx_answer(struct smtp_tx *t, const struct smtp_client_event *event, enum smtp_own own)
{
	const struct smtp_command *c = &event->command;
	assert(t->pending && own);
	t->pending = 0;
	smtp_tx_enqueue(t, c->verb, own, 0);
	if (c->verb != SMTP_VERB_BDAT || event->refusal)
		return;
	struct smtp_bdat before = t->bdat; /* a discarded chunk is not a part of the message */
	begin_chunk(t, c, SMTP_TX_CHUNK_DISCARDED);
	uint64_t left = t->bdat.left;
	t->bdat = before;
	t->bdat.left = left;
	end_chunk(t);
}

/* The answer is the last one in the queue. So no reply of the server lets the client go on. */
void smtp_tx_stop(struct smtp_tx *t)
{
	t->waits = 1;
}

static bool is_held(const struct smtp_tx *t, const struct smtp_command *c)
{
	const unsigned chunk = SMTP_TX_HOLDS_CHUNKS | (c->chunk_is_last ? SMTP_TX_HOLDS_LAST : 0u);

	if (c->verb == SMTP_VERB_BDAT)
		return t->holds & chunk && t->queue_len > 0;
	return c->verb == SMTP_VERB_MAIL && t->holds & SMTP_TX_HOLDS_MAIL && t->state == SMTP_TX_DOT;
}

/* 0: it is held, and is to be read again. */
static bool read_command(struct smtp_tx *t, const struct smtp_line *line, struct smtp_client_event *out)
{
	out->refusal = smtp_command_of_line(line->text, line->flaws, t->rules.parse, &out->command);
	if (is_held(t, &out->command))
		return false;
	out->kind = SMTP_CLIENT_COMMAND;
	t->pending = 1;
	return true;
}

static void read_line(struct smtp_tx *t, const char *in, size_t len, size_t *taken, struct smtp_client_event *out)
{
	const struct smtp_line_reader before = t->client;
	struct smtp_line line;
	if (t->waits || t->queue_len == SMTP_TX_QUEUE_MAX) {
		out->kind = SMTP_CLIENT_WAIT;
		return;
	}
	if (smtp_line_read(&t->client, in, len, taken, &line) != SMTP_LINE)
		return;
	out->wire = line.wire;
	out->flaws = line.flaws;
	if (t->mode == SMTP_TX_COMMANDS) {
		if (read_command(t, &line, out))
			return;
		t->client = before; /* a part that came earlier is still in its buffer */
		*taken = 0;
		out->wire.len = out->flaws = 0;
		out->kind = SMTP_CLIENT_WAIT;
		return;
	}
	out->kind = SMTP_CLIENT_AUTH_LINE;
	smtp_tx_enqueue(t, SMTP_TURN_AUTH_LINE, SMTP_OWN_NONE, 0);
	t->waits = 1;
}

/* @held bytes that were held back, and @in behind them, without those that are held back now. */
static struct smtp_span smtp_tx_release(struct smtp_tx *t, size_t held, struct smtp_span in)
{
	if (held > 0) {
		memcpy(t->head, ".\r", held);
		t->head[held] = in.at[0];
		in = (struct smtp_span){ t->head, held + 1 };
	}
	in.len -= t->data.held;
	return in;
}

static void read_content(struct smtp_tx *t, const char *in, size_t len, size_t *taken, struct smtp_client_event *out)
{
	const size_t held = t->data.held;
	static const enum smtp_client_kind kinds[] = {
		[SMTP_DATA_MORE] = SMTP_CLIENT_CONTENT,
		[SMTP_DATA_END] = SMTP_CLIENT_CONTENT_END,
		[SMTP_DATA_BAD] = SMTP_CLIENT_FLAW,
	};
	if (t->queue_len == SMTP_TX_QUEUE_MAX) {
		out->kind = SMTP_CLIENT_WAIT;
		return;
	}
	out->kind = kinds[smtp_data_follow(&t->data, in, held ? 1 : len, taken)];
	out->wire = smtp_tx_release(t, held, (struct smtp_span){ in, *taken });
	t->message_len = smtp_data_message_len(&t->data);
	if (out->kind != SMTP_CLIENT_CONTENT_END)
		return;
	t->mode = SMTP_TX_COMMANDS;
	t->waits |= t->rules.one_by_one;
	smtp_tx_enqueue(t, SMTP_TURN_DOT, SMTP_OWN_NONE, t->state == SMTP_TX_CONTENT ? smtp_tx_mark(t) : 0);
	if (t->state == SMTP_TX_CONTENT)
		smtp_tx_move(t, SMTP_TX_DOT);
}

static void read_chunk(struct smtp_tx *t, const char *in, size_t len, size_t *taken, struct smtp_client_event *out)
{
	out->discard = t->mode == SMTP_TX_CHUNK_DISCARDED;
	*taken = smtp_bdat_follow(&t->bdat, len);
	out->wire = (struct smtp_span){ in, *taken };
	out->kind = smtp_bdat_is_inside(&t->bdat) ? SMTP_CLIENT_CONTENT : SMTP_CLIENT_CONTENT_END;
	end_chunk(t);
}

static void (*const reads[])(
	struct smtp_tx *t, const char *in, size_t len, size_t *taken, struct smtp_client_event *out) = {
	[SMTP_TX_COMMANDS] = read_line,
	[SMTP_TX_AUTH] = read_line,
	[SMTP_TX_DATA_CONTENT] = read_content,
	[SMTP_TX_CHUNK] = read_chunk,
	[SMTP_TX_CHUNK_DISCARDED] = read_chunk,
};

void smtp_tx_client(struct smtp_tx *t, const char *in, size_t len, size_t *taken, struct smtp_client_event *out)
{
	assert(!t->pending);
	*taken = 0;
	out->kind = SMTP_CLIENT_MORE;
	out->wire = (struct smtp_span){ in, 0 };
	out->refusal = SMTP_OWN_NONE;
	out->flaws = out->discard = 0;
	if (len > 0)
		reads[t->mode](t, in, len, taken, out);
}
