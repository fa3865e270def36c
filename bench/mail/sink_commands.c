/* sink_commands.c: a mail server that accepts every mail: one function for each command. */
#include "bench/mail/sink_commands.h"

#include <stdio.h>

#include "smtp/params.h"

#define REPLY_MAX 2048u

typedef void (*handler)(struct sink_session *s, const struct smtp_command *c);

static void offer_names(const struct sink_session *s, struct smtp_ehlo *offers)
{
	char line[64];
	if (!s->tx.entry)
		return;
	int len = snprintf(line, sizeof line, "XCSSLTX %s", s->tx.entry->key);
	smtp_ehlo_add(offers, (struct smtp_span){ line, (size_t)len });
}

static void end_transaction(struct sink_session *s)
{
	sink_mail_destroy(s->mail);
	s->mail = NULL;
	sink_tx_forget(s);
}

static void on_sink_ehlo(struct sink_session *s, const struct smtp_command *c)
{
	uint8_t out[REPLY_MAX];
	struct wire_writer w = wire_writer(out, sizeof out);
	struct smtp_ehlo offers = s->host->options->offers;
	if (s->ssl)
		smtp_ehlo_keep(&offers, SMTP_CAP_ALL & ~SMTP_CAP_BIT(SMTP_CAP_STARTTLS));
	offer_names(s, &offers);
	smtp_ehlo_write(&w, s->host->options->name, &offers);
	s->greeted = 1;
	end_transaction(s);
	sink_session_say(s, SINK_STEP_HELLO, (const char *)out, (size_t)wire_writer_len(&w), SINK_GOES_ON);
}

static void on_helo(struct sink_session *s, const struct smtp_command *c)
{
	char text[300];
	int len = snprintf(text, sizeof text, "250 %.255s\r\n", s->host->options->name);
	s->greeted = 1;
	end_transaction(s);
	sink_session_say(s, SINK_STEP_HELLO, text, (size_t)len, SINK_GOES_ON);
}

static void on_sink_starttls(struct sink_session *s, const struct smtp_command *c)
{
	if (s->ssl)
		sink_session_refuse(s, SINK_STEP_STARTTLS, SMTP_OWN_TLS_ALREADY);
	else if (s->host->options->tls != SINK_STARTTLS)
		sink_session_refuse(s, SINK_STEP_STARTTLS, SMTP_OWN_NOT_IMPLEMENTED);
	else if (!s->greeted)
		sink_session_refuse(s, SINK_STEP_STARTTLS, SMTP_OWN_EHLO_FIRST);
	else
		sink_session_say_own(s, SINK_STEP_STARTTLS, SMTP_OWN_GO_AHEAD_TLS, SINK_STARTS_TLS);
}

static enum smtp_own mail_refusal(struct sink_session *s, const struct smtp_command *c)
{
	struct smtp_params params;
	const struct sink_options *o = s->host->options;
	if (o->needs == SINK_NEEDS_TLS && !s->ssl)
		return SMTP_OWN_TLS_REQUIRED;
	if (s->mail)
		return SMTP_OWN_BAD_SEQUENCE;
	/* The parameters come last: only a MAIL that is in order may name a transaction. */
	enum smtp_own own = smtp_params_read(SMTP_VERB_MAIL, c->params, &params);
	if (!own && c->path.utf8 && !smtp_params_has(&params, SMTP_PARAM_UTF8))
		return SMTP_OWN_NEEDS_UTF8;
	if (!own && o->max_size && params.size > o->max_size)
		return SMTP_OWN_TOO_BIG;
	return own ? own : sink_tx_name(s, &params);
}

static void on_sink_mail(struct sink_session *s, const struct smtp_command *c)
{
	enum smtp_own own = mail_refusal(s, c);
	if (own) {
		sink_session_refuse(s, SINK_STEP_MAIL, own);
		return;
	}
	s->mail = sink_mail_create(c->path.mailbox, s->host->options);
	unsigned class =
		sink_session_say_own(s, SINK_STEP_MAIL, s->mail ? SMTP_OWN_OK : SMTP_OWN_LOCAL_ERROR, SINK_GOES_ON);
	if (class != 2)
		end_transaction(s);
}

static void on_sink_rcpt(struct sink_session *s, const struct smtp_command *c)
{
	struct smtp_params params;
	enum smtp_own own = s->mail ? smtp_params_read(SMTP_VERB_RCPT, c->params, &params) : SMTP_OWN_BAD_SEQUENCE;
	if (own)
		sink_session_refuse(s, SINK_STEP_RCPT, own);
	else if (sink_session_say_own(s, SINK_STEP_RCPT, SMTP_OWN_OK, SINK_GOES_ON) == 2)
		sink_mail_recipient(s->mail, c->argument);
}

/* The reply that refuses content now, or NONE. */
static enum smtp_own content_refusal(const struct sink_session *s)
{
	if (!s->mail)
		return SMTP_OWN_BAD_SEQUENCE;
	return s->mail->recipients == 0 ? SMTP_OWN_NO_RECIPIENTS : SMTP_OWN_NONE;
}

static void on_data_command(struct sink_session *s, const struct smtp_command *c)
{
	enum smtp_own own = content_refusal(s);
	if (!own && s->mail->bdat.chunks > 0) /* RFC 3030 2 */
		own = SMTP_OWN_BAD_SEQUENCE;
	if (own) {
		sink_session_refuse(s, SINK_STEP_DATA, own);
		return;
	}
	sink_mail_begin_data(s->mail, s->host->options);
	sink_session_say_own(s, SINK_STEP_DATA, SMTP_OWN_START_DATA, SINK_TAKES_DATA);
}

void sink_session_decide(struct sink_session *s)
{
	struct sink_host *host = s->host;
	struct sink_mail *m = s->mail;
	enum smtp_own own = sink_mail_refusal(m, host->result);
	s->mail = NULL;
	unsigned class = sink_session_say_own(s, SINK_STEP_END, own ? own : SMTP_OWN_OK, SINK_GOES_ON);
	sink_tx_forget(s);
	if (class == 2)
		sink_mail_take(m, host->result, host->dump, uv_hrtime());
	else if (class > 2)
		sink_session_count(s, SINK_REFUSED);
	sink_mail_destroy(m);
	if (class == 2)
		host->on_mail(host);
}

/* The mail is complete. */
void sink_session_end_mail(struct sink_session *s)
{
	struct sink_decision d = sink_rules_decide(&s->host->options->rules, SINK_STEP_DECIDE);
	if (d.delay_ms == 0) {
		sink_session_decide(s);
		return;
	}
	sink_session_count(s, SINK_DELAYED);
	sink_session_move(s, SINK_IS_DECIDING);
	sink_tx_wait(s);
	deadline_set_in_full(s->host->worker, &s->deadline, d.delay_ms);
}

void sink_session_end_chunk(struct sink_session *s)
{
	if (s->mail->bdat.state == SMTP_BDAT_OVER)
		sink_session_end_mail(s);
	else
		sink_session_say_own(s, SINK_STEP_BDAT, SMTP_OWN_OK, SINK_GOES_ON);
}

static void on_bdat(struct sink_session *s, const struct smtp_command *c)
{
	enum smtp_own own = content_refusal(s);
	if (own) {
		s->discard = c->chunk_len;
		sink_session_refuse(s, SINK_STEP_BDAT, own);
		return;
	}
	smtp_bdat_begin(&s->mail->bdat, c->chunk_len, c->chunk_is_last);
	if (smtp_bdat_is_inside(&s->mail->bdat))
		sink_session_move(s, SINK_IN_CHUNK);
	else
		sink_session_end_chunk(s);
}

static void on_rset(struct sink_session *s, const struct smtp_command *c)
{
	end_transaction(s);
	sink_session_say_own(s, SINK_STEP_RSET, SMTP_OWN_OK, SINK_GOES_ON);
}

static void on_noop(struct sink_session *s, const struct smtp_command *c)
{
	sink_session_say_own(s, SINK_STEP_NOOP, SMTP_OWN_OK, SINK_GOES_ON);
}

static void on_vrfy(struct sink_session *s, const struct smtp_command *c)
{
	sink_session_say_own(s, SINK_STEP_OTHER, SMTP_OWN_NOT_VERIFIED, SINK_GOES_ON);
}

static void on_quit(struct sink_session *s, const struct smtp_command *c)
{
	sink_session_say_own(s, SINK_STEP_QUIT, SMTP_OWN_BYE, SINK_CLOSES);
}

static const handler handlers[SMTP_VERB_COUNT] = {
	[SMTP_VERB_EHLO] = on_sink_ehlo,
	[SMTP_VERB_HELO] = on_helo,
	[SMTP_VERB_STARTTLS] = on_sink_starttls,
	[SMTP_VERB_MAIL] = on_sink_mail,
	[SMTP_VERB_RCPT] = on_sink_rcpt,
	[SMTP_VERB_DATA] = on_data_command,
	[SMTP_VERB_BDAT] = on_bdat,
	[SMTP_VERB_RSET] = on_rset,
	[SMTP_VERB_NOOP] = on_noop,
	[SMTP_VERB_VRFY] = on_vrfy,
	[SMTP_VERB_XCSSLTX] = sink_tx_on_question,
	[SMTP_VERB_QUIT] = on_quit,
};

void sink_session_on_line(struct sink_session *s, const struct smtp_line *line)
{
	struct smtp_command c;
	unsigned flags = SMTP_PARSE_LENIENT | SMTP_PARSE_UTF8;
	enum smtp_own own = smtp_command_of_line(line->text, line->flaws, flags, &c);
	if (s->host->options->verbosity == SINK_SAYS_DIALOGUE)
		fprintf(stderr, "> %.*s\n", (int)line->text.len, line->text.at);
	sink_session_expect_something(s);
	if (own)
		sink_session_refuse(s, SINK_STEP_OTHER, own);
	else if (handlers[c.verb])
		handlers[c.verb](s, &c);
	else
		sink_session_refuse(s, SINK_STEP_OTHER, SMTP_OWN_NOT_IMPLEMENTED);
}
