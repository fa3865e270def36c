/* control_answers.h: the parts of all answers, as JSON. Each returns NULL when out of memory. */
#ifndef CSSL_RAGENT_CONTROL_ANSWERS_H
#define CSSL_RAGENT_CONTROL_ANSWERS_H

#include <jansson.h>

#include "proto/link.pb-c.h"
#include "ragent/connection/connection_description.h"

/* Append @element to @out and return @out; or free both and return NULL. */
json_t *array_append(json_t *out, json_t *element);
json_t *integer_json(uint64_t n);
/* A string with any bytes (a client may offer any server name): bytes that are no UTF-8 become '?'. NULL is null. */
json_t *text_json(const char *text);
/* Hexadecimal text of at most SESSION_ID_LEN bytes; null for @len 0. */
json_t *hex_json(const uint8_t *bytes, size_t len);

/* With its history, where it was read. */
json_t *connection_json(const struct connection_description *c);

/* @s is well-formed (session_is_whole()); the hits of all agents, and the longest time. It has no secret of a session.
 */
json_t *session_json(const Cssl__Session *s, uint32_t hits, uint32_t expires_s);
bool session_is_whole(const Cssl__Session *s);

json_t *certificate_json(const char *agent, const Cssl__LinkResponse__Counters__Certificate *c);

#endif
