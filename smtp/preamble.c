/* preamble.c: a table has the handler of each verb. Each refused command counts as an error. */
#include "smtp/preamble.h"

#include <assert.h>
#include <string.h>

#include "smtp/command.h"

#define TO(state) (1u << SMTP_PREAMBLE_##state)

static const unsigned may_move_to[] = {
	[SMTP_PREAMBLE_GREETED] = TO(HELO) | TO(EHLO) | TO(TLS) | TO(ENDED),
	[SMTP_PREAMBLE_HELO] = TO(HELO) | TO(EHLO) | TO(MAIL) | TO(ENDED),
	[SMTP_PREAMBLE_EHLO] = TO(HELO) | TO(EHLO) | TO(TLS) | TO(MAIL) | TO(ENDED),
	[SMTP_PREAMBLE_TLS] = 0,
	[SMTP_PREAMBLE_MAIL] = 0,
	[SMTP_PREAMBLE_ENDED] = 0,
};

static void smtp_preamble_move(struct smtp_preamble *p, enum smtp_preamble_state to)
{
	assert(may_move_to[p->state] & 1u << to);
	p->state = to;
}

void smtp_preamble_begin(struct smtp_preamble *p, const struct smtp_preamble_rules *rules, struct wire_writer *out)
{
	memset(p, 0, offsetof(struct smtp_preamble, line));
	p->rules = rules;
	smtp_line_begin(&p->reader, SMTP_PREAMBLE_LINE_MAX, p->line);
	if (rules->tls == SMTP_TLS_IMPLICIT) {
		smtp_preamble_move(p, SMTP_PREAMBLE_TLS);
		return;
	}
	smtp_word_write(out, "220 ");
	smtp_text_write(out, smtp_span_of(rules->name));
	smtp_word_write(out, " ");
	smtp_text_write(out, smtp_span_of(rules->banner ? rules->banner : "ESMTP"));
	smtp_word_write(out, "\r\n");
}

static enum smtp_preamble_event smtp_preamble_say(struct smtp_preamble *p, enum smtp_own what, struct wire_writer *out)
{
	p->last = what;
	smtp_own_write(out, what);
	return SMTP_PREAMBLE_ON_REPLY;
}

static enum smtp_preamble_event smtp_preamble_end(struct smtp_preamble *p, enum smtp_own why, struct wire_writer *out)
{
	smtp_preamble_move(p, SMTP_PREAMBLE_ENDED);
	smtp_preamble_say(p, why, out);
	return SMTP_PREAMBLE_ON_END;
}

static enum smtp_preamble_event smtp_preamble_refuse(
	struct smtp_preamble *p, enum smtp_own why, struct wire_writer *out)
{
	p->errors++;
	if (p->rules->errors_max && p->errors >= p->rules->errors_max)
		return smtp_preamble_end(p, SMTP_OWN_TOO_MANY_ERRORS, out);
	return smtp_preamble_say(p, why, out);
}

static void write_offers(const struct smtp_preamble_rules *rules, struct wire_writer *out)
{
	struct smtp_ehlo set = *rules->offers;
	smtp_ehlo_keep(&set, SMTP_CAP_ALL & ~SMTP_CAPS_HIDDEN & ~SMTP_CAP_BIT(SMTP_CAP_AUTH));
	smtp_ehlo_add(&set, smtp_span_of("STARTTLS"));
	smtp_ehlo_write(out, rules->name, &set);
}

typedef enum smtp_preamble_event (*handler)(
	struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out);

static enum smtp_preamble_event on_smtp_preamble_ehlo(
	struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	smtp_span_copy(c->argument, p->name, sizeof p->name);
	smtp_preamble_move(p, SMTP_PREAMBLE_EHLO);
	write_offers(p->rules, out);
	return SMTP_PREAMBLE_ON_REPLY;
}

static enum smtp_preamble_event on_helo(struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	smtp_span_copy(c->argument, p->name, sizeof p->name);
	smtp_preamble_move(p, SMTP_PREAMBLE_HELO);
	smtp_reply_write(out, 250, "", smtp_span_of(p->rules->name));
	return SMTP_PREAMBLE_ON_REPLY;
}

/* RFC 3207 4: a client that sent HELO knows of no extension, so this is a bad sequence, as before any greeting. */
static enum smtp_preamble_event on_smtp_preamble_starttls(
	struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	if (p->state != SMTP_PREAMBLE_EHLO)
		return smtp_preamble_refuse(p, SMTP_OWN_EHLO_FIRST, out);
	smtp_preamble_move(p, SMTP_PREAMBLE_TLS);
	smtp_preamble_say(p, SMTP_OWN_GO_AHEAD_TLS, out);
	return SMTP_PREAMBLE_ON_STARTTLS;
}

/* Policy `offer`. */
static enum smtp_preamble_event on_smtp_preamble_mail(
	struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	if (p->state == SMTP_PREAMBLE_GREETED)
		return smtp_preamble_refuse(p, SMTP_OWN_EHLO_FIRST, out);
	smtp_preamble_move(p, SMTP_PREAMBLE_MAIL);
	return SMTP_PREAMBLE_ON_MAIL;
}

/* Without a handler, @own is said, or refuses or ends. UNDER_OFFER: under `require` the answer is 530. */
static const struct verb_row {
	enum { ALWAYS, UNDER_OFFER } when;
	enum { SAYS, REFUSES, ENDS } how;
	enum smtp_own own;
	handler handle;
} rows[SMTP_VERB_COUNT] = {
	[SMTP_VERB_EHLO] = { .handle = on_smtp_preamble_ehlo },
	[SMTP_VERB_HELO] = { .handle = on_helo },
	[SMTP_VERB_NOOP] = { ALWAYS, SAYS, SMTP_OWN_OK },
	[SMTP_VERB_RSET] = { ALWAYS, SAYS, SMTP_OWN_OK },
	[SMTP_VERB_HELP] = { ALWAYS, SAYS, SMTP_OWN_HELP },
	[SMTP_VERB_QUIT] = { ALWAYS, ENDS, SMTP_OWN_BYE },
	[SMTP_VERB_STARTTLS] = { .handle = on_smtp_preamble_starttls },
	[SMTP_VERB_CONNECT] = { ALWAYS, ENDS, SMTP_OWN_FOREIGN_PROTOCOL },
	[SMTP_VERB_GET] = { ALWAYS, ENDS, SMTP_OWN_FOREIGN_PROTOCOL },
	[SMTP_VERB_POST] = { ALWAYS, ENDS, SMTP_OWN_FOREIGN_PROTOCOL },
	[SMTP_VERB_MAIL] = { UNDER_OFFER, .handle = on_smtp_preamble_mail },
	[SMTP_VERB_VRFY] = { UNDER_OFFER, SAYS, SMTP_OWN_NOT_VERIFIED },
	[SMTP_VERB_RCPT] = { UNDER_OFFER, REFUSES, SMTP_OWN_BAD_SEQUENCE },
	[SMTP_VERB_DATA] = { UNDER_OFFER, REFUSES, SMTP_OWN_BAD_SEQUENCE },
	[SMTP_VERB_BDAT] = { UNDER_OFFER, REFUSES, SMTP_OWN_BAD_SEQUENCE },
	[SMTP_VERB_AUTH] = { UNDER_OFFER, REFUSES, SMTP_OWN_TLS_REQUIRED_FOR_AUTH },
	[SMTP_VERB_EXPN] = { UNDER_OFFER, REFUSES, SMTP_OWN_NOT_IMPLEMENTED },
	[SMTP_VERB_ETRN] = { UNDER_OFFER, REFUSES, SMTP_OWN_NOT_IMPLEMENTED },
	[SMTP_VERB_XCLIENT] = { UNDER_OFFER, REFUSES, SMTP_OWN_NOT_TRUSTED },
	[SMTP_VERB_XFORWARD] = { UNDER_OFFER, REFUSES, SMTP_OWN_NOT_TRUSTED },
	[SMTP_VERB_XCSSLTX] = { UNDER_OFFER, REFUSES, SMTP_OWN_NOT_TRUSTED },
};

/* RFC 3207 4 forbids commands in clear. They are refused for that, whatever their arguments. */
static enum smtp_preamble_event smtp_preamble_answer(
	struct smtp_preamble *p, const struct smtp_command *c, enum smtp_own refusal, struct wire_writer *out)
{
	const struct verb_row *row = &rows[c->verb];
	if (refusal == SMTP_OWN_LINE_TOO_LONG)
		return smtp_preamble_end(p, refusal, out);
	if (p->rules->tls == SMTP_TLS_REQUIRE && row->when == UNDER_OFFER)
		return smtp_preamble_refuse(p, SMTP_OWN_TLS_REQUIRED, out);
	if (refusal)
		return smtp_preamble_refuse(p, refusal, out);
	switch (row->how) {
	case REFUSES: return smtp_preamble_refuse(p, row->own, out);
	case ENDS: return smtp_preamble_end(p, row->own, out);
	default: return row->handle ? row->handle(p, c, out) : smtp_preamble_say(p, row->own, out);
	}
}

enum smtp_preamble_event smtp_preamble_read(
	struct smtp_preamble *p, const char *in, size_t len, size_t *taken, struct wire_writer *out)
{
	struct smtp_line line;
	struct smtp_command command;
	assert(p->state <= SMTP_PREAMBLE_EHLO);
	int r = smtp_line_read(&p->reader, in, len, taken, &line);
	p->consumed += *taken;
	if (r != SMTP_LINE)
		return SMTP_PREAMBLE_ON_MORE;
	p->held = line.wire;
	p->commands++;
	unsigned flags = p->rules->lenient | (smtp_ehlo_has(p->rules->offers, SMTP_CAP_SMTPUTF8) ? SMTP_PARSE_UTF8 : 0);
	enum smtp_own refusal = smtp_command_of_line(line.text, line.flaws, flags, &command);
	if (p->rules->commands_max && p->commands > p->rules->commands_max)
		return smtp_preamble_end(p, SMTP_OWN_TOO_MANY_COMMANDS, out);
	return smtp_preamble_answer(p, &command, refusal, out);
}
