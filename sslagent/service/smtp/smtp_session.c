/* smtp_session.c: passes the bytes between a client and a server in both directions. */
#include "sslagent/service/smtp/smtp_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "proto/error.h"
#include "smtp/reply_write.h"
#include "sslagent/service/service.h"

/* Commands that a client in TLS may not send to a server that trusts us. */
static const uint8_t refused[SMTP_VERB_COUNT] = {
	[SMTP_VERB_STARTTLS] = SMTP_OWN_TLS_ALREADY,
	[SMTP_VERB_XCLIENT] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_XFORWARD] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_XCSSLTX] = SMTP_OWN_NOT_TRUSTED,
	[SMTP_VERB_CONNECT] = SMTP_OWN_FOREIGN_PROTOCOL,
	[SMTP_VERB_GET] = SMTP_OWN_FOREIGN_PROTOCOL,
	[SMTP_VERB_POST] = SMTP_OWN_FOREIGN_PROTOCOL,
};

void smtp_session_init(struct smtp_session *s, const struct conf_listener *listener)
{
	const uint32_t hidden = conf_smtp_hidden(&listener->smtp);

	s->listener = listener;
	s->rules = (struct smtp_relay_rules){ .name = listener->smtp.hostname,
		.refused = refused,
		.hidden = hidden,
		.refusals_max = listener->smtp.refusals_max,
		.data_refuse = SMTP_DATA_SMUGGLING,
		.parse = smtp_relay_parse(hidden) };
	s->note.banner = conf_has_preamble(listener) ? SMTP_BANNER_HAD : SMTP_BANNER_OWED;
}

static void drop_relay(struct smtp_session *s)
{
	if (s->relay) {
		s->refusals = s->relay->refusals;
		smtp_relay_wipe(s->relay);
	}
	free(s->relay);
	s->relay = NULL;
}

/* Repeated bytes stop where the server could take a message for complete before its replies were compared. A named mail
 * begins only when the one before is answered, so that the note needs only one name. And it ends only when the client
 * has been told all replies before: after the loss of this owner, the answer what became of it is the next reply. */
static void smtp_session_hold(struct smtp_session *s)
{
	const unsigned repeated = s->past ? SMTP_TX_HOLDS_CHUNKS : 0;
	const unsigned named = s->note.tx.record ? SMTP_TX_HOLDS_MAIL | SMTP_TX_HOLDS_LAST : 0;

	if (s->relay)
		smtp_tx_hold(&s->relay->tx, repeated | named);
}

static void drop_past(struct smtp_session *s)
{
	free(s->past);
	s->past = NULL;
	smtp_session_hold(s);
}

/* It may have held a password. */
static void drop_buffer(struct smtp_buffer *b)
{
	if (b->data)
		sodium_memzero(b->data, b->cap);
	free(b->data);
	*b = (struct smtp_buffer){ 0 };
}

void smtp_session_clear(struct smtp_session *s)
{
	drop_relay(s);
	drop_past(s);
	smtp_pieces_clear(&s->waiting);
	smtp_pieces_clear(&s->answers);
	drop_buffer(&s->out);
	drop_buffer(&s->reply);
}

void smtp_session_use(struct smtp_session *s, size_t len)
{
	smtp_pieces_use(&s->waiting, len);
	s->taken += len;
}

/* --- the end --- */

/* The waiting bytes are dropped. */
static void smtp_session_over(struct smtp_session *s, enum smtp_own why)
{
	s->stage = SMTP_OVER;
	s->over_for = (uint8_t)why;
	s->doubt = SMTP_OWN_NONE;
	s->reply.len = s->out.len = 0;
	s->last = s->relay ? (uint8_t)s->relay->tx.state : SMTP_TX_NONE;
	drop_relay(s);
	drop_past(s);
	smtp_session_use(s, s->waiting.len);
}

void smtp_session_end(struct smtp_session *s, enum smtp_own why)
{
	uint8_t reply[SMTP_REPLY_LINE_MAX];
	struct wire_writer w = wire_writer(reply, sizeof reply);

	if (s->stage == SMTP_OVER)
		return;
	smtp_own_write(&w, why);
	smtp_session_say(s, (const char *)reply, (size_t)wire_writer_len(&w));
	smtp_end_count(why);
	smtp_session_over(s, why);
}

/* --- for the client --- */

/* Remembers the classes of replies up to the last one that is not positive. */
static void remember_class(struct smtp_session *s, char class)
{
	struct smtp_note *note = &s->note;

	if (class == SMTP_CLASS_POSITIVE)
		return;
	if (s->replies >= SMTP_CLASSES_MAX) {
		note->replies = SMTP_REPLIES_COUNTLESS;
		return;
	}
	while (note->classes_len < s->replies)
		note->classes[note->classes_len++] = SMTP_CLASS_POSITIVE;
	note->classes[note->classes_len++] = class;
}

void smtp_session_say(struct smtp_session *s, const char *reply, size_t len)
{
	if (smtp_pieces_add(&s->answers, 0, 0, reply, len) < 0)
		s->memory = SMTP_MEMORY_WANTED;
	remember_class(s, smtp_class_of(reply[0]));
	s->replies++;
}

/* The client has this reply already. Is the new one of the same class? */
static void drop_repeated(struct smtp_session *s)
{
	struct smtp_past *p = s->past;
	const uint32_t at = p->classes_at + p->dropped;
	const char had = at < p->note.classes_len ? p->note.classes[at] : SMTP_CLASS_POSITIVE;

	if (smtp_class_of((char)s->reply.data[0]) != had)
		s->doubt = SMTP_OWN_BACKEND_CHANGED;
	if (++p->dropped == p->replies)
		drop_past(s);
}

void smtp_session_told(const struct smtp_session *s, uint8_t out[static SMTP_TOLD_LEN])
{
	struct smtp_ehlo shown = s->relay->offers;

	smtp_ehlo_keep(&shown, SMTP_CAP_ALL & ~s->rules.hidden);
	smtp_told(&shown, out);
}

static void note_greeting(struct smtp_session *s)
{
	s->note.greeting = s->relay->turn;
	s->note.offers = 0;
	s->note.entry[0] = 0;
	smtp_opening_note(s);
	smtp_span_copy(smtp_span_of(s->relay->tx.name), s->note.client, sizeof s->note.client);
	smtp_session_told(s, s->note.told);
}

static void smtp_session_on_reply(struct smtp_session *s)
{
	const unsigned turn = s->relay->turn;

	/* replies to what the agent asked for itself; the client sees none of them */
	if (s->stage == SMTP_OPENING && turn != SMTP_TURN_BANNER && turn != SMTP_TURN_NOTHING) {
		smtp_opening_reply(s);
		return;
	}
	if (s->stage == SMTP_TALKING && (turn == SMTP_VERB_EHLO || turn == SMTP_VERB_HELO) && s->reply.data[0] == '2')
		note_greeting(s);
	s->note.authenticated |= s->relay->tx.authenticated;
	/* of a repeated command: the owner before gave the client its reply */
	if (s->stage == SMTP_TALKING && s->past && turn != SMTP_TURN_NOTHING)
		drop_repeated(s);
	else
		smtp_session_say(s, (const char *)s->reply.data, s->reply.len);
}

/* Without realloc(), which leaves a copy of the old bytes in memory. */
static int smtp_buffer_grow(struct smtp_buffer *b, size_t needed)
{
	struct smtp_buffer bigger = { .data = malloc(needed), .len = b->len, .cap = needed };

	if (!bigger.data)
		return CSSL_E_NO_MEMORY;
	if (b->len)
		memcpy(bigger.data, b->data, b->len);
	drop_buffer(b);
	*b = bigger;
	return 0;
}

static void smtp_session_append(struct smtp_session *s, struct smtp_buffer *to, const char *words, size_t len)
{
	if (to->len + len > to->cap && smtp_buffer_grow(to, to->len + len) < 0) {
		s->memory = SMTP_MEMORY_WANTED;
		return;
	}
	memcpy(to->data + to->len, words, len);
	to->len += len;
}

/* The last line decides. So the client sees its code in all of them, whichever line it reads. */
static void unify_codes(struct smtp_session *s, const char *code)
{
	for (size_t at = 0; at + 3 <= s->reply.len; at++)
		if (at == 0 || s->reply.data[at - 1] == '\n')
			memcpy(s->reply.data + at, code, 3);
}

/* A reply becomes one piece, so the client never has only a part of it. */
static void to_client(void *ctx, const char *words, size_t len, enum smtp_relay_words what)
{
	struct smtp_session *s = ctx;

	if (s->relay->state == SMTP_RELAY_OVER) { /* in place of the current reply */
		smtp_session_say(s, words, len);
		s->reply.len = 0;
		return;
	}
	smtp_session_append(s, &s->reply, words, len);
	if (what == SMTP_WORDS_PART)
		return;
	if (s->reply.len > len)
		unify_codes(s, words);
	if (s->reply.len)
		smtp_session_on_reply(s);
	s->reply.len = 0;
}

/* --- for the server --- */

static void to_server(void *ctx, const char *words, size_t len)
{
	struct smtp_session *s = ctx;

	smtp_session_append(s, &s->out, words, len);
}

static int smtp_session_name(void *ctx, size_t at, struct smtp_tx_name *out)
{
	struct smtp_session *s = ctx;
	const struct smtp_mark tx = { .record = s->here.record, .at = (uint16_t)(s->here.at + at) };

	out->number = s->id[0] && s->note.entry[0] ? smtp_mark_number(tx, s->epoch) : 0;
	if (out->number == 0)
		return 0;
	memcpy(out->id, s->id, sizeof out->id);
	s->note.tx = tx;
	s->note.end_reply = 0;
	smtp_session_hold(s);
	return 1;
}

/* How many replies the client has, or will have, before the one at @place. It has some of those that are repeated. */
static uint32_t replies_before(const struct smtp_session *s, uint32_t place)
{
	return s->replies - (s->past ? s->past->replies - s->past->dropped : 0) + place;
}

/* A successor without the client's bytes has to know which reply is the one to the end of the mail. After DATA this is
 * known before the content has come. */
static void note_end(struct smtp_session *s)
{
	const struct smtp_tx *t = &s->relay->tx;

	for (uint32_t i = 0; s->note.tx.record && i < t->queue_len; i++) {
		const struct smtp_tx_turn *turn = &t->queue[(t->queue_from + i) % SMTP_TX_QUEUE_MAX];
		if (turn->tx && turn->turn == SMTP_VERB_DATA)
			s->note.end_reply = replies_before(s, i + 1);
		else if (turn->tx && (turn->turn == SMTP_TURN_DOT || turn->turn == SMTP_TURN_BDAT_LAST))
			s->note.end_reply = replies_before(s, i);
	}
}

/* While a reply waits for the client, none of its bytes are used. So the memory for a client that does not read is
 * bounded, and the note never has a later mail before the client has got the replies to an earlier one. */
static int smtp_session_has_room(const void *ctx)
{
	const struct smtp_session *s = ctx;

	return !s->answers.first;
}

static const struct smtp_relay_ops relay_ops = {
	.to_client = to_client, .to_server = to_server, .name = smtp_session_name, .has_room = smtp_session_has_room
};

/* --- both --- */

/* An idle session has no relay, because the note has everything. 0 or CSSL_E_NO_MEMORY. */
static int smtp_session_wake(struct smtp_session *s)
{
	const struct smtp_relay_past past = { .greeting = (enum smtp_verb)s->note.greeting,
		.client = s->note.client,
		.offers = s->note.offers,
		.authenticated = s->note.authenticated,
		.refusals = s->refusals };

	if (s->relay || s->stage != SMTP_TALKING)
		return 0;
	s->relay = malloc(sizeof *s->relay);
	if (!s->relay)
		return CSSL_E_NO_MEMORY;
	smtp_relay_continue(s->relay, &s->rules, &relay_ops, s, &past);
	return 0;
}

static size_t smtp_session_pass(struct smtp_session *s, uint64_t record, size_t at, const uint8_t *data, size_t len)
{
	s->here = (struct smtp_mark){ .record = record, .at = (uint16_t)at };
	const size_t used = smtp_relay_client(s->relay, (const char *)data, len);
	note_end(s);
	return used;
}

/* Must the command that was passed on last be the last one of its group (RFC 2920 3.1)? */
static bool ends_group(const struct smtp_tx *t)
{
	const unsigned turn = t->queue[(t->queue_from + t->queue_len - 1u) % SMTP_TX_QUEUE_MAX].turn;

	return turn < SMTP_VERB_COUNT && smtp_verb_grouping((enum smtp_verb)turn) == GROUP_LAST;
}

/* Repeated commands come without the client's pauses. But a server without PIPELINING needs them, and every server may
 * demand them behind a command that ends a group (Postfix: smtpd_forbid_unauth_pipelining). */
static bool must_pause(const struct smtp_session *s)
{
	const struct smtp_relay *r = s->relay;

	return s->past && r->tx.queue_len && (!smtp_ehlo_has(&r->offers, SMTP_CAP_PIPELINING) || ends_group(&r->tx));
}

static bool may_feed(const struct smtp_session *s)
{
	return s->stage == SMTP_TALKING && s->waiting.first && s->relay->state == SMTP_RELAY_OPEN &&
	       smtp_session_has_room(s) && !must_pause(s);
}

/* Pass on all bytes that may go on now. */
static void smtp_session_feed(struct smtp_session *s)
{
	size_t used = 1;

	while (used && may_feed(s)) {
		const struct smtp_piece *p = s->waiting.first;
		used = smtp_session_pass(s, p->record, p->at + p->used, p->data + p->used, p->len - p->used);
		smtp_session_use(s, used);
	}
}

static bool is_next_step(const struct smtp_session *s)
{
	return s->stage == SMTP_OPENING && !s->doubt && s->relay->state == SMTP_RELAY_OPEN &&
	       s->relay->tx.queue_len == 0;
}

/* Input came from one side: do what follows from it. */
static void smtp_session_look(struct smtp_session *s)
{
	smtp_session_feed(s);
	if (is_next_step(s))
		smtp_opening_step(s);
	if (s->memory == SMTP_MEMORY_WANTED)
		s->doubt = SMTP_OWN_OVERLOADED;
	if (s->doubt) {
		smtp_session_end(s, (enum smtp_own)s->doubt);
		return;
	}
	if (!s->relay || s->relay->state != SMTP_RELAY_OVER)
		return;
	const enum smtp_own why = s->relay->over_for;
	if (why && s->relay->within) { /* the relay is silent in the middle of a reply, and the client has got nothing
					  of it */
		smtp_session_end(s, why);
		return;
	}
	if (why)
		smtp_end_count(why);
	smtp_session_over(s, why);
}

void smtp_session_talk(struct smtp_session *s)
{
	s->stage = SMTP_TALKING;
	smtp_opening_note(s);
	if (s->past && s->past->dropped == s->past->replies)
		drop_past(s);
	smtp_session_hold(s);
	smtp_session_feed(s);
}

void smtp_session_client(struct smtp_session *s, const uint8_t *data, size_t len)
{
	size_t used = 0;

	if (s->stage == SMTP_OVER) {
		s->taken += len;
		return;
	}
	if (smtp_session_wake(s) < 0) {
		smtp_session_end(s, SMTP_OWN_OVERLOADED);
		s->taken += len;
		return;
	}
	if (s->stage == SMTP_TALKING && !s->waiting.first && smtp_session_has_room(s) && !must_pause(s)) {
		used = smtp_session_pass(s, s->record, 0, data, len);
		s->taken += used;
	}
	if (used < len && smtp_pieces_add(&s->waiting, s->record, used, data + used, len - used) < 0) {
		s->memory = SMTP_MEMORY_WANTED;
		s->taken += len - used;
	}
	smtp_session_look(s);
}

void service_backend_says(struct service *of, const uint8_t *data, size_t len)
{
	struct smtp_session *s = of->state;

	if (smtp_session_wake(s) < 0)
		smtp_session_end(s, SMTP_OWN_OVERLOADED);
	if (!s->relay)
		return;
	smtp_relay_server(s->relay, (const char *)data, len);
	smtp_session_look(s);
}

void service_backend_gone(struct service *of)
{
	struct smtp_session *s = of->state;

	if (s->relay)
		smtp_relay_server_ended(s->relay);
	else
		smtp_session_end(s, s->stage == SMTP_TALKING ? SMTP_OWN_BACKEND_LOST : SMTP_OWN_BACKEND_UNREACHABLE);
	smtp_session_look(s);
}

/* --- a server --- */

bool service_wants_backend(const struct service *of)
{
	const struct smtp_session *s = of->state;

	return s->stage == SMTP_IDLE && (s->waiting.first || s->past || s->note.banner == SMTP_BANNER_OWED);
}

/* Only a reply to EHLO says whether the server grants XCLIENT. So an agent greets for a client that does not say EHLO.
 */
static enum smtp_greeter first_greeter(const struct smtp_session *s)
{
	if (s->listener->smtp.xclient == CONF_ON && s->note.greeting != SMTP_VERB_EHLO)
		return SMTP_AGENT_GREETS;
	return s->note.greeting == SMTP_VERB_UNKNOWN ? SMTP_NOBODY_GREETS : SMTP_CLIENT_GREETS;
}

const char *smtp_session_greeting(struct smtp_session *s, enum smtp_greeter greeter)
{
	const int by_helo = greeter == SMTP_CLIENT_GREETS && s->note.greeting != SMTP_VERB_EHLO;

	if (greeter == SMTP_NOBODY_GREETS)
		return NULL;
	snprintf(s->greeting, sizeof s->greeting, "%s %s\r\n", by_helo ? "HELO" : "EHLO",
		greeter == SMTP_AGENT_GREETS ? s->rules.name : s->note.client);
	return s->greeting;
}

/* In the middle of a mail another server's refusal is no answer to it: that mail may have been taken. */
static bool sees_client(const struct smtp_session *s)
{
	return s->backend && s->backend->proxy_v2 == CONF_ON && !s->past;
}

int service_backend_begins(struct service *of)
{
	struct smtp_session *s = of->state;

	s->relay = malloc(sizeof *s->relay);
	if (!s->relay)
		return CSSL_E_NO_MEMORY;
	s->rules.banner = s->note.banner == SMTP_BANNER_OWED ? SMTP_BANNER_RENAMED : SMTP_BANNER_SWALLOWED;
	s->rules.seen = sees_client(s) ? SMTP_CLIENT_IS_SEEN : SMTP_AGENT_IS_SEEN;
	s->stage = SMTP_OPENING;
	s->opening = SMTP_GREETS;
	s->greeter = first_greeter(s);
	smtp_relay_begin(s->relay, &s->rules, &relay_ops, s, smtp_session_greeting(s, (enum smtp_greeter)s->greeter));
	return 0;
}

/* --- for the connection --- */

void smtp_session_answered(struct smtp_session *s, size_t len)
{
	smtp_pieces_use(&s->answers, len);
	s->note.banner = SMTP_BANNER_HAD;
	if (s->waiting.first && smtp_session_has_room(s)) /* these waited for the room */
		smtp_session_look(s);
}

void smtp_session_at_checkpoint(struct smtp_session *s)
{
	s->replies = 0;
	s->note.classes_len = 0;
	s->note.replies = SMTP_REPLIES_COUNTED;
	s->note.tx = (struct smtp_mark){ 0 };
	s->note.end_reply = 0;
	s->note.epoch = s->epoch;
	if (s->stage != SMTP_TALKING)
		return;
	drop_relay(s);
	drop_buffer(&s->out);
	drop_buffer(&s->reply);
}
