/* notice.c: the notice of a failure (RFC 3464, RFC 6522): text, the status of each failed recipient, and the header of
 * the message. A notice has a null sender, so that no notice is ever sent about it (RFC 5321 4.5.5). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "net/address.h"
#include "proto/error.h"
#include "smtp/params.h"
#include "smtpproxy/delivery/courier.h"
#include "smtpproxy/envelope/line_name.h"

#define HEADER_MAX 32768u /* bytes of the returned message's header */

/* Without NOTIFY the sender wants to hear of failures (RFC 3461 4.1). */
static int is_wanted(const struct envelope_recipient *one)
{
	struct smtp_params p = { 0 };
	struct smtp_span value, word;

	if (smtp_params_read(SMTP_VERB_RCPT, one->params, &p) || !smtp_params_has(&p, SMTP_PARAM_NOTIFY))
		return 1;
	value = p.value[SMTP_PARAM_NOTIFY];
	while (value.len) {
		word = smtp_span_until(&value, ',');
		if (smtp_span_is(word, "FAILURE"))
			return 1;
	}
	return 0;
}

/* The enhanced code of a reply such as "550 5.1.1 text". A reply without one gets the code of its first digit. The
 * class of a failure is 5 or 4. */
static void write_status(FILE *f, const char *reply)
{
	size_t len = strlen(reply) > 4 ? strspn(reply + 4, "0123456789.") : 0;

	if (len >= 5 && reply[5] == '.')
		fprintf(f, "Status: %.*s\r\n", (int)len, reply + 4);
	else
		fprintf(f, "Status: %c.0.0\r\n", reply[0] == '4' ? '4' : '5');
}

static void write_recipient(FILE *f, const struct envelope_recipient *one, const char *reply)
{
	fprintf(f, "\r\nFinal-Recipient: rfc822; %.*s\r\nAction: failed\r\n", (int)one->mailbox.len, one->mailbox.at);
	write_status(f, reply);
	fprintf(f, "Diagnostic-Code: smtp; %s\r\n", reply);
}

/* Calls @write for each failed recipient whose sender wants to know. Returns their number. */
static unsigned each_failed(const struct courier *c, FILE *f,
	void (*write)(FILE *f, const struct envelope_recipient *one, const char *reply))
{
	struct smtp_span rest = c->envelope.rest;
	struct envelope_recipient one;
	unsigned n = 0;

	for (unsigned i = 0; envelope_next(&rest, &one); i++) {
		if (c->fates.at[i].fate != FATE_FAILED || !is_wanted(&one))
			continue;
		if (write)
			write(f, &one, c->fates.at[i].reply);
		n++;
	}
	return n;
}

static void write_text_line(FILE *f, const struct envelope_recipient *one, const char *reply)
{
	fprintf(f, "    <%.*s>: %s\r\n", (int)one->mailbox.len, one->mailbox.at, reply);
}

static void write_date(FILE *f, const char *field, int64_t wall_ms)
{
	time_t s = (time_t)(wall_ms / 1000);
	char date[64];
	struct tm tm;

	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", gmtime_r(&s, &tm));
	fprintf(f, "%s: %s\r\n", field, date);
}

/* The header of the message: whole lines up to the empty one. */
static size_t header_len(const struct content_bytes *body)
{
	size_t end = body->len < HEADER_MAX ? body->len : HEADER_MAX;
	const char *empty = memmem(body->data, end, "\r\n\r\n", 4), *line;

	if (empty)
		return (size_t)(empty - (const char *)body->data) + 2;
	line = memrchr(body->data, '\n', end);
	return line ? (size_t)(line - (const char *)body->data) + 1 : 0;
}

static void write_head(const struct courier *c, FILE *f, const char *boundary)
{
	const char *name = c->parts->conf->name;

	fprintf(f, "From: Mail Delivery System <MAILER-DAEMON@%s>\r\nTo: <%.*s>\r\n", name, (int)c->envelope.sender.len,
		c->envelope.sender.at);
	write_date(f, "Date", worker_wall_ms());
	fprintf(f, "Message-ID: <%s@%s>\r\nSubject: Undelivered mail returned to its sender\r\n", boundary, name);
	fprintf(f, "Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n");
	fprintf(f, "Content-Type: multipart/report; report-type=delivery-status; boundary=\"%s\"\r\n\r\n", boundary);
}

static void write_parts(const struct courier *c, FILE *f, const char *boundary)
{
	const char *name = c->parts->conf->name;
	size_t header = header_len(&c->mail.body);
	struct smtp_params p = { 0 };

	fprintf(f, "--%s\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n", boundary);
	fprintf(f, "This is the mail server %s. Your message was not delivered to:\r\n\r\n", name);
	each_failed(c, f, write_text_line);
	fprintf(f, "\r\n--%s\r\nContent-Type: message/delivery-status\r\n\r\n", boundary);
	if (!smtp_params_read(SMTP_VERB_MAIL, c->envelope.params, &p) && smtp_params_has(&p, SMTP_PARAM_ENVID))
		fprintf(f, "Original-Envelope-Id: %.*s\r\n", (int)p.value[SMTP_PARAM_ENVID].len,
			p.value[SMTP_PARAM_ENVID].at);
	fprintf(f, "Reporting-MTA: dns; %s\r\n", name);
	write_date(f, "Arrival-Date", c->mail.accepted_ms);
	each_failed(c, f, write_recipient);
	fprintf(f, "\r\n--%s\r\nContent-Type: text/rfc822-headers\r\n\r\n", boundary);
	fwrite(c->mail.body.data, 1, header, f);
	fprintf(f, "\r\n--%s--\r\n", boundary);
}

static char *write_notice(const struct courier *c, size_t *len)
{
	char boundary[64], *text = NULL;
	FILE *f = open_memstream(&text, len);

	if (!f)
		return NULL;
	snprintf(boundary, sizeof boundary, "notice-%llx-%llx", (unsigned long long)c->mail.id,
		(unsigned long long)worker_wall_ms());
	write_head(c, f, boundary);
	write_parts(c, f, boundary);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static int store(struct courier *c, const struct envelope_text *e, const char *text, size_t len)
{
	char destination[LINE_NAME_MAX + 1];
	struct queue_mail m = {
		.destination = { (const uint8_t *)destination, 0 },
		.envelope = { (const uint8_t *)e->at, e->len },
		.body = { (const uint8_t *)text, len },
	};
	size_t note_len;
	char *note = fates_note(&c->fates, &note_len);
	int r;

	line_name_of(&c->parts->conf->queue, c->envelope.sender, destination);
	m.destination.len = strlen(destination);
	r = note ? queue_bounce(
			   c->parts->queue, c->mail.id, &m, (struct content_bytes){ (const uint8_t *)note, note_len })
		 : CSSL_E_NO_MEMORY;

	free(note);
	return r;
}

/* A sender without a domain, or no sender at all, cannot be told. */
static int can_be_told(const struct courier *c)
{
	char destination[LINE_NAME_MAX + 1];

	return c->envelope.sender.len && !line_name_of(&c->parts->conf->queue, c->envelope.sender, destination);
}

int notice_send(struct courier *c)
{
	struct envelope_text e = { 0 };
	char *text;
	size_t len;
	int r;

	c->parts->counters->failed++;
	if (!can_be_told(c) || !each_failed(c, NULL, NULL))
		return queue_bounce(c->parts->queue, c->mail.id, NULL, (struct content_bytes){ 0 });
	text = write_notice(c, &len);
	r = text ? 0 : -1;
	r = r ? r
	      : envelope_begin(&e, smtp_span_of(c->parts->conf->name), (struct smtp_span){ 0 }, (struct smtp_span){ 0 },
			(struct smtp_span){ 0 });
	r = r ? r : envelope_add(&e, c->envelope.sender, (struct smtp_span){ 0 });
	r = r ? r : store(c, &e, text, len);
	c->parts->counters->notices += !r;
	envelope_free(&e);
	free(text);
	return r;
}
