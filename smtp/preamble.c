/* preamble.c: a table has the handler of each verb. Each refused command counts as an error. */
#include "smtp/preamble.h"

#include <assert.h>
#include <string.h>

#include "smtp/command.h"
#include "smtp/reply_write.h"

#define TO(state) (1u << SMTP_PREAMBLE_##state)

static const unsigned may_move_to[] = {
	[SMTP_PREAMBLE_GREETED] = TO(HELO) | TO(EHLO) | TO(TLS) | TO(ENDED),
	[SMTP_PREAMBLE_HELO] = TO(HELO) | TO(EHLO) | TO(MAIL) | TO(ENDED),
	[SMTP_PREAMBLE_EHLO] = TO(HELO) | TO(EHLO) | TO(TLS) | TO(MAIL) | TO(ENDED),
	[SMTP_PREAMBLE_TLS] = 0,
	[SMTP_PREAMBLE_MAIL] = 0,
	[SMTP_PREAMBLE_ENDED] = 0,
};

static void move(struct smtp_preamble *p, enum smtp_preamble_state to)
{
	assert(may_move_to[p->state] & 1u << to);
	p->state = to;
}

void smtp_preamble_begin(struct smtp_preamble *p, const struct smtp_preamble_rules *rules, struct wire_writer *out)
{
	struct smtp_line_rules line = { .max = SMTP_PREAMBLE_LINE_MAX };
	memset(p, 0, offsetof(struct smtp_preamble, line));
	p->rules = rules;
	smtp_line_begin(&p->reader, line, p->line);
	if (rules->tls == SMTP_TLS_IMPLICIT) {
		move(p, SMTP_PREAMBLE_TLS);
		return;
	}
	smtp_word_write(out, "220 ");
	smtp_text_write(out, smtp_span_of(rules->name));
	smtp_word_write(out, " ");
	smtp_text_write(out, smtp_span_of(rules->banner ? rules->banner : "ESMTP"));
	smtp_word_write(out, "\r\n");
}

static enum smtp_preamble_event say(struct smtp_preamble *p, enum smtp_own what, struct wire_writer *out)
{
	p->last = what;
	smtp_own_write(out, what);
	return SMTP_PREAMBLE_ON_REPLY;
}

static enum smtp_preamble_event end(struct smtp_preamble *p, enum smtp_own why, struct wire_writer *out)
{
	move(p, SMTP_PREAMBLE_ENDED);
	say(p, why, out);
	return SMTP_PREAMBLE_ON_END;
}

static enum smtp_preamble_event refuse(struct smtp_preamble *p, enum smtp_own why, struct wire_writer *out)
{
	p->errors++;
	if (p->rules->errors_max && p->errors >= p->rules->errors_max)
		return end(p, SMTP_OWN_TOO_MANY_ERRORS, out);
	return say(p, why, out);
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

static enum smtp_preamble_event on_ehlo(struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	smtp_span_copy(c->argument, p->name, sizeof p->name);
	move(p, SMTP_PREAMBLE_EHLO);
	write_offers(p->rules, out);
	return SMTP_PREAMBLE_ON_REPLY;
}

static enum smtp_preamble_event on_helo(struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	smtp_span_copy(c->argument, p->name, sizeof p->name);
	move(p, SMTP_PREAMBLE_HELO);
	smtp_reply_write(out, 250, "", smtp_span_of(p->rules->name));
	return SMTP_PREAMBLE_ON_REPLY;
}

static enum smtp_preamble_event on_ok(struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	return say(p, SMTP_OWN_OK, out);
}

static enum smtp_preamble_event on_help(struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	return say(p, SMTP_OWN_HELP, out);
}

static enum smtp_preamble_event on_quit(struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	return end(p, SMTP_OWN_BYE, out);
}

/* RFC 3207 4: a client that sent HELO knows of no extension, so this is a bad sequence, as before any greeting. */
static enum smtp_preamble_event on_starttls(
	struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	if (p->state != SMTP_PREAMBLE_EHLO)
		return refuse(p, SMTP_OWN_EHLO_FIRST, out);
	move(p, SMTP_PREAMBLE_TLS);
	say(p, SMTP_OWN_GO_AHEAD_TLS, out);
	return SMTP_PREAMBLE_ON_STARTTLS;
}

/* Policy `offer`. */
static enum smtp_preamble_event on_mail(struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	if (p->state == SMTP_PREAMBLE_GREETED)
		return refuse(p, SMTP_OWN_EHLO_FIRST, out);
	move(p, SMTP_PREAMBLE_MAIL);
	return SMTP_PREAMBLE_ON_MAIL;
}

static enum smtp_preamble_event on_vrfy(struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	return say(p, SMTP_OWN_NOT_VERIFIED, out);
}

static enum smtp_preamble_event on_foreign(
	struct smtp_preamble *p, const struct smtp_command *c, struct wire_writer *out)
{
	return end(p, SMTP_OWN_FOREIGN_PROTOCOL, out);
}

/* @handle answers under every policy. @offered answers under `offer` only; under `require` the answer is 530. A verb
 * with neither is answered with @refusal under `offer`. */
static const struct verb_row {
	handler handle, offered;
	enum smtp_own refusal;
} rows[SMTP_VERB_COUNT] = {
	[SMTP_VERB_EHLO] = { .handle = on_ehlo },
	[SMTP_VERB_HELO] = { .handle = on_helo },
	[SMTP_VERB_NOOP] = { .handle = on_ok },
	[SMTP_VERB_RSET] = { .handle = on_ok },
	[SMTP_VERB_HELP] = { .handle = on_help },
	[SMTP_VERB_QUIT] = { .handle = on_quit },
	[SMTP_VERB_STARTTLS] = { .handle = on_starttls },
	[SMTP_VERB_CONNECT] = { .handle = on_foreign },
	[SMTP_VERB_GET] = { .handle = on_foreign },
	[SMTP_VERB_POST] = { .handle = on_foreign },
	[SMTP_VERB_MAIL] = { .offered = on_mail },
	[SMTP_VERB_VRFY] = { .offered = on_vrfy },
	[SMTP_VERB_RCPT] = { .refusal = SMTP_OWN_BAD_SEQUENCE },
	[SMTP_VERB_DATA] = { .refusal = SMTP_OWN_BAD_SEQUENCE },
	[SMTP_VERB_BDAT] = { .refusal = SMTP_OWN_BAD_SEQUENCE },
	[SMTP_VERB_AUTH] = { .refusal = SMTP_OWN_TLS_REQUIRED_FOR_AUTH },
	[SMTP_VERB_EXPN] = { .refusal = SMTP_OWN_NOT_IMPLEMENTED },
	[SMTP_VERB_ETRN] = { .refusal = SMTP_OWN_NOT_IMPLEMENTED },
	[SMTP_VERB_XCLIENT] = { .refusal = SMTP_OWN_NOT_TRUSTED },
	[SMTP_VERB_XFORWARD] = { .refusal = SMTP_OWN_NOT_TRUSTED },
	[SMTP_VERB_XCSSLTX] = { .refusal = SMTP_OWN_NOT_TRUSTED },
};

/* RFC 3207 4 forbids this command in clear. So it is refused for that, whatever its arguments. */
static int needs_tls(const struct smtp_preamble *p, enum smtp_verb verb)
{
	return p->rules->tls == SMTP_TLS_REQUIRE && verb != SMTP_VERB_UNKNOWN && !rows[verb].handle;
}

static enum smtp_preamble_event answer(
	struct smtp_preamble *p, const struct smtp_command *c, enum smtp_own refusal, struct wire_writer *out)
{
	const struct verb_row *row = &rows[c->verb];
	if (refusal == SMTP_OWN_LINE_TOO_LONG)
		return end(p, refusal, out);
	if (needs_tls(p, c->verb))
		return refuse(p, SMTP_OWN_TLS_REQUIRED, out);
	if (refusal)
		return refuse(p, refusal, out);
	handler handle = row->handle ? row->handle : row->offered;
	return handle ? handle(p, c, out) : refuse(p, row->refusal, out);
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
	if (p->rules->lf_ends)
		line.flaws &= ~(unsigned)SMTP_LINE_BARE_LF;
	unsigned flags = p->rules->lenient | (smtp_ehlo_has(p->rules->offers, SMTP_CAP_SMTPUTF8) ? SMTP_PARSE_UTF8 : 0);
	enum smtp_own refusal = smtp_command_of_line(line.text, line.flaws, flags, &command);
	if (p->rules->commands_max && p->commands > p->rules->commands_max)
		return end(p, SMTP_OWN_TOO_MANY_COMMANDS, out);
	return answer(p, &command, refusal, out);
}
