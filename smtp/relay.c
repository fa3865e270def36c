/* relay.c: passes each event of transaction.h on to the other side, or answers it. */
#include "smtp/relay.h"

#include <stdio.h>
#include <string.h>

#include "proto/error.h"
#include "smtp/params.h"
#include "smtp/reply_write.h"

static void say_own(struct smtp_relay *r, enum smtp_own own, enum smtp_relay_words what)
{
	uint8_t reply[SMTP_RELAY_OWN_MAX];
	struct wire_writer w = wire_writer(reply, sizeof reply);
	if (own == SMTP_OWN_NAME_REFUSED || own == SMTP_OWN_RECEIVER_REFUSES)
		smtp_word_write(&w, r->refusal); /* the server's reason */
	else
		smtp_own_write(&w, own);
	r->ops->to_client(r->ctx, (const char *)reply, (size_t)wire_writer_len(&w), what);
}

/* After the last line of a reply. */
static enum smtp_relay_words words_now(const struct smtp_relay *r)
{
	return r->tx.queue_len == 0 ? SMTP_WORDS_WHOLE : SMTP_WORDS_REPLY;
}

void smtp_relay_end(struct smtp_relay *r, enum smtp_own why)
{
	if (r->state == SMTP_RELAY_OVER)
		return;
	r->state = SMTP_RELAY_OVER;
	r->over_for = why;
	r->turn = SMTP_TURN_NOTHING;
	if (!r->within)
		say_own(r, why, SMTP_WORDS_WHOLE);
}

void smtp_relay_server_ended(struct smtp_relay *r)
{
	smtp_relay_end(r, r->state == SMTP_RELAY_OPEN ? SMTP_OWN_BACKEND_LOST : SMTP_OWN_BACKEND_UNREACHABLE);
}

static void smtp_relay_begin_at(struct smtp_relay *r, const struct smtp_relay_rules *rules,
	const struct smtp_relay_ops *ops, void *ctx, enum smtp_tx_start start)
{
	const struct smtp_tx_rules tx = { .parse = rules->parse,
		.data_refuse = rules->data_refuse,
		.client_max = sizeof r->client_line,
		.reply_max = sizeof r->reply_line };
	const struct smtp_tx_memory memory = {
		.client_line = r->client_line, .reply_line = r->reply_line, .ehlo = &r->offers
	};
	memset(r, 0, offsetof(struct smtp_relay, client_line));
	r->rules = rules;
	r->ops = ops;
	r->ctx = ctx;
	smtp_tx_begin(&r->tx, &tx, &memory, start);
}

void smtp_relay_begin(struct smtp_relay *r, const struct smtp_relay_rules *rules, const struct smtp_relay_ops *ops,
	void *ctx, const char *greeting)
{
	smtp_relay_begin_at(r, rules, ops, ctx, SMTP_TX_BEFORE_BANNER);
	r->greeting = greeting;
}

void smtp_relay_continue(struct smtp_relay *r, const struct smtp_relay_rules *rules, const struct smtp_relay_ops *ops,
	void *ctx, const struct smtp_relay_past *past)
{
	smtp_relay_begin_at(r, rules, ops, ctx, SMTP_TX_BEHIND_BANNER);
	r->state = SMTP_RELAY_OPEN;
	r->offers.has = past->offers;
	r->tx.greeting = (uint8_t)past->greeting;
	r->tx.authenticated = (uint8_t)past->authenticated;
	r->refusals = past->refusals;
	smtp_span_copy(smtp_span_of(past->client), r->tx.name, sizeof r->tx.name);
}

/* Its lines are mostly whole in the input, and have left nothing in the buffers. */
void smtp_relay_wipe(struct smtp_relay *r)
{
	smtp_line_wipe(&r->tx.client);
	explicit_bzero(r->reply_line, sizeof r->reply_line);
	explicit_bzero(r, offsetof(struct smtp_relay, client_line));
}

/* --- the client's direction --- */

/* A 421 ends the session (RFC 5321 3.8). So does a line that is too long: nobody waits for its end. */
static bool ends_session(enum smtp_own own)
{
	return smtp_own_reply(own)->code == 421 || own == SMTP_OWN_LINE_TOO_LONG;
}

static void say_in_turn(struct smtp_relay *r, const struct smtp_server_event *e)
{
	r->turn = (uint8_t)e->turn;
	if (ends_session(e->own))
		smtp_relay_end(r, e->own);
	else
		say_own(r, e->own, words_now(r));
}

/* Replies of our own come in order with those of the server. */
static void say_due(struct smtp_relay *r)
{
	struct smtp_server_event e;
	size_t taken;
	for (;;) {
		smtp_tx_server(&r->tx, NULL, 0, &taken, &e);
		if (e.kind != SMTP_SERVER_OWN || r->state == SMTP_RELAY_OVER)
			return;
		say_in_turn(r, &e);
	}
}

/* A client must not use what it does not see: a later server may lack what is hidden; the replies at the end of a mail
 * with PRDR cannot be followed; REQUIRETLS is a promise; and only CSSL names transactions, as a client could otherwise
 * tie its mail to the fate of another's. A parameter that nobody here knows is for the server to judge. */
static bool has_hidden_param(const struct smtp_command *c, uint32_t hidden)
{
	hidden |= SMTP_CAP_BIT(SMTP_CAP_FOREIGN) | SMTP_CAP_BIT(SMTP_CAP_XCSSLTX);
	if (hidden & SMTP_CAP_BIT(SMTP_CAP_CHUNKING))
		hidden |= SMTP_CAP_BIT(SMTP_CAP_BINARYMIME); /* RFC 3030 3 */
	return (smtp_params_extensions(c) & hidden) != 0;
}

/* Commands of extensions: a client that does not see the keyword must not use them. */
static uint32_t extension_of(enum smtp_verb verb)
{
	static const uint32_t extensions[SMTP_VERB_COUNT] = {
		[SMTP_VERB_AUTH] = SMTP_CAP_BIT(SMTP_CAP_AUTH),
		[SMTP_VERB_BDAT] = SMTP_CAP_BIT(SMTP_CAP_CHUNKING),
		[SMTP_VERB_ETRN] = SMTP_CAP_BIT(SMTP_CAP_ETRN),
	};
	return extensions[verb];
}

/* The verb of an extension that the client sees and nobody here knows. Its meaning is the server's. */
static bool is_of_server(const struct smtp_relay_rules *rules, uint32_t offers, const struct smtp_command *c)
{
	const uint32_t seen = rules->hidden & SMTP_CAP_BIT(SMTP_CAP_OTHER) ? 0 : offers;
	return seen & smtp_cap_verb_bit(c->word) && !smtp_cap_is_foreign(c->word) && smtp_verb_is_new(c->word);
}

/* A server that does not know BDAT would take the bytes of the chunk for commands, which nobody checked. */
enum smtp_own smtp_relay_refusal(
	const struct smtp_relay_rules *rules, uint32_t offers, const struct smtp_client_event *command)
{
	const struct smtp_command *c = &command->command;
	const bool is_servers = command->refusal == SMTP_OWN_UNKNOWN_COMMAND && is_of_server(rules, offers, c);
	if (command->refusal && !is_servers)
		return command->refusal;
	if (rules->refused[c->verb])
		return (enum smtp_own)rules->refused[c->verb];
	if (extension_of(c->verb) & rules->hidden)
		return SMTP_OWN_NOT_IMPLEMENTED;
	if (c->verb == SMTP_VERB_BDAT && !(offers & SMTP_CAP_BIT(SMTP_CAP_CHUNKING)))
		return SMTP_OWN_NOT_IMPLEMENTED;
	return has_hidden_param(c, rules->hidden) ? SMTP_OWN_UNKNOWN_PARAMETER : SMTP_OWN_NONE;
}

static void say_named(struct smtp_relay *r, struct smtp_span line, const struct smtp_tx_name *name)
{
	uint8_t named[SMTP_RELAY_LINE_MAX + SMTP_RELAY_REPLY_MAX];
	struct wire_writer w = wire_writer(named, sizeof named);
	while (line.len && (line.at[line.len - 1] == '\n' || line.at[line.len - 1] == '\r'))
		line.len--;
	smtp_tx_name_add(&w, line, name);
	r->ops->to_server(r->ctx, (const char *)named, (size_t)wire_writer_len(&w)); /* a line is shorter than this */
}

static void smtp_relay_pass(struct smtp_relay *r, const struct smtp_client_event *e)
{
	const uint64_t before = r->tx.number;
	struct smtp_tx_name name;
	smtp_tx_pass(&r->tx, e);
	if (r->tx.number != before && r->ops->name && smtp_ehlo_has(&r->offers, SMTP_CAP_XCSSLTX) &&
		r->ops->name(r->ctx, r->read, &name))
		say_named(r, e->wire, &name);
	else
		r->ops->to_server(r->ctx, e->wire.at, e->wire.len);
}

/* The server has refused the greeting, which the client takes for accepted. */
static bool is_unwelcome(const struct smtp_relay *r, enum smtp_verb verb)
{
	return r->refusal[0] && verb == SMTP_VERB_MAIL && !r->tx.greeting;
}

static void on_smtp_relay_command(struct smtp_relay *r, const struct smtp_client_event *e)
{
	enum smtp_own own = smtp_relay_refusal(r->rules, r->offers.has, e);
	if (!own && is_unwelcome(r, e->command.verb))
		own = SMTP_OWN_NAME_REFUSED;
	if (own && ++r->refusals == r->rules->refusals_max)
		own = SMTP_OWN_TOO_MANY_ERRORS;
	if (own) {
		smtp_tx_answer(&r->tx, e, own);
		if (ends_session(own))
			smtp_tx_stop(&r->tx);
		say_due(r);
		return;
	}
	smtp_relay_pass(r, e);
}

int smtp_relay_say(struct smtp_relay *r, const char *command)
{
	struct smtp_client_event e;
	size_t taken;
	smtp_tx_client(&r->tx, command, strlen(command), &taken, &e);
	if (e.kind != SMTP_CLIENT_COMMAND || e.refusal)
		return CSSL_E_RANGE;
	smtp_tx_pass(&r->tx, &e);
	r->ops->to_server(r->ctx, e.wire.at, e.wire.len);
	return 0;
}

/* RFC 4954 4 and RFC 5321 2.3.8. The server must not wait for an end of the line, or see another one. */
static enum smtp_own refusal_of_auth_line(unsigned flaws)
{
	if (flaws & SMTP_LINE_TOO_LONG)
		return SMTP_OWN_AUTH_TOO_LONG;
	if (flaws & (SMTP_LINE_BARE_CR | SMTP_LINE_BARE_LF))
		return SMTP_OWN_BAD_LINE_END;
	return flaws & SMTP_LINE_NUL ? SMTP_OWN_BAD_BYTES : SMTP_OWN_NONE;
}

static void on_auth_line(struct smtp_relay *r, const struct smtp_client_event *e)
{
	const enum smtp_own own = refusal_of_auth_line(e->flaws);
	if (own)
		smtp_relay_end(r, own); /* the server waits for a line, so it cannot go on */
	else
		r->ops->to_server(r->ctx, e->wire.at, e->wire.len);
}

/* 1: there may be more to read. */
static bool on_client(struct smtp_relay *r, const struct smtp_client_event *e)
{
	switch (e->kind) {
	case SMTP_CLIENT_MORE:
	case SMTP_CLIENT_WAIT: return false;
	case SMTP_CLIENT_COMMAND: on_smtp_relay_command(r, e); break;
	case SMTP_CLIENT_AUTH_LINE: on_auth_line(r, e); break;
	case SMTP_CLIENT_CONTENT:
	case SMTP_CLIENT_CONTENT_END:
		if (!e->discard && e->wire.len)
			r->ops->to_server(r->ctx, e->wire.at, e->wire.len);
		break;
	case SMTP_CLIENT_FLAW: smtp_relay_end(r, SMTP_OWN_SMUGGLING); break;
	}
	return true;
}

static bool may_read(const struct smtp_relay *r)
{
	return r->state == SMTP_RELAY_OPEN && (!r->ops->has_room || r->ops->has_room(r->ctx));
}

size_t smtp_relay_client(struct smtp_relay *r, const char *in, size_t len)
{
	struct smtp_client_event e;
	size_t taken;
	bool goes_on = true;
	r->read = 0;
	while (goes_on && r->read < len && may_read(r)) {
		smtp_tx_client(&r->tx, in + r->read, len - r->read, &taken, &e);
		r->read += taken;
		goes_on = on_client(r, &e);
	}
	return r->read;
}

/* --- the server's direction --- */

/* RFC 5321 4.2: the first word of a banner is the server's name. */
static void say_banner(struct smtp_relay *r, struct smtp_span text)
{
	uint8_t reply[SMTP_RELAY_OWN_MAX];
	struct wire_writer w = wire_writer(reply, sizeof reply);
	const char *space = memchr(text.at, ' ', text.len);
	size_t name_len = space ? (size_t)(space - text.at) : text.len;
	smtp_word_write(&w, "220 ");
	smtp_text_write(&w, smtp_span_of(r->rules->name));
	smtp_text_write(&w, (struct smtp_span){ text.at + name_len, text.len - name_len });
	smtp_word_write(&w, "\r\n");
	r->ops->to_client(r->ctx, (const char *)reply, (size_t)wire_writer_len(&w), SMTP_WORDS_WHOLE);
}

static void smtp_relay_greet(struct smtp_relay *r, const char *greeting)
{
	if (smtp_relay_say(r, greeting) < 0)
		smtp_relay_end(r, SMTP_OWN_BACKEND_BROKEN);
	else
		r->state = SMTP_RELAY_GREETING;
}

/* A 421 is no judgement, but the end of the server's session (RFC 5321 3.8). */
static bool is_judgement(unsigned code)
{
	return (code / 100 == 4 || code / 100 == 5) && code != 421;
}

static void on_banner(struct smtp_relay *r, const struct smtp_server_event *e)
{
	if (!e->line.is_last)
		return;
	if (r->rules->seen == SMTP_CLIENT_IS_SEEN && is_judgement(e->line.code) &&
		smtp_span_copy(e->line.wire, r->refusal, sizeof r->refusal) == 0) {
		smtp_relay_end(r, SMTP_OWN_RECEIVER_REFUSES);
		return;
	}
	if (e->line.code / 100 != 2) {
		smtp_relay_end(r, SMTP_OWN_BACKEND_UNREACHABLE);
		return;
	}
	if (r->rules->banner == SMTP_BANNER_RENAMED)
		say_banner(r, e->line.text);
	if (r->greeting)
		smtp_relay_greet(r, r->greeting);
	else
		r->state = SMTP_RELAY_OPEN;
}

static void greet_by_helo(struct smtp_relay *r)
{
	char greeting[SMTP_DOMAIN_MAX + sizeof "HELO \r\n"];
	snprintf(greeting, sizeof greeting, "HELO %s\r\n", r->tx.name);
	smtp_relay_greet(r, greeting);
}

/* RFC 5321 3.2: a server may know HELO only. Another server has told a client its extensions, if that was not us. So
 * this one cannot take its place. */
static void on_greeting(struct smtp_relay *r, const struct smtp_server_event *e)
{
	const bool by_us = r->rules->greeted == SMTP_GREETED_BY_US;
	if (!e->line.is_last)
		return;
	if (by_us && e->turn == SMTP_VERB_EHLO && (e->line.code == 500 || e->line.code == 502)) {
		greet_by_helo(r);
		return;
	}
	const bool is_refused =
		by_us && is_judgement(e->line.code) && smtp_span_copy(e->line.wire, r->refusal, sizeof r->refusal) == 0;
	if (is_refused || e->line.code / 100 == 2)
		r->state = SMTP_RELAY_OPEN;
	else
		smtp_relay_end(r, SMTP_OWN_BACKEND_UNREACHABLE);
	/* The client may pipeline, because we told it so. This server did not: it gets one command at a time. */
	r->tx.rules.one_by_one = by_us && !smtp_ehlo_has(&r->offers, SMTP_CAP_PIPELINING);
}

static void say_offers(struct smtp_relay *r)
{
	uint8_t reply[SMTP_RELAY_OWN_MAX];
	struct wire_writer w = wire_writer(reply, sizeof reply);
	struct smtp_ehlo set = r->offers;
	smtp_ehlo_keep(&set, SMTP_CAP_ALL & ~r->rules->hidden);
	smtp_ehlo_write(&w, r->rules->name, &set);
	ptrdiff_t len = wire_writer_len(&w);
	if (len < 0)
		smtp_relay_end(r, SMTP_OWN_BACKEND_BROKEN);
	else
		r->ops->to_client(r->ctx, (const char *)reply, (size_t)len, words_now(r));
}

static void on_smtp_relay_reply(struct smtp_relay *r, const struct smtp_server_event *e)
{
	if (e->turn == SMTP_VERB_EHLO && e->line.code / 100 == 2) {
		if (!e->line.is_last)
			return;
		r->within = 0;
		say_offers(r);
		return;
	}
	r->within = !e->line.is_last;
	r->ops->to_client(r->ctx, e->line.wire.at, e->line.wire.len, e->line.is_last ? words_now(r) : SMTP_WORDS_PART);
	if (e->line.is_last && r->tx.closing)
		r->state = SMTP_RELAY_OVER;
}

static void on_smtp_relay_line(struct smtp_relay *r, const struct smtp_server_event *e)
{
	r->turn = (uint8_t)e->turn;
	if (r->state == SMTP_RELAY_BANNER)
		on_banner(r, e);
	else if (r->state == SMTP_RELAY_GREETING)
		on_greeting(r, e);
	else
		on_smtp_relay_reply(r, e);
}

void smtp_relay_server(struct smtp_relay *r, const char *in, size_t len)
{
	struct smtp_server_event e;
	size_t used = 0, taken;
	while (used < len && r->state != SMTP_RELAY_OVER) {
		smtp_tx_server(&r->tx, in + used, len - used, &taken, &e);
		used += taken;
		if (e.kind == SMTP_SERVER_LINE)
			on_smtp_relay_line(r, &e);
		else if (e.kind == SMTP_SERVER_OWN)
			say_in_turn(r, &e);
		else if (e.kind == SMTP_SERVER_BAD)
			smtp_relay_end(r, SMTP_OWN_BACKEND_BROKEN);
	}
	if (r->state == SMTP_RELAY_OPEN)
		say_due(r);
}
