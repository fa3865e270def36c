/* value.c: one parser for each type, in a table that also says which values it expects. Numbers are decimal digits
 * only: no sign, no hexadecimal, no exponent, no locale. */
#include "conf/value.h"

#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "net/socket/address.h"
#include "proto/error.h"

#define NAME_LEN_MAX 63u
#define UNIX_PREFIX  "unix:"

struct unit {
	const char *name;
	uint64_t factor;
};

/* From the largest. Durations in milliseconds. */
static const struct unit duration_units[] = {
	{ "d", 86400000 },
	{ "h", 3600000 },
	{ "min", 60000 },
	{ "s", 1000 },
	{ "ms", 1 },
	{ NULL },
};
static const struct unit size_units[] = {
	{ "TiB", 1ull << 40 },
	{ "GiB", 1ull << 30 },
	{ "MiB", 1ull << 20 },
	{ "KiB", 1ull << 10 },
	{ "B", 1 },
	{ NULL },
};

struct scalar {
	const struct schema_row *row;
	const struct value_type *type;
	const char *text, *folder;
	void *field;
	size_t size;
};

/* @units: of a number. BOUNDED: min and max of a row count, in steps of @step of the smallest unit. */
struct value_type {
	int (*parse)(const struct scalar *s);
	const char *expected;
	enum { UNBOUNDED, BOUNDED } bounds;
	const struct unit *units;
	uint64_t step;
};

static int digits(const char *text, const char **rest, uint64_t *out)
{
	uint64_t n = 0;
	const char *p = text;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (n > (UINT64_MAX - 9) / 10)
			return CSSL_E_CONFIG;
		n = n * 10 + (uint64_t)(*p - '0');
	}
	if (p == text)
		return CSSL_E_CONFIG;
	*rest = p;
	*out = n;
	return 0;
}

static int value_store(const struct scalar *s, uint64_t n)
{
	const uint16_t n16 = (uint16_t)n;
	const uint32_t n32 = (uint32_t)n;
	if (s->size == sizeof n16 && n16 == n)
		memcpy(s->field, &n16, sizeof n16);
	else if (s->size == sizeof n32 && n32 == n)
		memcpy(s->field, &n32, sizeof n32);
	else if (s->size == sizeof n)
		memcpy(s->field, &n, sizeof n);
	else
		return CSSL_E_CONFIG;
	return 0;
}

static int with_unit(const char *text, const struct unit *units, uint64_t *out)
{
	const char *rest;
	if (digits(text, &rest, out))
		return CSSL_E_CONFIG;
	if (*out == 0 && *rest == '\0')
		return 0;
	for (; units->name; units++)
		if (strcmp(rest, units->name) == 0)
			return __builtin_mul_overflow(*out, units->factor, out) ? CSSL_E_CONFIG : 0;
	return CSSL_E_CONFIG;
}

static int parse_number(const struct scalar *s)
{
	const struct value_type *type = s->type;
	const char *rest;
	uint64_t n;
	const int r = type->units ? with_unit(s->text, type->units, &n) : digits(s->text, &rest, &n) || *rest != '\0';
	if (r || n % type->step != 0)
		return CSSL_E_CONFIG;
	n /= type->step;
	return (double)n < s->row->min || (double)n > s->row->max ? CSSL_E_CONFIG : value_store(s, n);
}

static int parse_real(const struct scalar *s)
{
	const char *rest;
	uint64_t whole, fraction = 0;
	double scale = 1;
	if (digits(s->text, &rest, &whole))
		return CSSL_E_CONFIG;
	if (*rest == '.') {
		const char *point = rest;
		if (digits(point + 1, &rest, &fraction))
			return CSSL_E_CONFIG;
		for (const char *p = point + 1; p < rest; p++)
			scale *= 10;
	}
	const double value = (double)whole + (double)fraction / scale;
	if (*rest != '\0' || value < s->row->min || value > s->row->max)
		return CSSL_E_CONFIG;
	memcpy(s->field, &value, sizeof value);
	return 0;
}

static int parse_word(const struct scalar *s)
{
	for (const struct schema_word *w = s->row->words; w->word; w++)
		if (strcmp(w->word, s->text) == 0)
			return value_store(s, (uint64_t)w->value);
	return CSSL_E_CONFIG;
}

static int store_string(const struct scalar *s, const char *prefix, const char *separator, const char *text)
{
	char *copy;
	if (asprintf(&copy, "%s%s%s", prefix, separator, text) < 0)
		return CSSL_E_NO_MEMORY;
	memcpy(s->field, &copy, sizeof copy);
	return 0;
}

static bool is_printable(const char *text)
{
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static int parse_string(const struct scalar *s)
{
	return is_printable(s->text) ? store_string(s, "", "", s->text) : CSSL_E_CONFIG;
}

static int parse_name(const struct scalar *s)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(s->text);
	if (len == 0 || len > NAME_LEN_MAX || strspn(s->text, allowed) != len || s->text[0] == '-' || s->text[0] == '.')
		return CSSL_E_CONFIG;
	return store_string(s, "", "", s->text);
}

static bool is_relative(const struct scalar *s, const char *path)
{
	return path[0] != '/' && s->folder[0] != '\0';
}

static int parse_path(const struct scalar *s)
{
	if (!is_printable(s->text))
		return CSSL_E_CONFIG;
	return is_relative(s, s->text) ? store_string(s, s->folder, "/", s->text) : store_string(s, "", "", s->text);
}

static int parse_socket_path(const struct scalar *s)
{
	size_t len = strlen(s->text) + (is_relative(s, s->text) ? strlen(s->folder) + 1 : 0);
	return len < sizeof((struct sockaddr_un *)0)->sun_path ? parse_path(s) : CSSL_E_CONFIG;
}

static int parse_address(const struct scalar *s)
{
	char text[sizeof((struct sockaddr_un *)0)->sun_path + sizeof UNIX_PREFIX];
	const size_t prefix_len = strlen(UNIX_PREFIX);
	const bool is_path = strncmp(s->text, UNIX_PREFIX, prefix_len) == 0;
	int n;
	if (is_path && is_relative(s, s->text + prefix_len))
		n = snprintf(text, sizeof text, UNIX_PREFIX "%s/%s", s->folder, s->text + prefix_len);
	else
		n = snprintf(text, sizeof text, "%s", s->text);
	return n < 0 || (size_t)n >= sizeof text ? CSSL_E_CONFIG : address_parse(text, s->field);
}

static int parse_host(const struct scalar *s)
{
	return address_parse_host(s->text, s->field);
}

static int parse_net(const struct scalar *s)
{
	return address_net_parse(s->text, s->field);
}

static const struct value_type types[] = {
	[SCHEMA_NAME] = { parse_name, "a name: 1 to 63 letters, digits and . _ - (not first)", UNBOUNDED },
	[SCHEMA_STRING] = { parse_string, "text", UNBOUNDED },
	[SCHEMA_PATH] = { parse_path, "a path", UNBOUNDED },
	[SCHEMA_SOCKET_PATH] = { parse_socket_path, "a path of at most 107 bytes, its folder included", UNBOUNDED },
	[SCHEMA_COUNT] = { parse_number, "a whole number", BOUNDED, NULL, 1 },
	[SCHEMA_DURATION_MS] = { parse_number, "a duration (units ms, s, min, h, d)", BOUNDED, duration_units, 1 },
	[SCHEMA_DURATION_S] = { parse_number, "a duration of whole seconds (units ms, s, min, h, d)", BOUNDED,
		duration_units, 1000 },
	[SCHEMA_SIZE] = { parse_number, "a size (units B, KiB, MiB, GiB, TiB)", BOUNDED, size_units, 1 },
	[SCHEMA_REAL] = { parse_real, "a number", BOUNDED },
	[SCHEMA_WORD] = { parse_word, "one of", UNBOUNDED },
	[SCHEMA_ADDRESS] = { parse_address, "an address such as 127.0.0.1:443, [::1]:443 or unix:/path", UNBOUNDED },
	[SCHEMA_HOST] = { parse_host, "an IP address without port", UNBOUNDED },
	[SCHEMA_NET] = { parse_net, "a network such as 10.0.0.0/8 or ::1/128", UNBOUNDED },
};

int value_parse(const struct schema_row *row, enum schema_type type, const char *text, const char *folder, void *field,
	size_t size)
{
	union {
		struct sockaddr_storage address;
		struct address_net net;
		char *text;
		double real;
		uint64_t number;
	} value;
	const struct scalar s = {
		.row = row, .type = &types[type], .text = text, .folder = folder, .field = &value, .size = size
	};
	int r = 0;
	if (row->off && strcmp(text, row->off) == 0)
		memset(field, 0, size);
	else if (row->derived && strcmp(text, row->derived) == 0)
		memset(field, 0xff, size);
	else if ((r = s.type->parse(&s)) == 0)
		memcpy(field, &value, size);
	return r;
}

static const char *bound_text(enum schema_type type, double n, char out[static VALUE_TEXT_MAX])
{
	switch (type) {
	case SCHEMA_DURATION_MS: return value_duration_text((uint64_t)n, out);
	case SCHEMA_DURATION_S: return value_duration_text((uint64_t)n * 1000, out);
	case SCHEMA_SIZE: return value_size_text((uint64_t)n, out);
	default: snprintf(out, VALUE_TEXT_MAX, "%.10g", n); return out;
	}
}

static size_t list_words(const struct schema_word *words, char *out, size_t cap)
{
	size_t n = 0;
	for (const struct schema_word *w = words; w->word && n < cap; w++)
		n += (size_t)snprintf(out + n, cap - n, "%s%s", w == words ? " " : ", ", w->word);
	return n;
}

const char *value_expected(const struct schema_row *row, enum schema_type type, char out[static VALUE_EXPECTED_MAX])
{
	const struct value_type *t = &types[type];
	char low[VALUE_TEXT_MAX], high[VALUE_TEXT_MAX];
	size_t n = (size_t)snprintf(out, VALUE_EXPECTED_MAX, "%s", t->expected);
	if (t->bounds == BOUNDED)
		n += (size_t)snprintf(out + n, VALUE_EXPECTED_MAX - n, " from %s to %s",
			bound_text(type, row->min, low), bound_text(type, row->max, high));
	if (type == SCHEMA_WORD)
		n += list_words(row->words, out + n, VALUE_EXPECTED_MAX - n);
	if (row->off && n < VALUE_EXPECTED_MAX)
		n += (size_t)snprintf(out + n, VALUE_EXPECTED_MAX - n, ", or %s", row->off);
	if (row->derived && n < VALUE_EXPECTED_MAX)
		snprintf(out + n, VALUE_EXPECTED_MAX - n, ", or %s", row->derived);
	return out;
}

const char *value_duration_text(uint64_t ms, char out[static VALUE_TEXT_MAX])
{
	const struct unit *u = duration_units;
	while (u->factor > ms && u[1].name)
		u++;
	int n = snprintf(out, VALUE_TEXT_MAX, "%llu%s", (unsigned long long)(ms / u->factor), u->name);
	if (u[1].name && ms % u->factor >= u[1].factor)
		snprintf(out + n, VALUE_TEXT_MAX - (size_t)n, "%llu%s",
			(unsigned long long)(ms % u->factor / u[1].factor), u[1].name);
	return out;
}

const char *value_size_text(uint64_t bytes, char out[static VALUE_TEXT_MAX])
{
	const struct unit *u = size_units;
	while (u[1].name && (bytes < u->factor || bytes % u->factor != 0))
		u++;
	snprintf(out, VALUE_TEXT_MAX, "%llu%s", (unsigned long long)(bytes / u->factor), u->name);
	return out;
}
