/* envelope.c: writes and reads texts that NUL ends. A line of SMTP never has a NUL (smtp/command.h refuses it). */
#include "smtpproxy/envelope/envelope.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/socket/address.h"
#include "proto/error.h"
#include "smtp/domain.h"

#define VERSION    1
#define TEXTS      4u /* before the recipients */
#define ROOM_FIRST 256u

void envelope_free(struct envelope_text *e)
{
	free(e->at);
	*e = (struct envelope_text){ 0 };
}

static int envelope_text_add(struct envelope_text *e, struct smtp_span text)
{
	size_t cap = e->cap ? e->cap : ROOM_FIRST;
	char *at;

	while (cap < e->len + text.len + 1)
		cap *= 2;
	at = cap > e->cap ? realloc(e->at, cap) : e->at;
	if (!at)
		return CSSL_E_NO_MEMORY;
	e->at = at;
	e->cap = cap;
	if (text.len)
		memcpy(e->at + e->len, text.at, text.len);
	e->at[e->len + text.len] = '\0';
	e->len += text.len + 1;
	return 0;
}

int envelope_copy(struct envelope_text *e, const struct envelope_text *from)
{
	e->at = malloc(from->cap);
	if (!e->at)
		return CSSL_E_NO_MEMORY;
	memcpy(e->at, from->at, from->len);
	e->len = from->len;
	e->cap = from->cap;
	return 0;
}

int envelope_begin(struct envelope_text *e, struct smtp_span hello, struct smtp_span client, struct smtp_span sender,
	struct smtp_span params)
{
	const struct smtp_span texts[TEXTS] = { hello, client, sender, params };
	int r = envelope_text_add(e, (struct smtp_span){ 0 });

	if (r)
		return r;
	e->at[0] = VERSION; /* it takes the place of the NUL of an empty text */
	for (size_t i = 0; !r && i < TEXTS; i++)
		r = envelope_text_add(e, texts[i]);
	return r;
}

int envelope_add(struct envelope_text *e, struct smtp_span mailbox, struct smtp_span params)
{
	size_t before = e->len;
	int r = envelope_text_add(e, mailbox);

	r = r ? r : envelope_text_add(e, params);
	if (r)
		e->len = before;
	return r;
}

/* Up to the next NUL. */
static int envelope_take(struct smtp_span *rest, struct smtp_span *out)
{
	*out = smtp_span_until(rest, '\0');
	return rest->at ? 0 : CSSL_E_TRUNCATED;
}

bool envelope_next(struct smtp_span *rest, struct envelope_recipient *out)
{
	return !envelope_take(rest, &out->mailbox) && !envelope_take(rest, &out->params);
}

int envelope_read(struct envelope *out, const char *text, size_t len)
{
	struct smtp_span *texts[TEXTS] = { &out->hello, &out->client, &out->sender, &out->params };
	struct smtp_span rest = { text + 1, len - 1 };
	struct envelope_recipient one;

	if (!len)
		return CSSL_E_TRUNCATED;
	if (text[0] != VERSION)
		return CSSL_E_VERSION;
	for (size_t i = 0; i < TEXTS; i++)
		if (envelope_take(&rest, texts[i]))
			return CSSL_E_TRUNCATED;
	out->rest = rest;
	for (out->recipients = 0; envelope_next(&rest, &one); out->recipients++)
		;
	return rest.len || !out->recipients ? CSSL_E_TRUNCATED : 0;
}

bool envelope_is_secured(const struct envelope *e)
{
	const size_t len = sizeof ENVELOPE_SECURED - 1;

	return e->params.len >= len && memcmp(e->params.at + e->params.len - len, ENVELOPE_SECURED, len) == 0;
}

struct smtp_span envelope_domain(struct smtp_span mailbox)
{
	for (size_t i = mailbox.len; i > 0; i--)
		if (mailbox.at[i - 1] == '@')
			return (struct smtp_span){ mailbox.at + i, mailbox.len - i };
	return (struct smtp_span){ 0 };
}

/* Lines of the queue. Domains have no port; that tells them from addresses. */

int line_name_of(const struct smtpproxy_queue *conf, struct smtp_span mailbox, char out[static LINE_NAME_MAX + 1])
{
	const struct smtp_span domain = envelope_domain(mailbox);
	char address[ADDRESS_TEXT_MAX];
	const int r = smtp_span_copy(domain, out, LINE_NAME_MAX + 1);
	smtp_lower(out);
	if (conf->next_hop.ss_family != AF_UNSPEC && !line_name_domain(conf, out)) {
		snprintf(out, LINE_NAME_MAX + 1, "%s",
			address_format((const struct sockaddr *)&conf->next_hop, address));
		return 0;
	}
	return domain.len == 0 ? CSSL_E_NOT_FOUND : r;
}

int line_name_address(const char *name, struct sockaddr_storage *out)
{
	const bool is_address = address_parse(name, out) == 0 && out->ss_family != AF_UNIX &&
				address_port((const struct sockaddr *)out) > 0;
	return is_address ? 0 : CSSL_E_NOT_FOUND;
}

const struct smtpproxy_domain *line_name_domain(const struct smtpproxy_queue *conf, const char *name)
{
	for (size_t i = 0; i < conf->domain_count; i++)
		if (smtp_domain_is_in(smtp_span_of(name), conf->domains[i].domain))
			return &conf->domains[i];
	return NULL;
}

/* Received. A name that is no domain stands in a comment, without characters that could end it, and the address in its
 * place. */

static void write_comment(const char *hello, char *out, size_t cap)
{
	snprintf(out, cap, " (EHLO %.*s)", (int)SMTP_DOMAIN_MAX, hello);
	for (char *c = out + strlen(" (EHLO "); c[0] && c[1]; c++)
		*c = *c > ' ' && *c <= '~' && !strchr("<>()\\\";@", *c) ? *c : '?';
}

size_t received_write(const struct received *r, char out[static RECEIVED_MAX])
{
	const bool is_domain = smtp_domain_kind(smtp_span_of(r->hello), 0) != SMTP_DOMAIN_BAD;
	char literal[SMTP_LITERAL_MAX], comment[SMTP_DOMAIN_MAX + 16] = "", date[64];
	uint8_t bytes[16];
	struct tm tm;
	smtp_domain_literal(bytes, address_bytes(r->client, bytes), literal);
	if (!is_domain)
		write_comment(r->hello, comment, sizeof comment);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", gmtime_r(&r->time, &tm));
	return (size_t)snprintf(out, RECEIVED_MAX, "Received: from %.*s (%s)%s\r\n\tby %.*s with %s id %s;\r\n\t%s\r\n",
		(int)SMTP_DOMAIN_MAX, is_domain ? r->hello : literal, literal, comment, (int)SMTP_DOMAIN_MAX, r->by,
		r->with, r->id, date);
}
