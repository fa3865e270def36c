/* log_line.c: the fields of a line come as a printf format. Pair by pair it is cut into key and value, the value's
 * conversions are printed by themselves, and the result is quoted for the line's format. So no value from a peer can
 * look like another field or another line.
 */
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/report/log_line.h"
#include "proto/ids.h"

#define VALUE_MAX   1024u
#define ENDING_ROOM 32u /* for the mark of a cut line, the bracket and the newline */

static void line_put(struct log_line *l, const char *text, size_t len)
{
	if (l->state == LINE_CUT || len > l->cap - ENDING_ROOM - l->len) {
		l->state = LINE_CUT;
		return;
	}
	memcpy(l->out + l->len, text, len);
	l->len += len;
}

static void line_put_text(struct log_line *l, const char *text)
{
	line_put(l, text, strlen(text));
}

/* Quoting */

/* Bytes of the UTF-8 sequence at @s (RFC 3629 4), 0 if there is none. */
static size_t utf8_len(const uint8_t *s, size_t len)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	if (n > len)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* longer than it need be, a surrogate, or above U+10FFFF (RFC 3629 section 3) */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
		(s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static bool is_control(const uint8_t *s, size_t n)
{
	return (n == 1 && (s[0] < 0x20 || s[0] == 0x7f)) || (n == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

static bool is_plain(const char *value, size_t len)
{
	const uint8_t *s = (const uint8_t *)value;

	for (size_t i = 0; i < len;) {
		size_t n = utf8_len(s + i, len - i);
		if (n == 0 || is_control(s + i, n) || strchr(" \"\\=", s[i]))
			return false;
		i += n;
	}
	return len > 0;
}

/* Writes a character that cannot stand as it is. @n 0: the byte at @s is not UTF-8. Returns the bytes used up. */
static size_t put_escaped(struct log_line *l, const uint8_t *s, size_t n)
{
	char escape[8];
	unsigned code = n == 2 ? ((s[0] & 0x1fu) << 6) | (s[1] & 0x3fu) : s[0];

	if (l->format == LOG_TEXT)
		snprintf(escape, sizeof escape, "\\x%02x", s[0]);
	else
		snprintf(escape, sizeof escape, "\\u%04x", n == 0 ? 0xfffdu : code);
	line_put_text(l, escape);
	return l->format == LOG_JSON && n == 2 ? 2 : 1;
}

static void put_quoted(struct log_line *l, const char *value, size_t len)
{
	const uint8_t *s = (const uint8_t *)value;

	line_put_text(l, "\"");
	for (size_t i = 0; i < len;) {
		size_t n = utf8_len(s + i, len - i);
		if (n == 0 || is_control(s + i, n)) {
			i += put_escaped(l, s + i, n);
			continue;
		}
		if (s[i] == '"' || s[i] == '\\')
			line_put_text(l, "\\");
		line_put(l, value + i, n);
		i += n;
	}
	line_put_text(l, "\"");
}

/* Values */

struct arguments {
	va_list list;
};

struct value {
	char text[VALUE_MAX];
	size_t len;
	enum { VALUE_TEXT, VALUE_NUMBER } kind;
};

/* One conversion without its length modifier; a star is replaced by its number. */
struct conversion {
	char spec[32];
	size_t spec_len;
	char length; /* 'H' hh, 'h', 'l', 'L' ll, 'z', 'j', 't', 0 */
	char type;
};

static const char *parse_conversion(const char *f, struct conversion *c, struct arguments *args)
{
	*c = (struct conversion){ .spec = "%", .spec_len = 1 };
	for (; *f && strchr("-+#0123456789.*", *f) && c->spec_len < sizeof c->spec - 16; f++) {
		if (*f == '*')
			c->spec_len += (size_t)sprintf(c->spec + c->spec_len, "%d", va_arg(args->list, int));
		else
			c->spec[c->spec_len++] = *f;
	}
	for (; *f && strchr("hlzjt", *f); f++)
		c->length = c->length == *f ? (char)(*f - 'a' + 'A') : *f;
	c->type = *f;
	return *f ? f + 1 : f;
}

static intmax_t next_signed(struct arguments *args, char length)
{
	switch (length) {
	case 'H': return (signed char)va_arg(args->list, int);
	case 'h': return (short)va_arg(args->list, int);
	case 'l': return va_arg(args->list, long);
	case 'L': return va_arg(args->list, long long);
	case 'z':
	case 't': return va_arg(args->list, ptrdiff_t);
	case 'j': return va_arg(args->list, intmax_t);
	default: return va_arg(args->list, int);
	}
}

static uintmax_t next_unsigned(struct arguments *args, char length)
{
	switch (length) {
	case 'H': return (unsigned char)va_arg(args->list, int);
	case 'h': return (unsigned short)va_arg(args->list, int);
	case 'l': return va_arg(args->list, unsigned long);
	case 'L': return va_arg(args->list, unsigned long long);
	case 'z':
	case 't': return va_arg(args->list, size_t);
	case 'j': return va_arg(args->list, uintmax_t);
	default: return va_arg(args->list, unsigned);
	}
}

/* As snprintf(). */
static int print_conversion(char *out, size_t cap, struct conversion *c, struct arguments *args)
{
	if (strchr("diuxXo", c->type)) /* all integers are printed as intmax_t */
		c->spec[c->spec_len++] = 'j';
	c->spec[c->spec_len++] = c->type;
	c->spec[c->spec_len] = '\0';
	switch (c->type) {
	case 'd':
	case 'i': return snprintf(out, cap, c->spec, next_signed(args, c->length));
	case 'u':
	case 'x':
	case 'X':
	case 'o': return snprintf(out, cap, c->spec, next_unsigned(args, c->length));
	case 'c': return snprintf(out, cap, c->spec, va_arg(args->list, int));
	case 's': return snprintf(out, cap, c->spec, va_arg(args->list, const char *));
	case 'f':
	case 'g':
	case 'e': return snprintf(out, cap, c->spec, va_arg(args->list, double));
	default: return snprintf(out, cap, "%c", c->type);
	}
}

/* Is the format at @f nothing but one plain %d or %u, with any length? */
static bool is_number_format(const char *f)
{
	if (*f++ != '%')
		return false;
	f += strspn(f, "hlzjt");
	return *f && strchr("diu", *f) && (f[1] == ' ' || !f[1]);
}

/* Print the value whose format is at @f, up to @end or to the end of the format. */
static const char *print_up_to(struct value *v, const char *f, char end, struct arguments *args)
{
	while (*f && *f != end) {
		size_t room = sizeof v->text - v->len;
		struct conversion c;
		if (*f != '%') {
			if (room > 1)
				v->text[v->len++] = *f;
			f++;
			continue;
		}
		f = parse_conversion(f + 1, &c, args);
		int n = print_conversion(v->text + v->len, room, &c, args);
		v->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room - 1;
	}
	return f;
}

/* A value ends at a space, or, if it begins with a quotation mark, at the next one. */
static const char *print_value(struct value *v, const char *f, struct arguments *args)
{
	v->len = 0;
	v->kind = is_number_format(f) ? VALUE_NUMBER : VALUE_TEXT;
	if (*f != '"')
		return print_up_to(v, f, ' ', args);
	f = print_up_to(v, f + 1, '"', args);
	return *f ? f + 1 : f;
}

static void put_field(struct log_line *l, const char *key, size_t key_len, const struct value *v)
{
	size_t before = l->len;

	line_put_text(l, l->format == LOG_JSON ? ",\"" : " ");
	line_put(l, key, key_len);
	line_put_text(l, l->format == LOG_JSON ? "\":" : "=");
	if (v->kind == VALUE_NUMBER || (l->format == LOG_TEXT && is_plain(v->text, v->len)))
		line_put(l, v->text, v->len);
	else
		put_quoted(l, v->text, v->len);
	if (l->state == LINE_CUT)
		l->len = before;
}

void log_line_fields(struct log_line *l, const char *fields, va_list list)
{
	struct arguments args;
	struct value value;

	va_copy(args.list, list);
	for (const char *f = fields ? fields : ""; *f && l->state == LINE_WHOLE;) {
		f += strspn(f, " ");
		size_t key_len = strcspn(f, "= ");
		const char *key = f;
		f += key_len;
		if (*f != '=')
			continue;
		f = print_value(&value, f + 1, &args);
		put_field(l, key, key_len, &value);
	}
	va_end(args.list);
}

/* The line */

static void format_time(char out[static 32])
{
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	size_t len = strftime(out, 32, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(out + len, 32 - len, ".%03ldZ", now.tv_nsec / 1000000);
}

static void put_member(struct log_line *l, const char *key, const char *value)
{
	line_put_text(l, key);
	put_quoted(l, value, strlen(value));
}

void log_line_begin(struct log_line *l, const char *level, const char *component, const char *node,
	const uint8_t *connection, const char *event)
{
	char time[32], id[2 * CONNECTION_ID_LEN + 1] = "";
	const bool json = l->format == LOG_JSON;

	format_time(time);
	if (connection)
		sodium_bin2hex(id, sizeof id, connection, CONNECTION_ID_LEN);
	const char *const begin[] = { json ? "{\"time\":\"" : "", time, json ? "\",\"level\":\"" : " ", level,
		json ? "\"" : " " };
	const char *const text[] = { component, node[0] ? "/" : "", node, connection ? " connection " : "", id, ": ",
		event };
	/* both formats begin alike, with words of ours; what may need an escape is a member in JSON */
	for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
		line_put_text(l, begin[i]);
	for (size_t i = 0; !json && i < sizeof text / sizeof text[0]; i++)
		line_put_text(l, text[i]);
	if (!json)
		return;
	put_member(l, ",\"component\":", component);
	if (node[0])
		put_member(l, ",\"node\":", node);
	if (connection)
		put_member(l, ",\"connection\":", id);
	put_member(l, ",\"event\":", event);
}

size_t log_line_end(struct log_line *l)
{
	const char *json_end = l->state == LINE_CUT ? ",\"cut\":true}\n" : "}\n";
	const char *text_end = l->state == LINE_CUT ? " cut=true\n" : "\n";
	const char *end = l->format == LOG_JSON ? json_end : text_end;

	memcpy(l->out + l->len, end, strlen(end));
	return l->len + strlen(end);
}
