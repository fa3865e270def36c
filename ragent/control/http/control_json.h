/* control_json.h: JSON of single values, for answers of all parts. It is a part of its own because it knows nothing but
 * bytes. Each function returns NULL when out of memory; the caller owns what it gets.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* Append @element to @out and return @out; or free both and return NULL. */
json_t *array_append(json_t *out, json_t *element);
json_t *integer_json(uint64_t n);
/* A string with any bytes (a client may offer any server name): bytes that are no UTF-8 become '?'. NULL is null. */
json_t *text_json(const char *text);
/* The same of the first @len bytes; nothing behind a NUL. */
json_t *bytes_json(const char *bytes, size_t len);
/* Hexadecimal text of at most 32 bytes; null for @len 0. */
json_t *hex_json(const uint8_t *bytes, size_t len);
