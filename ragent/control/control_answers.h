/* control_answers.h: the parts of all answers. Each returns NULL when out of memory. */
#ifndef CSSL_RAGENT_CONTROL_ANSWERS_H
#define CSSL_RAGENT_CONTROL_ANSWERS_H

#include "ragent/control/control_exchange.h"

/* Append @element to @out and return @out; or free both and return NULL. */
json_t *array_append(json_t *out, json_t *element);
json_t *integer_json(uint64_t n);
/* Hexadecimal text of at most SESSION_ID_LEN bytes; null for @len 0. */
json_t *hex_json(const uint8_t *bytes, size_t len);

#endif
