/* greeting.c: one handler for each state, called with each complete reply. */
#include "smtpproxy/outward/greeting.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/error.h"

static void greeting_say_hello(struct greeting *g, const char *verb, struct wire_writer *out)
{
	smtp_word_write(out, verb);
	smtp_text_write(out, smtp_span_of(g->name));
	smtp_word_write(out, "\r\n");
	smtp_ehlo_clear(&g->words->offers);
	g->has = 0;
	g->state = GREETING_HELLO;
}

static int get_words(struct greeting *g)
{
	if (g->words)
		return 0;
	g->words = calloc(1, sizeof *g->words);
	if (!g->words)
		return CSSL_E_NO_MEMORY;
	smtp_reply_begin(&g->reader, g->words->line, sizeof g->words->line);
	return 0;
}

int greeting_begin(struct greeting *g, enum smtpproxy_tls tls, struct smtp_span name)
{
	*g = (struct greeting){ .tls = tls };
	smtp_span_copy(name, g->name, sizeof g->name);
	return get_words(g);
}

void greeting_end(struct greeting *g)
{
	free(g->words);
	g->words = NULL;
}

void greeting_rest(struct greeting *g)
{
	assert(g->state == GREETING_READY);
	if (!(g->has & SMTP_CAP_BIT(SMTP_CAP_XCSSLTX)))
		greeting_end(g);
}

static enum greeting_event greeting_over(struct greeting *g, enum smtp_own why)
{
	g->state = GREETING_OVER;
	g->why = why;
	return GREETING_ON_OVER;
}

/* RFC 5321 3.1: 554 means that the host takes no mail. After a temporary reply, ask again later. */
static enum greeting_event greeting_refused(struct greeting *g, unsigned code)
{
	if (code / 100 == 5)
		return greeting_over(g, SMTP_OWN_RECEIVER_REFUSES);
	g->state = GREETING_OVER;
	g->why = SMTP_OWN_BACKEND_UNREACHABLE;
	return GREETING_ON_REFUSED;
}

/* Only the name is refused. */
static enum greeting_event name_refused(struct greeting *g, unsigned code)
{
	g->state = GREETING_OVER;
	g->why = code / 100 == 5 ? SMTP_OWN_NAME_REFUSED : SMTP_OWN_NAME_REFUSED_NOW;
	return GREETING_ON_NAME;
}

static enum greeting_event on_banner(struct greeting *g, unsigned code, struct wire_writer *out)
{
	if (code / 100 != 2)
		return greeting_refused(g, code);
	greeting_say_hello(g, "EHLO ", out);
	return GREETING_ON_MORE;
}

static enum greeting_event on_offers(struct greeting *g, struct wire_writer *out)
{
	const int offered = smtp_ehlo_has(&g->words->offers, SMTP_CAP_STARTTLS);
	g->has = g->words->offers.has;
	if (g->secured || g->tls == SMTPPROXY_TLS_NONE || (g->tls == SMTPPROXY_TLS_MAY && !offered)) {
		g->state = GREETING_READY;
		return GREETING_ON_READY;
	}
	if (!offered)
		return greeting_over(g, SMTP_OWN_BACKEND_NO_TLS);
	smtp_word_write(out, "STARTTLS\r\n");
	g->state = GREETING_STARTTLS;
	return GREETING_ON_MORE;
}

static enum greeting_event on_hello(struct greeting *g, unsigned code, struct wire_writer *out)
{
	if (code / 100 == 2)
		return on_offers(g, out);
	if (code / 100 == 5 && code != 554 && !g->plain_hello && !g->secured) {
		g->plain_hello = 1;
		greeting_say_hello(g, "HELO ", out);
		return GREETING_ON_MORE;
	}
	return code == 421 ? greeting_refused(g, code) : name_refused(g, code);
}

/* If a receiver offers STARTTLS and then refuses it, go on in clear only if that is allowed. */
static enum greeting_event on_greeting_starttls(struct greeting *g, unsigned code, struct wire_writer *out)
{
	if (code / 100 == 2) {
		g->state = GREETING_TLS;
		return GREETING_ON_TLS;
	}
	if (code == 421)
		return greeting_refused(g, code);
	if (code <
		400) /* neither TLS nor a refusal: after 354, say, it may take what follows for a mail (RFC 3207 4) */
		return greeting_over(g, SMTP_OWN_BACKEND_BROKEN);
	if (g->tls > SMTPPROXY_TLS_MAY)
		return greeting_over(g, SMTP_OWN_BACKEND_NO_TLS);
	g->state = GREETING_READY;
	return GREETING_ON_READY;
}

static enum greeting_event (*const ons[])(struct greeting *g, unsigned code, struct wire_writer *out) = {
	[GREETING_BANNER] = on_banner,
	[GREETING_HELLO] = on_hello,
	[GREETING_STARTTLS] = on_greeting_starttls,
};

static void note_said(struct greeting *g, const struct smtp_reply_line *line)
{
	struct wire_writer w = wire_writer((uint8_t *)g->words->said, GREETING_SAID_MAX - 1);
	struct smtp_span wire = { line->wire.at, line->wire.len - strlen("\r\n") };
	if (wire.len > GREETING_SAID_MAX - 1)
		wire.len = GREETING_SAID_MAX - 1;
	if (line->code >= 400)
		smtp_text_write(&w, wire);
	g->words->said[wire_writer_len(&w)] = '\0';
}

const char *greeting_said(const struct greeting *g)
{
	return g->words ? g->words->said : "";
}

enum greeting_event greeting_read(
	struct greeting *g, const char *in, size_t len, size_t *taken, struct wire_writer *out)
{
	struct smtp_reply_line line;
	assert(g->state <= GREETING_STARTTLS);
	const int r = smtp_reply_read(&g->reader, in, len, taken, &line);
	if (r < 0)
		return greeting_over(g, SMTP_OWN_BACKEND_BROKEN);
	if (r != SMTP_REPLY_NONE && g->state == GREETING_HELLO && line.code / 100 == 2)
		smtp_ehlo_note(&g->words->offers, &line);
	if (r != SMTP_REPLY_DONE)
		return GREETING_ON_MORE;
	g->code = line.code;
	note_said(g, &line);
	return ons[g->state](g, line.code, out);
}

int greeting_renew(struct greeting *g, struct smtp_span name, struct wire_writer *out)
{
	const int r = get_words(g);
	assert(g->state == GREETING_READY);
	if (r < 0)
		return r;
	smtp_span_copy(name, g->name, sizeof g->name);
	greeting_say_hello(g, g->plain_hello ? "HELO " : "EHLO ", out);
	return 0;
}

void greeting_secured(struct greeting *g, struct wire_writer *out)
{
	assert(g->state == GREETING_TLS);
	g->secured = 1;
	smtp_reply_begin(&g->reader, g->words->line, sizeof g->words->line);
	greeting_say_hello(g, "EHLO ", out);
}
