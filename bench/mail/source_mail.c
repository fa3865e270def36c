/* source_mail.c: the body is made once, hashed once and stuffed once. */
#include "bench/mail/source_mail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "proto/error.h"
#include "smtp/data.h"

#define LINE_LEN 80u /* of a generated body, with CRLF */

static const char few_lines[] = "La de da de da 1.\r\nLa de da de da 2.\r\nLa de da de da 3.\r\nLa de da de da 4.\r\n";

/* @length bytes in lines. */
static int source_mail_generate(struct source_mail *mail, size_t length)
{
	mail->body = malloc(length + 3);
	if (!mail->body)
		return CSSL_E_NO_MEMORY;
	memset(mail->body, 'X', length);
	for (size_t at = LINE_LEN; at + 2 <= length; at += LINE_LEN)
		memcpy(mail->body + at - 2, "\r\n", 2);
	if (length >= 2)
		memcpy(mail->body + length - 2, "\r\n", 2);
	mail->body_len = length;
	if (length < 2) { /* a mail ends with an end of line, or DATA adds one */
		memcpy(mail->body + length, "\r\n", 2);
		mail->body_len += 2;
	}
	return 0;
}

/* Each line gets its CRLF. */
static int read_lines(struct source_mail *mail, FILE *file)
{
	char *line = NULL;
	size_t cap = 0, room = 0;
	ssize_t len;
	while ((len = getline(&line, &cap, file)) > 0) {
		while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
			len--;
		if (mail->body_len + (size_t)len + 2 > room) {
			room = 2 * room + (size_t)len + 2;
			char *more = realloc(mail->body, room);
			if (!more)
				break;
			mail->body = more;
		}
		memcpy(mail->body + mail->body_len, line, (size_t)len);
		memcpy(mail->body + mail->body_len + len, "\r\n", 2);
		mail->body_len += (size_t)len + 2;
	}
	bool failed = len > 0 || ferror(file);
	free(line);
	return failed || mail->body_len == 0 ? CSSL_E_SYSTEM : 0;
}

static int read_file(struct source_mail *mail, const char *path)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return CSSL_E_SYSTEM;
	mail->has_own_head = 1;
	int r = read_lines(mail, file);
	fclose(file);
	return r;
}

/* The mark covers all bytes after the first empty line. */
static void mark_body(struct source_mail *mail)
{
	const char *from = mail->body;
	if (mail->has_own_head && memcmp(from, "\r\n", 2) == 0) {
		from += 2;
	} else if (mail->has_own_head) {
		const char *empty = memmem(from, mail->body_len, "\r\n\r\n", 4);
		from = empty ? empty + 4 : from + mail->body_len;
	}
	mail->mark.body_len = (size_t)(mail->body + mail->body_len - from);
	mail_mark_hash(from, mail->mark.body_len, mail->mark.hash);
}

static int source_mail_stuff(struct source_mail *mail)
{
	struct smtp_dots dots = { .last = { '\r', '\n' }, .begun = 1 };
	mail->wire = malloc(2 * mail->body_len + 8);
	if (!mail->wire)
		return CSSL_E_NO_MEMORY;
	mail->wire_len = smtp_dots_add(&dots, mail->body, mail->body_len, mail->wire);
	struct smtp_span end = smtp_dots_end(&dots);
	memcpy(mail->wire + mail->wire_len, end.at, end.len);
	mail->wire_len += end.len;
	return 0;
}

static int make_addresses(struct source_mail *mail, const struct source_options *o)
{
	char fallback[300];
	snprintf(fallback, sizeof fallback, "foo@%.255s", o->name);
	mail->from = strdup(o->from ? o->from : fallback);
	mail->to_local = strdup(o->to ? o->to : fallback);
	if (!mail->from || !mail->to_local)
		return CSSL_E_NO_MEMORY;
	mail->to_domain = strrchr(mail->to_local, '@');
	if (mail->to_domain)
		*mail->to_domain++ = 0;
	return 0;
}

int source_mail_make(struct source_mail *mail, const struct source_options *o)
{
	uint64_t run;
	memset(mail, 0, sizeof *mail);
	randombytes_buf(&run, sizeof run);
	snprintf(mail->run, sizeof mail->run, "%016" PRIx64, run);
	int r = make_addresses(mail, o);
	if (r == 0 && o->file)
		r = read_file(mail, o->file);
	else if (r == 0)
		r = source_mail_generate(mail, o->length ? o->length : sizeof few_lines - 1);
	if (r == 0 && !o->file && !o->length)
		memcpy(mail->body, few_lines, sizeof few_lines - 1);
	if (r == 0)
		r = source_mail_stuff(mail);
	if (r == 0)
		mail->has_8bit = smtp_span_has_8bit((struct smtp_span){ mail->body, mail->body_len });
	/* The mark is of the text without stuffed dots, as the sink sees it. */
	if (r == 0)
		mark_body(mail);
	else
		fprintf(stderr, "smtp-source: no mail: %s: %s\n", o->file ? o->file : "generated", cssl_strerror(r));
	return r;
}

void source_mail_free(struct source_mail *mail)
{
	free(mail->body);
	free(mail->wire);
	free(mail->from);
	free(mail->to_local);
}

static size_t source_mail_date(time_t when, char *out, size_t cap)
{
	struct tm tm;
	gmtime_r(&when, &tm);
	return strftime(out, cap, "%a, %d %b %Y %H:%M:%S +0000", &tm);
}

size_t source_mail_head(struct source_mail *mail, const struct source_options *o, uint64_t number, uint64_t made_us,
	char out[static SOURCE_HEAD_MAX])
{
	char when[64];
	snprintf(mail->mark.id, sizeof mail->mark.id, "%s-%" PRIu64, mail->run, number);
	size_t len = mail_mark_write(&mail->mark, out);
	if (mail->has_own_head)
		return len;
	source_mail_date((time_t)(made_us / 1000000), when, sizeof when);
	int more = snprintf(out + len, SOURCE_HEAD_MAX - len,
		"From: <%.300s>\r\nTo: <%.300s%s%.255s>\r\nDate: %s\r\nMessage-Id: <%s.%" PRIu64
		"@%.255s>\r\nSubject: %.300s\r\n\r\n",
		mail->from, mail->to_local, mail->to_domain ? "@" : "", mail->to_domain ? mail->to_domain : "", when,
		mail->mark.id, made_us, o->name, o->subject ? o->subject : mail->mark.id);
	return len + (size_t)more;
}

size_t source_mail_rcpt(const struct source_mail *mail, const struct source_options *o, uint64_t number, uint64_t index,
	char out[static SOURCE_COMMAND_MAX])
{
	char prefix[24] = "";
	if (o->names == SOURCE_NUMBERED_NAMES)
		snprintf(prefix, sizeof prefix, "%" PRIu64, number * o->recipients + index);
	else if (o->recipients > 1)
		snprintf(prefix, sizeof prefix, "%" PRIu64, index);
	return (size_t)snprintf(out, SOURCE_COMMAND_MAX, "RCPT TO:<%s%s%s%s>\r\n", prefix, mail->to_local,
		mail->to_domain ? "@" : "", mail->to_domain ? mail->to_domain : "");
}
