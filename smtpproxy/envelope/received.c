/* received.c: a name that is no domain stands in a comment, without characters that could end it, and the address in
 * its place. */
#include "smtpproxy/envelope/received.h"

#include <stdio.h>
#include <string.h>

#include "net/address.h"
#include "smtp/domain.h"

static void write_comment(const char *hello, char *out, size_t cap)
{
	snprintf(out, cap, " (EHLO %.*s)", (int)SMTP_DOMAIN_MAX, hello);
	for (char *c = out + strlen(" (EHLO "); c[0] && c[1]; c++)
		*c = *c > ' ' && *c <= '~' && !strchr("<>()\\\";@", *c) ? *c : '?';
}

size_t received_write(const struct received *r, char out[static RECEIVED_MAX])
{
	const int is_domain = smtp_domain_kind(smtp_span_of(r->hello), 0) != SMTP_DOMAIN_BAD;
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
