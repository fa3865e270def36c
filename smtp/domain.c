/* domain.c: RFC 5321 4.1.2 and 4.1.3. An address inside brackets is read by inet_pton(). */
#include "smtp/domain.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define IPV6_TAG "IPv6:"

static int label_byte_is_good(char c, unsigned flags)
{
	if (smtp_is_alnum(c) || c == '-')
		return 1;
	if (c == '_')
		return flags & SMTP_PARSE_LENIENT;
	return (unsigned char)c > 127 && (flags & SMTP_PARSE_UTF8);
}

static bool label_is_good(struct smtp_span label, unsigned flags)
{
	if (label.len == 0 || label.len > SMTP_LABEL_MAX)
		return false;
	for (size_t i = 0; i < label.len; i++)
		if (!label_byte_is_good(label.at[i], flags))
			return false;
	return (flags & SMTP_PARSE_LENIENT) || (label.at[0] != '-' && label.at[label.len - 1] != '-');
}

static bool name_is_good(struct smtp_span name, unsigned flags)
{
	if ((flags & SMTP_PARSE_LENIENT) && name.len > 1 && name.at[name.len - 1] == '.')
		name.len--;
	if (name.at[name.len - 1] == '.' || !smtp_span_is_utf8(name))
		return false;
	while (name.len > 0)
		if (!label_is_good(smtp_span_until(&name, '.'), flags))
			return false;
	return true;
}

static bool is_address(int family, struct smtp_span text)
{
	char word[INET6_ADDRSTRLEN];
	unsigned char address[16];
	return smtp_span_copy(text, word, sizeof word) == 0 && strlen(word) == text.len &&
	       inet_pton(family, word, address) == 1;
}

/* General-address-literal: a tag, a colon, then dcontent (printable, no brackets and no backslash). */
static bool is_general(struct smtp_span text)
{
	struct smtp_span rest = text, tag = smtp_span_until(&rest, ':');
	return rest.len > 0 && label_is_good(tag, 0) && smtp_span_is_graphic(rest, "[]\\");
}

static enum smtp_domain_kind literal_kind(struct smtp_span inside)
{
	size_t tag_len = sizeof IPV6_TAG - 1;
	if (inside.len > tag_len && smtp_span_is((struct smtp_span){ inside.at, tag_len }, IPV6_TAG)) {
		struct smtp_span address = { inside.at + tag_len, inside.len - tag_len };
		return is_address(AF_INET6, address) ? SMTP_DOMAIN_IPV6 : SMTP_DOMAIN_BAD;
	}
	if (is_address(AF_INET, inside))
		return SMTP_DOMAIN_IPV4;
	return is_general(inside) ? SMTP_DOMAIN_GENERAL : SMTP_DOMAIN_BAD;
}

enum smtp_domain_kind smtp_domain_kind(struct smtp_span text, unsigned flags)
{
	if (text.len == 0 || text.len > SMTP_DOMAIN_MAX)
		return SMTP_DOMAIN_BAD;
	if (text.at[0] != '[')
		return name_is_good(text, flags) ? SMTP_DOMAIN_NAME : SMTP_DOMAIN_BAD;
	if (text.len < 3 || text.at[text.len - 1] != ']')
		return SMTP_DOMAIN_BAD;
	return literal_kind((struct smtp_span){ text.at + 1, text.len - 2 });
}

void smtp_domain_literal(const uint8_t *bytes, size_t len, char out[static SMTP_LITERAL_MAX])
{
	char text[INET6_ADDRSTRLEN] = "";
	inet_ntop(len == 16 ? AF_INET6 : AF_INET, bytes, text, sizeof text);
	snprintf(out, SMTP_LITERAL_MAX, "[%s%s]", len == 16 ? IPV6_TAG : "", text);
}

bool smtp_domain_pattern_is_good(const char *pattern)
{
	return smtp_domain_kind(smtp_span_of(pattern + (strncmp(pattern, "*.", 2) == 0 ? 2 : 0)), 0) != SMTP_DOMAIN_BAD;
}

bool smtp_domain_is_in(struct smtp_span domain, const char *pattern)
{
	const struct smtp_span behind = smtp_span_of(pattern + (*pattern == '*'));
	if (*pattern == '*' && domain.len > behind.len)
		domain = (struct smtp_span){ domain.at + domain.len - behind.len, behind.len };
	return smtp_span_equal(domain, behind);
}

bool smtp_domain_is_greeting(struct smtp_span text, unsigned flags)
{
	if (smtp_domain_kind(text, flags) != SMTP_DOMAIN_BAD)
		return true;
	return (flags & SMTP_PARSE_LENIENT) && text.len > 0 && text.len <= SMTP_DOMAIN_MAX && smtp_span_is_utf8(text);
}
