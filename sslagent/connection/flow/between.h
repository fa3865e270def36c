/* between.h: a service that stands between client and backend. It is a part by itself, because there the agent speaks
 * with either side for itself. Each may end the connection.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct connection;

int between_own(struct connection *c);                 /* 0 or CSSL_E_NO_MEMORY; other services: 0 */
void between_step(struct connection *c);               /* passes on all output of the service */
void between_read(struct connection *c);               /* the backend, if the client has taken all replies */
bool between_replies_wait(const struct connection *c); /* the client has to take some; other services: false */
void between_give(struct connection *c, const uint8_t *data, size_t len); /* bytes of the client */
void between_hear(struct connection *c, const uint8_t *data, size_t len); /* bytes of the backend */
void between_backend_ended(struct connection *c, int uv_error);           /* 0: not by an error */
