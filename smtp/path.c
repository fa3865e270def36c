/* path.c: <route:local@domain>. First finds the end of the path, with respect to quotes, and then checks its parts. */
#include "smtp/path.h"

#include <string.h>

#include "proto/error.h"

#define PATH_MAX_LENIENT 1000u

static const char atext_marks[] = "!#$%&'*+-/=?^_`{|}~";

static int is_atext(char c, unsigned flags)
{
	if (smtp_is_alnum(c))
		return 1;
	if ((unsigned char)c > 127)
		return flags & SMTP_PARSE_UTF8;
	return c && strchr(atext_marks, c);
}

/* Length up to the first of @stops outside of quotes; the whole length when there is none. */
static size_t len_until(struct smtp_span text, const char *stops)
{
	bool quoted = false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.at[i];
		if (c && !quoted && strchr(stops, c))
			return i;
		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
	}
	return text.len;
}

/* RFC 5321 4.1.2 Quoted-string: qtextSMTP or a backslash and a printable character. */
static bool quoted_is_good(struct smtp_span local, unsigned flags)
{
	if (local.len < 2 || local.at[local.len - 1] != '"')
		return false;
	for (size_t i = 1; i + 1 < local.len; i++) {
		char c = local.at[i];
		/* a backslash takes the next character as it is, which cannot be the closing quote */
		if (c == '\\' && ++i + 1 >= local.len)
			return false;
		bool printable = local.at[i] >= ' ' && local.at[i] <= '~';
		bool wide = c != '\\' && (unsigned char)c > 127 && (flags & SMTP_PARSE_UTF8);
		if ((!printable && !wide) || c == '"')
			return false;
	}
	return true;
}

/* RFC 5321 4.1.2 Dot-string. */
static bool dotted_is_good(struct smtp_span local, unsigned flags)
{
	char before = '.';
	for (size_t i = 0; i < local.len; before = local.at[i++]) {
		char c = local.at[i];
		if (c == '.' ? before == '.' && !(flags & SMTP_PARSE_LENIENT) : !is_atext(c, flags))
			return false;
	}
	return before != '.' || (flags & SMTP_PARSE_LENIENT);
}

static bool local_is_good(struct smtp_span local, unsigned flags)
{
	size_t max = flags & SMTP_PARSE_LENIENT ? PATH_MAX_LENIENT : SMTP_LOCAL_MAX;
	if (local.len == 0 || local.len > max || !smtp_span_is_utf8(local))
		return false;
	return local.at[0] == '"' ? quoted_is_good(local, flags) : dotted_is_good(local, flags);
}

/* RFC 5321 4.1.2 A-d-l: "@" Domain *( "," "@" Domain ). */
static bool route_is_good(struct smtp_span route, unsigned flags)
{
	while (route.len > 0) {
		struct smtp_span hop = smtp_span_until(&route, ',');
		if (hop.len < 2 || hop.at[0] != '@')
			return false;
		if (smtp_domain_kind((struct smtp_span){ hop.at + 1, hop.len - 1 }, flags) == SMTP_DOMAIN_BAD)
			return false;
	}
	return true;
}

/* Takes "@one,@two:" from the head of @inside. */
static int take_route(struct smtp_span *inside, unsigned flags, struct smtp_path *out)
{
	if (inside->len == 0 || inside->at[0] != '@')
		return 0;
	size_t end = 0; /* a colon inside the brackets of a literal does not end the route */
	for (bool literal = false; end < inside->len && (literal || inside->at[end] != ':'); end++)
		literal = inside->at[end] == '[' || (literal && inside->at[end] != ']');
	if (end == inside->len || !route_is_good((struct smtp_span){ inside->at, end }, flags))
		return CSSL_E_RANGE;
	out->route = (struct smtp_span){ inside->at, end + 1 };
	inside->at += end + 1;
	inside->len -= end + 1;
	return 0;
}

static int read_mailbox(struct smtp_span mailbox, unsigned flags, struct smtp_path *out)
{
	size_t at = len_until(mailbox, "@");
	out->mailbox = mailbox;
	out->utf8 = smtp_span_has_8bit(mailbox);
	out->local = (struct smtp_span){ mailbox.at, at };
	if (!local_is_good(out->local, flags))
		return CSSL_E_RANGE;
	out->kind = SMTP_PATH_MAILBOX;
	if (at == mailbox.len) {
		bool postmaster = smtp_span_is(mailbox, "postmaster");
		out->kind = postmaster ? SMTP_PATH_POSTMASTER : SMTP_PATH_MAILBOX;
		return postmaster || (flags & SMTP_PARSE_LENIENT) ? 0 : CSSL_E_RANGE;
	}
	out->domain = (struct smtp_span){ mailbox.at + at + 1, mailbox.len - at - 1 };
	out->domain_kind = smtp_domain_kind(out->domain, flags);
	if (out->domain_kind == SMTP_DOMAIN_NAME && mailbox.at[mailbox.len - 1] == '.') {
		out->domain.len--;
		out->mailbox.len--;
	}
	return out->domain_kind == SMTP_DOMAIN_BAD ? CSSL_E_RANGE : 0;
}

/* Takes the text between the brackets, or the first word, from @rest. */
static int take_inside(struct smtp_span *rest, unsigned flags, struct smtp_span *inside)
{
	int bracket = rest->len > 0 && rest->at[0] == '<';
	if (!bracket && !(flags & SMTP_PARSE_LENIENT))
		return CSSL_E_RANGE;
	/* Without brackets the path is one word, so that parameters may follow it. */
	struct smtp_span from = { rest->at + bracket, rest->len - (size_t)bracket };
	size_t len = len_until(from, bracket ? ">" : " \t");
	if (bracket && len == from.len)
		return CSSL_E_RANGE;
	*inside = (struct smtp_span){ from.at, len };
	if (flags & SMTP_PARSE_LENIENT)
		*inside = smtp_span_trim(*inside);
	size_t taken = len + 2 * (size_t)bracket;
	rest->at += taken;
	rest->len -= taken;
	return taken > 0 && taken <= (flags & SMTP_PARSE_LENIENT ? PATH_MAX_LENIENT : SMTP_PATH_MAX) ? 0 : CSSL_E_RANGE;
}

int smtp_path_take(struct smtp_span *rest, unsigned flags, struct smtp_path *out)
{
	struct smtp_span inside;
	memset(out, 0, sizeof *out);
	int r = take_inside(rest, flags, &inside);
	if (r < 0 || inside.len == 0)
		return r;
	r = take_route(&inside, flags, out);
	return r < 0 ? r : read_mailbox(inside, flags, out);
}
