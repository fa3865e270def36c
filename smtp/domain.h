/* domain.h: names of hosts in SMTP: domains, address literals, and the arguments of HELO and EHLO. */
#pragma once

#include "smtp/span.h"

#define SMTP_DOMAIN_MAX 255u /* RFC 5321 4.5.3.1.2 */
#define SMTP_LABEL_MAX  63u  /* RFC 1035 2.3.4 */

/* How strictly a line is read; bits. */
enum smtp_parse_flag {
	SMTP_PARSE_UTF8 = 1,    /* UTF-8 is allowed where RFC 6531 3.3 allows it */
	SMTP_PARSE_LENIENT = 2, /* common mistakes of senders that all servers accept; each function lists them */
	SMTP_PARSE_JUDGED = 4,  /* the server behind judges paths, and we only what could hide a parameter from us */
};

enum smtp_domain_kind { SMTP_DOMAIN_BAD, SMTP_DOMAIN_NAME, SMTP_DOMAIN_IPV4, SMTP_DOMAIN_IPV6, SMTP_DOMAIN_GENERAL };

/* RFC 5321 4.1.2 Domain and 4.1.3 address-literal with its brackets. Lenient: underscores, labels that begin or end
 * with a hyphen, and a dot behind the last one. */
enum smtp_domain_kind smtp_domain_kind(struct smtp_span text, unsigned flags);

#define SMTP_LITERAL_MAX 64u

/* Of an IPv4 or IPv6 address, of 4 or 16 bytes: "[192.0.2.1]", "[IPv6:2001:db8::1]". */
void smtp_domain_literal(const uint8_t *bytes, size_t len, char out[static SMTP_LITERAL_MAX]);

/* A pattern of an operator's: "example.org", or "*.example.org" for its subdomains, of any depth, without itself. */
bool smtp_domain_pattern_is_good(const char *pattern);
bool smtp_domain_is_in(struct smtp_span domain, const char *pattern);

/* The argument of HELO and EHLO (RFC 5321 4.1.1.1). True when it is a domain or a literal; lenient: any text in
 * UTF-8 of at most 255 bytes without control characters (many clients send a bare address, or the name of a
 * workstation or of its user). */
bool smtp_domain_is_greeting(struct smtp_span text, unsigned flags);
