/* connection_saved.h: what only the memory for the next process has of a connection: the log of the client's bytes, and
 * bytes for the client that no agent holds any more. That a change is saved at all is in connection_body.h.
 */
#ifndef CSSL_RAGENT_CONNECTION_SAVED_H
#define CSSL_RAGENT_CONNECTION_SAVED_H

#include "ragent/connection/connection_body.h"

/* Its client sent these bytes, the first of which are those that were not used last time. Call it before anything is
 * done with them. Those that are only discarded need no log. */
void connection_log_input(struct connection *c, const uint8_t *data, size_t len);
/* connection_save_if_changed() while its client's bytes are read; these @len bytes are not used yet. */
void connection_save_amid_input(struct connection *c, const uint8_t *rest, size_t len);

/* The agent of all that is queued for the client forgets it: the next owner begins, or there is none any more. */
void connection_owe_queued(struct connection *c);
/* Has its client not got all that no agent holds? */
static inline bool connection_owes(const struct connection *c)
{
	return c->busy && c->busy->owed_end > c->slot.bytes_written;
}

/* Bytes in its logs. */
size_t connection_log_len(const struct connection *c);
/* To save memory: for a second it has no log, so it would end if this process died. */
void connection_give_up_log(struct connection *c);
/* Its memory is freed, or it needs no trail. */
void connection_forget_trail(struct connection *c);

#endif
