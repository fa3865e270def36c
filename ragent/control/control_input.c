/* control_input.c: every error names the piece, the found value and the expected one. */
#include "ragent/control/control_input.h"

#include <sodium.h>
#include <string.h>

int input_hex(const char *text, uint8_t *out, size_t len)
{
	size_t got;
	return strlen(text) == 2 * len && sodium_hex2bin(out, len, text, 2 * len, NULL, &got, NULL) == 0 && got == len
		       ? 0
		       : -1;
}

int input_id(struct exchange *e, const char *what, const char *text, struct connection_id *out)
{
	if (input_hex(text, out->bytes, sizeof out->bytes) == 0)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: found '%.80s', expected a connection id: %u hexadecimal digits",
		what, text, 2 * CONNECTION_ID_LEN);
	return -1;
}

const char *query_value(const struct query *q, const char *name)
{
	for (unsigned i = 0; i < q->count; i++) {
		if (strcmp(q->name[i], name) == 0)
			return q->value[i];
	}
	return NULL;
}

int input_limit(struct exchange *e, const char *text, unsigned *out)
{
	*out = CONTROL_LIMIT_DEFAULT;
	if (!text)
		return 0;
	const size_t len = strlen(text);
	unsigned n = 0;
	for (size_t i = 0; i < len && len <= 4; i++)
		n = text[i] >= '0' && text[i] <= '9' ? n * 10 + (unsigned)(text[i] - '0') : CONTROL_LIMIT_MAX + 1;
	*out = n;
	if (n >= 1 && n <= CONTROL_LIMIT_MAX)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "limit: found '%.80s', expected a number from 1 to %u", text,
		CONTROL_LIMIT_MAX);
	return -1;
}

int input_net_read(const char *text, struct address_net *out)
{
	struct sockaddr_storage address;
	memset(out, 0, sizeof *out);
	if (address_net_parse(text, out) == 0)
		return 0;
	if (address_parse_host(text, &address) != 0)
		return -1;
	out->len = (uint8_t)address_bytes((const struct sockaddr *)&address, out->bytes);
	out->prefix = (uint8_t)(8 * out->len);
	return 0;
}

int input_net(struct exchange *e, const char *what, const char *text, struct address_net *out)
{
	if (input_net_read(text, out) == 0)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: found '%.80s', expected an address or a network such as 10.0.0.0/8",
		what, text);
	return -1;
}

int input_members(struct exchange *e, const json_t *body, const char *const *names, unsigned count)
{
	const char *key;
	json_t *value;
	json_object_foreach((json_t *)body, key, value)
	{
		unsigned i = 0;
		while (i < count && strcmp(names[i], key) != 0)
			i++;
		if (i < count)
			continue;
		exchange_fail(e, MHD_HTTP_BAD_REQUEST, "unknown member '%.80s'", key);
		return 0;
	}
	return 1;
}

int input_body_empty(struct exchange *e)
{
	json_t *body = exchange_body(e);
	const int empty = body && input_members(e, body, NULL, 0);
	json_decref(body);
	return empty;
}

int input_session_id(struct exchange *e, const char *what, const char *text, uint8_t out[static SESSION_ID_LEN])
{
	if (input_hex(text, out, SESSION_ID_LEN) == 0)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: found '%.80s', expected a session id: %u hexadecimal digits", what,
		text, 2 * SESSION_ID_LEN);
	return -1;
}

int input_seconds(struct exchange *e, const char *what, const char *text, uint32_t max, uint32_t *out)
{
	const size_t len = text ? strlen(text) : 0;
	uint64_t n = 0;
	*out = 0;
	if (!text)
		return 0;
	for (size_t i = 0; i < len && len <= 9; i++)
		n = text[i] >= '0' && text[i] <= '9' ? n * 10 + (uint64_t)(text[i] - '0') : UINT32_MAX;
	*out = (uint32_t)n;
	if (len <= 9 && n <= max)
		return 0;
	exchange_fail(e, MHD_HTTP_BAD_REQUEST, "%s: found '%.80s', expected seconds, at most %u", what, text, max);
	return -1;
}
