/* control_json.c: a NULL from jansson (out of memory, or a string that is no UTF-8) becomes 500 where the whole answer
 * is given to its request. */
#include "ragent/control/http/control_json.h"

#include <sodium.h>
#include <string.h>

#define TEXT_MAX 512u
#define HEX_MAX  32u

json_t *array_append(json_t *out, json_t *element)
{
	if (out && json_array_append_new(out, element) == 0)
		return out;
	json_decref(out);
	return NULL;
}

json_t *integer_json(uint64_t n)
{
	return json_integer((json_int_t)n);
}

json_t *bytes_json(const char *bytes, size_t len)
{
	char clean[TEXT_MAX];
	json_t *out = json_stringn(bytes, len);
	if (out)
		return out;
	size_t n = 0;
	for (; n < len && n < sizeof clean; n++)
		clean[n] = bytes[n] >= ' ' && bytes[n] <= '~' ? bytes[n] : '?';
	return json_stringn(clean, n);
}

json_t *text_json(const char *text)
{
	return text ? bytes_json(text, strlen(text)) : json_null();
}

json_t *hex_json(const uint8_t *bytes, size_t len)
{
	char text[2 * HEX_MAX + 1];
	if (len == 0)
		return json_null();
	return json_string(sodium_bin2hex(text, sizeof text, bytes, len));
}
