/* control_answers.h: a connection, a session, a certificate, as JSON. It is a part of its own because what the API
 * tells of them is a promise: its tests hold each member. Each function returns NULL when out of memory.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "proto/link.pb-c.h"
#include "ragent/connection/connection_description.h"

/* With its history, where it was read. */
json_t *connection_json(const struct connection_description *c);

/* @s is well-formed (session_is_whole()); the hits of all agents, and the longest time. It has no secret of a session.
 */
json_t *session_json(const Cssl__Session *s, uint32_t hits, uint32_t expires_s);
bool session_is_whole(const Cssl__Session *s);

json_t *certificate_json(const char *agent, const Cssl__LinkResponse__Counters__Certificate *c);
