/* probe_args.c */
#include "tests/lib/probe_args.h"

#include <stdlib.h>
#include <string.h>

static int hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *found = c ? strchr(digits, c | 0x20) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* One escape behind the backslash at *in; moves *in past it. -1: malformed. */
static int unescape(char **in)
{
	char c = *(*in)++;
	int high, low;

	switch (c) {
	case 'r': return '\r';
	case 'n': return '\n';
	case 't': return '\t';
	case '"':
	case '\\': return c;
	case 'x':
		if ((high = hex_digit((*in)[0])) < 0 || (low = hex_digit((*in)[1])) < 0)
			return -1;
		*in += 2;
		return high << 4 | low;
	default: return -1;
	}
}

/* A value at *in, written over its own place. */
static int parse_value(char **in, struct probe_arg *arg)
{
	char *out = *in, *at = *in;
	int quoted = *at == '"';

	arg->value = (uint8_t *)out;
	at += quoted;
	while (*at && (quoted ? *at != '"' : *at != ' ')) {
		int c = (unsigned char)*at++;
		if (quoted && c == '\\')
			c = unescape(&at);
		if (c < 0)
			return -1;
		*out++ = (char)c;
	}
	if (quoted && *at != '"')
		return -1;
	at += *at != '\0';
	arg->len = (size_t)(out - (char *)arg->value);
	*out = '\0';
	*in = at;
	return 0;
}

int probe_args_parse(char *line, struct probe_args *out)
{
	char *at = line;

	*out = (struct probe_args){ .verb = strsep(&at, " ") };
	while (at && *at) {
		if (*at == ' ') {
			at++;
			continue;
		}
		if (out->count == PROBE_ARGS_MAX)
			return -1;
		struct probe_arg *arg = &out->at[out->count++];
		arg->key = strsep(&at, "=");
		if (!at || parse_value(&at, arg) < 0)
			return -1;
	}
	return 0;
}

static struct probe_arg *find(struct probe_args *a, const char *key)
{
	for (size_t i = 0; i < a->count; i++) {
		if (strcmp(a->at[i].key, key) == 0) {
			a->at[i].use = ARG_USED;
			return &a->at[i];
		}
	}
	return NULL;
}

const char *probe_text(struct probe_args *a, const char *key, const char *otherwise)
{
	struct probe_arg *arg = find(a, key);

	return arg ? (const char *)arg->value : otherwise;
}

long long probe_number(struct probe_args *a, const char *key, long long otherwise)
{
	struct probe_arg *arg = find(a, key);

	return arg ? strtoll((const char *)arg->value, NULL, 0) : otherwise;
}

static const uint8_t *from_hex(struct probe_arg *arg, size_t *len)
{
	size_t n = arg->len / 2;

	for (size_t i = 0; i < n; i++) /* in place: the bytes are fewer than the digits */
		arg->value[i] =
			(uint8_t)(hex_digit((char)arg->value[2 * i]) << 4 | hex_digit((char)arg->value[2 * i + 1]));
	arg->len = *len = n;
	return arg->value;
}

const uint8_t *probe_bytes(struct probe_args *a, const char *key, size_t *len)
{
	struct probe_arg *arg = find(a, key);

	if (arg) {
		*len = arg->len;
		return arg->value;
	}
	arg = strcmp(key, "text") == 0 ? find(a, "hex") : NULL;
	*len = 0;
	return arg ? from_hex(arg, len) : NULL;
}

const char *probe_args_unused(const struct probe_args *a)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->at[i].use == ARG_UNUSED)
			return a->at[i].key;
	return NULL;
}
