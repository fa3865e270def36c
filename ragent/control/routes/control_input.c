/* control_input.c: see control_input.h. */
#include "ragent/control/routes/control_input.h"

#include <sodium.h>
#include <string.h>

const char *input_argument(const struct exchange *e, const char *name)
{
	return MHD_lookup_connection_value(e->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool input_hex(const char *text, uint8_t *out, size_t len)
{
	size_t got;
	return strlen(text) == 2 * len && sodium_hex2bin(out, len, text, 2 * len, NULL, &got, NULL) == 0 && got == len;
}

bool input_seconds(const char *text, uint32_t max, uint32_t *out)
{
	const size_t len = strlen(text);
	uint64_t n = 0;
	for (size_t i = 0; i < len && len <= 9; i++)
		n = text[i] >= '0' && text[i] <= '9' ? n * 10 + (uint64_t)(text[i] - '0') : UINT32_MAX;
	*out = (uint32_t)n;
	return len <= 9 && n <= max;
}

bool input_limit(struct exchange *e, unsigned *out)
{
	const char *text = input_argument(e, "limit");
	*out = CONTROL_LIMIT_DEFAULT;
	if (!text || (input_seconds(text, CONTROL_LIMIT_MAX, out) && *out >= 1))
		return true;
	return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "limit: found '%.80s', expected a number from 1 to %u", text,
		CONTROL_LIMIT_MAX);
}

bool input_net(const char *text, struct address_net *out)
{
	struct sockaddr_storage address;
	memset(out, 0, sizeof *out);
	if (address_net_parse(text, out) == 0)
		return true;
	if (address_parse_host(text, &address) != 0)
		return false;
	out->len = (uint8_t)address_bytes((const struct sockaddr *)&address, out->bytes);
	out->prefix = (uint8_t)(8 * out->len);
	return true;
}

/* The parser refuses a member twice. */
bool input_body(struct exchange *e, struct control_input *in, const char *const *names)
{
	const char *key;
	json_t *value;
	in->body = exchange_body(e);
	json_object_foreach(in->body, key, value)
	{
		const char *const *name = names;
		while (*name && strcmp(*name, key) != 0)
			name++;
		if (!*name)
			return exchange_fail(e, MHD_HTTP_BAD_REQUEST, "unknown member '%.80s'", key);
	}
	return in->body != NULL;
}

bool input_nothing(struct exchange *e, const char *segment, struct control_input *in)
{
	return INPUT_BODY(e, in, NULL);
}
