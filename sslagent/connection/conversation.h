/* conversation.h: the conversation with the backend: the backend connection, and the bytes that wait for one. It is a
 * part by itself, because all states that have or need a backend share these rules.
 *
 * Others read c->backend, and end the backend connection only by what is here or in flow.c.
 */
#pragma once

#include "sslagent/connection/connection_events.h"

struct passed_backend;

/* All requests are answered, and the backend has all bytes: any agent can go on from here. */
bool conversation_at_checkpoint(const struct connection *c);
void conversation_reach_checkpoint(struct connection *c); /* the carrier hears of it now */

/* Bytes wait, but no request has begun in them. */
static inline bool conversation_is_blank(const struct connection *c)
{
	return c->head && service_place(&c->service) == SERVICE_CHECKPOINT;
}

/* An end now is one in order. */
static inline bool conversation_cuts_nothing(const struct connection *c)
{
	return conversation_at_checkpoint(c) || conversation_is_blank(c);
}

/* No other backend connection can go on with it. */
static inline bool conversation_is_tied(const struct connection *c)
{
	return c->backend && service_backend_reuse(&c->service) == SERVICE_BACKEND_TIED;
}

/* Nobody waits for anything of the backend connection: the next owner can do without it. */
bool conversation_backend_may_stay(const struct connection *c);

/* Begin a backend connection, if there is none; it gets first what was kept of a head. 0 or negative. */
int conversation_ensure(struct connection *c);
/* Bytes of the client, for a backend now, or when the head that they belong to is complete. 0 or negative. */
int conversation_write(struct connection *c, const uint8_t *data, size_t len);
connection_reaction conversation_count_written; /* its socket took bytes */
/* The backend connection has ended, and there are bytes that it was asked: a new one is. 0 or negative. */
int conversation_ask_anew(struct connection *c);
void conversation_drop_asked(struct connection *c); /* until the next checkpoint nothing can be asked again */

void conversation_release(struct connection *c, enum end_reason reason);
void conversation_reuse(struct connection *c); /* gives it to the pool if it may serve another conversation */
/* For a move: what the next owner needs of it. 0, or negative: CSSL_E_STATE if it cannot be described just now. */
int conversation_describe(struct connection *c, struct passed_backend *out);
int conversation_restore(struct connection *c, struct passed_backend *p); /* 0 or negative */

/* The id that a PROXY header tells the backend; len 0: it is not told. */
void conversation_id(const struct connection *c, const uint8_t **id, size_t *len);
