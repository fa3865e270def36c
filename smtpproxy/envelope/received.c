/* received.c: a name that is no domain stands in a comment, without characters that could end it, and the address in
 * its place. */
#include "smtpproxy/envelope/received.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "smtp/domain.h"

#define LITERAL_MAX (INET6_ADDRSTRLEN + sizeof "[IPv6:]")

/* RFC 5321 4.1.3: "[192.0.2.1]", "[IPv6:2001:db8::1]". */
static void write_literal(const struct sockaddr *client, char out[static LITERAL_MAX])
{
	const int is_v6 = client->sa_family == AF_INET6;
	char text[INET6_ADDRSTRLEN] = "";
	inet_ntop(client->sa_family,
		is_v6 ? (const void *)&((const struct sockaddr_in6 *)client)->sin6_addr
		      : &((const struct sockaddr_in *)client)->sin_addr,
		text, sizeof text);
	snprintf(out, LITERAL_MAX, "[%s%s]", is_v6 ? "IPv6:" : "", text);
}

static void write_comment(const char *hello, char *out, size_t cap)
{
	snprintf(out, cap, " (EHLO %.*s)", (int)SMTP_DOMAIN_MAX, hello);
	for (char *c = out + strlen(" (EHLO "); c[0] && c[1]; c++)
		*c = *c > ' ' && *c <= '~' && !strchr("<>()\\\";@", *c) ? *c : '?';
}

size_t received_write(const struct received *r, char out[static RECEIVED_MAX])
{
	static const char *const words[] = {
		[RECEIVED_SMTP] = "SMTP", [RECEIVED_ESMTP] = "ESMTP", [RECEIVED_ESMTPS] = "ESMTPS"
	};
	const int is_domain = smtp_domain_kind(smtp_span_of(r->hello), 0) != SMTP_DOMAIN_BAD;
	char literal[LITERAL_MAX], comment[SMTP_DOMAIN_MAX + 16] = "", date[64];
	struct tm tm;
	write_literal(r->client, literal);
	if (!is_domain)
		write_comment(r->hello, comment, sizeof comment);
	strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S +0000", gmtime_r(&r->time, &tm));
	return (size_t)snprintf(out, RECEIVED_MAX, "Received: from %.*s (%s)%s\r\n\tby %.*s with %s id %s;\r\n\t%s\r\n",
		(int)SMTP_DOMAIN_MAX, is_domain ? r->hello : literal, literal, comment, (int)SMTP_DOMAIN_MAX, r->by,
		words[r->with], r->id, date);
}
