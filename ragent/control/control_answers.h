/* control_answers.h: what all answers are made of. NULL where there was no memory. */
#ifndef CSSL_RAGENT_CONTROL_ANSWERS_H
#define CSSL_RAGENT_CONTROL_ANSWERS_H

#include "ragent/control/control_exchange.h"

/* The array @out with one element more, or NULL after giving both up. */
json_t *array_append(json_t *out, json_t *element);
json_t *integer_json(uint64_t n);
/* Of at most SESSION_ID_LEN bytes; of none null. */
json_t *hex_json(const uint8_t *bytes, size_t len);

#endif
