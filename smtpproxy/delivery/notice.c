/* notice.c: the mail that tells the sender of a message about its recipients (RFC 3464, RFC 6522): text, the status of
 * each recipient, and the message or its header. A notice has a null sender, so that no notice is ever sent about it
 * (RFC 5321 4.5.5). It consists of ASCII, except for a message that is returned in full and has other bytes. */
#include "smtpproxy/delivery/notice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/error.h"
#include "smtp/params.h"
#include "smtpproxy/envelope/envelope.h"

#define HEADER_MAX 32768u     /* bytes of the returned message's header */
#define FULL_MAX   (1u << 20) /* larger messages are not returned in full */
#define TEXT_MAX   1000u      /* of a parameter's value; no line of SMTP is longer */
#define QP_LINE    72u

enum told { TOLD_NOTHING, TOLD_FAILED, TOLD_RELAYED };

/* A recipient for a part of the notice. */
struct about {
	struct envelope_recipient one;
	struct smtp_params params;
	const struct fate_one *fate;
};

static bool notify_has(const struct smtp_params *p, const char *word)
{
	struct smtp_span value = p->value[SMTP_PARAM_NOTIFY];

	while (value.len)
		if (smtp_span_is(smtp_span_until(&value, ','), word))
			return true;
	return false;
}

/* Without NOTIFY the sender wants to hear of failures (RFC 3461 4.1). */
static enum told told_of(const struct about *a)
{
	const int has_notify = smtp_params_has(&a->params, SMTP_PARAM_NOTIFY);

	if (a->fate->fate == FATE_FAILED && (!has_notify || notify_has(&a->params, "FAILURE")))
		return TOLD_FAILED;
	if (a->fate->fate == FATE_DELIVERED && a->fate->reports == FATE_REPORTS_NONE &&
		notify_has(&a->params, "SUCCESS"))
		return TOLD_RELAYED;
	return TOLD_NOTHING;
}

/* Calls @write, if there is one, for each recipient of which the sender is told that. Returns their number. */
static unsigned notice_each(
	const struct courier *c, enum told told, FILE *f, void (*write)(FILE *f, const struct about *a))
{
	struct smtp_span rest = c->envelope.rest;
	struct about a;
	unsigned n = 0;

	for (unsigned i = 0; envelope_next(&rest, &a.one); i++) {
		a.params = (struct smtp_params){ 0 };
		a.fate = &c->fates.at[i];
		if (smtp_params_read(SMTP_VERB_RCPT, a.one.params, &a.params))
			a.params = (struct smtp_params){ 0 };
		if (told_of(&a) != told)
			continue;
		if (write)
			write(f, &a);
		n++;
	}
	return n;
}

/* A sender without a domain, or no sender at all, cannot be told. */
bool notice_is_due(const struct courier *c)
{
	char destination[LINE_NAME_MAX + 1];

	return c->envelope.sender.len && !line_name_of(&c->parts->conf->queue, c->envelope.sender, destination) &&
	       (notice_each(c, TOLD_FAILED, NULL, NULL) || notice_each(c, TOLD_RELAYED, NULL, NULL));
}

/* Text */

static bool is_plain(struct smtp_span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.at[i] < ' ' || text.at[i] > '~')
			return false;
	return true;
}

/* The value of a field that came as xtext. One that is no text when it is decoded stays as it came: it could end the
 * field and begin another one. */
static void write_decoded(FILE *f, const char *field, struct smtp_span type, struct smtp_span xtext)
{
	uint8_t text[TEXT_MAX];
	struct wire_writer w = wire_writer(text, sizeof text);
	const int r = smtp_xtext_read(&w, xtext);
	struct smtp_span out = { (const char *)text, r ? 0 : (size_t)wire_writer_len(&w) };

	if (r || !is_plain(out))
		out = xtext;
	if (is_plain(out))
		fprintf(f, "%s: %.*s%.*s\r\n", field, (int)type.len, type.at, (int)out.len, out.at);
}

/* The enhanced code of a reply such as "550 5.1.1 text". A reply without one gets the code of its first digit. The
 * class of a failure is 5 or 4. */
static void write_status(FILE *f, const struct fate_one *one)
{
	struct smtp_reply_line line = { 0 };
	const bool failed = one->fate == FATE_FAILED;

	if (!smtp_reply_line_parse(smtp_span_of(one->reply), &line) && line.enhanced.status)
		fprintf(f, "Status: %u.%u.%u\r\n", line.enhanced.status, line.enhanced.subject, line.enhanced.detail);
	else
		fprintf(f, "Status: %c.0.0\r\n", !failed ? '2' : line.code / 100 == 4 ? '4' : '5');
}

/* Only a reply of a mail server has the type smtp (RFC 3464 2.3.6). */
static void write_recipient(FILE *f, const struct about *a)
{
	struct smtp_span original = a->params.value[SMTP_PARAM_ORCPT];
	const char *end = original.len ? memchr(original.at, ';', original.len) : NULL;
	const size_t type = end ? (size_t)(end - original.at) + 1 : 0;

	fprintf(f, "\r\n");
	if (type)
		write_decoded(f, "Original-Recipient", (struct smtp_span){ original.at, type },
			(struct smtp_span){ original.at + type, original.len - type });
	fprintf(f, "Final-Recipient: rfc822; %.*s\r\nAction: %s\r\n", (int)a->one.mailbox.len, a->one.mailbox.at,
		a->fate->fate == FATE_FAILED ? "failed" : "relayed");
	write_status(f, a->fate);
	if (a->fate->from[0])
		fprintf(f, "Remote-MTA: dns; %s\r\n", a->fate->from);
	fprintf(f, "Diagnostic-Code: %s; %s\r\n", a->fate->from[0] ? "smtp" : "X-CSSL", a->fate->reply);
}

static void write_text_line(FILE *f, const struct about *a)
{
	fprintf(f, "    <%.*s>: %s\r\n", (int)a->one.mailbox.len, a->one.mailbox.at, a->fate->reply);
}

static void write_date(FILE *f, const char *field, int64_t wall_ms)
{
	time_t s = (time_t)(wall_ms / 1000);
	char date[64];
	struct tm tm;

	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", gmtime_r(&s, &tm));
	fprintf(f, "%s: %s\r\n", field, date);
}

/* The message */

enum returned { RETURNED_HEADER, RETURNED_QUOTED_HEADER, RETURNED_FULL, RETURNED_FULL_8BIT };

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

static bool is_ascii(const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] > 127)
			return false;
	return true;
}

/* RET=FULL counts only if a recipient has failed (RFC 3461 4.3). */
static enum returned returned_of(const struct courier *c)
{
	const struct content_bytes *body = &c->mail.body;
	struct smtp_params p = { 0 };

	if (!smtp_params_read(SMTP_VERB_MAIL, c->envelope.params, &p) && body->len <= FULL_MAX &&
		smtp_params_has(&p, SMTP_PARAM_RET) && smtp_span_is(p.value[SMTP_PARAM_RET], "FULL") &&
		notice_each(c, TOLD_FAILED, NULL, NULL))
		return is_ascii(body->data, body->len) ? RETURNED_FULL : RETURNED_FULL_8BIT;
	return is_ascii(body->data, header_len(body)) ? RETURNED_HEADER : RETURNED_QUOTED_HEADER;
}

/* RFC 2045 6.7. The lines of the header end with CR LF, and so do those of the result. */
static void write_quoted(FILE *f, const uint8_t *data, size_t len)
{
	unsigned column = 0;

	for (size_t i = 0; i < len; i++) {
		const bool is_end = data[i] == '\r' && i + 1 < len && data[i + 1] == '\n';
		/* A blank at the end of a line may be lost on the way, so it is encoded (rule 3). */
		const bool is_space = data[i] == ' ' && i + 1 < len && data[i + 1] != '\r';

		if (is_end) {
			column = 0;
			i++;
			fputs("\r\n", f);
			continue;
		}
		if (column > QP_LINE) {
			column = 0;
			fputs("=\r\n", f);
		}
		if (is_space || (data[i] > ' ' && data[i] <= '~' && data[i] != '='))
			column += (unsigned)fprintf(f, "%c", data[i]);
		else
			column += (unsigned)fprintf(f, "=%02X", data[i]);
	}
}

static void write_returned(const struct courier *c, FILE *f, enum returned returned)
{
	static const char *const heads[] = {
		[RETURNED_HEADER] = "text/rfc822-headers",
		[RETURNED_QUOTED_HEADER] = "text/rfc822-headers\r\nContent-Transfer-Encoding: quoted-printable",
		[RETURNED_FULL] = "message/rfc822",
		[RETURNED_FULL_8BIT] = "message/rfc822\r\nContent-Transfer-Encoding: 8bit",
	};
	const struct content_bytes *body = &c->mail.body;
	const size_t len = returned < RETURNED_FULL ? header_len(body) : body->len;

	fprintf(f, "Content-Type: %s\r\n\r\n", heads[returned]);
	if (returned == RETURNED_QUOTED_HEADER)
		write_quoted(f, body->data, len);
	else
		fwrite(body->data, 1, len, f);
}

/* The notice */

static void write_head(const struct courier *c, FILE *f, const char *boundary, enum returned returned)
{
	const char *name = c->parts->conf->name;
	const bool failed = notice_each(c, TOLD_FAILED, NULL, NULL) > 0;

	fprintf(f, "From: Mail Delivery System <MAILER-DAEMON@%s>\r\nTo: <%.*s>\r\n", name, (int)c->envelope.sender.len,
		c->envelope.sender.at);
	write_date(f, "Date", worker_wall_ms());
	fprintf(f, "Message-ID: <%s@%s>\r\nSubject: %s\r\n", boundary, name,
		failed ? "Undelivered mail returned to its sender" : "Mail passed on to a server without reports");
	fprintf(f, "Auto-Submitted: auto-replied\r\nMIME-Version: 1.0\r\n");
	if (returned == RETURNED_FULL_8BIT)
		fprintf(f, "Content-Transfer-Encoding: 8bit\r\n");
	fprintf(f, "Content-Type: multipart/report; report-type=delivery-status; boundary=\"%s\"\r\n\r\n", boundary);
}

static void write_parts(const struct courier *c, FILE *f, const char *boundary, enum returned returned)
{
	struct smtp_params p = { 0 };

	fprintf(f, "--%s\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n", boundary);
	fprintf(f, "This is the mail server %s.\r\n", c->parts->conf->name);
	if (notice_each(c, TOLD_FAILED, NULL, NULL))
		fprintf(f, "\r\nYour message was not delivered to:\r\n\r\n");
	notice_each(c, TOLD_FAILED, f, write_text_line);
	if (notice_each(c, TOLD_RELAYED, NULL, NULL))
		fprintf(f, "\r\nIt was passed on to a server that sends no reports of delivery, for:\r\n\r\n");
	notice_each(c, TOLD_RELAYED, f, write_text_line);
	fprintf(f, "\r\n--%s\r\nContent-Type: message/delivery-status\r\n\r\n", boundary);
	if (!smtp_params_read(SMTP_VERB_MAIL, c->envelope.params, &p) && smtp_params_has(&p, SMTP_PARAM_ENVID))
		write_decoded(f, "Original-Envelope-Id", (struct smtp_span){ 0 }, p.value[SMTP_PARAM_ENVID]);
	fprintf(f, "Reporting-MTA: dns; %s\r\n", c->parts->conf->name);
	write_date(f, "Arrival-Date", c->mail.accepted_ms);
	notice_each(c, TOLD_FAILED, f, write_recipient);
	notice_each(c, TOLD_RELAYED, f, write_recipient);
	fprintf(f, "\r\n--%s\r\n", boundary);
	write_returned(c, f, returned);
	fprintf(f, "\r\n--%s--\r\n", boundary);
}

static char *write_notice(const struct courier *c, enum returned returned, size_t *len)
{
	char boundary[64], *text = NULL;
	FILE *f = open_memstream(&text, len);

	if (!f)
		return NULL;
	snprintf(boundary, sizeof boundary, "notice-%llx-%llx", (unsigned long long)c->mail.id,
		(unsigned long long)worker_wall_ms());
	write_head(c, f, boundary, returned);
	write_parts(c, f, boundary, returned);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

int notice_send(struct courier *c)
{
	const enum returned returned = returned_of(c);
	const struct smtp_span none = { 0 };
	const char *params = returned == RETURNED_FULL_8BIT ? "BODY=8BITMIME" : "";
	char destination[LINE_NAME_MAX + 1], *text = NULL, *note = NULL;
	size_t len, note_len;
	struct envelope_text e = { 0 };
	struct queue_mail m;
	int r = CSSL_E_NO_MEMORY;

	if (!notice_is_due(c))
		return queue_bounce(c->parts->queue, c->mail.id, NULL, (struct content_bytes){ 0 });
	if ((text = write_notice(c, returned, &len)) && (note = fates_note(&c->fates, &note_len)) &&
		!envelope_begin(&e, smtp_span_of(c->parts->conf->name), none, none, smtp_span_of(params)) &&
		!envelope_add(&e, c->envelope.sender, none)) {
		line_name_of(&c->parts->conf->queue, c->envelope.sender, destination);
		m = (struct queue_mail){ .destination = { (const uint8_t *)destination, strlen(destination) },
			.envelope = { (const uint8_t *)e.at, e.len },
			.body = { (const uint8_t *)text, len } };
		r = queue_bounce(
			c->parts->queue, c->mail.id, &m, (struct content_bytes){ (const uint8_t *)note, note_len });
	}
	c->parts->counters->notices += !r;
	envelope_free(&e);
	free(note);
	free(text);
	return r;
}
