/* connection_client.h: the client's side: when it is read, what it sent, its end. What it sent goes into the kept
 * records; from there connection_stream.h sends it to the owner. Reading stops while there is no room for what the
 * client sends. It also stops while the owner opens no record: what the client sends then waits in its kernel, and
 * costs neither work nor memory here.
 */
#ifndef CSSL_RAGENT_CONNECTION_CLIENT_H
#define CSSL_RAGENT_CONNECTION_CLIENT_H

#include "ragent/connection/connection_body.h"
#include "net/fault.h"

extern const struct stream_ops connection_client_ops;

/* The stream was opened: read what comes. */
void connection_begin_reading(struct connection *c);
/* The client may send again if there is room, and its owner lets it. */
void connection_resume_reading(struct connection *c);
/* More records are kept than before: read no more than has room, or nothing. */
void connection_read_less(struct connection *c);
/* Its owner lets it wait, or go on: GOES_ON. It must have a busy part. */
void connection_set_pace(struct connection *c, enum client_pace pace);

/* Of the consumed records, keep those that may be replayed beside @more bytes that just came, and forget the others. */
void connection_trim_replay(struct connection *c, size_t more);
/* No incomplete record of the client counts any more. */
void connection_forget_partial(struct connection *c);
/* End the clients that hold back the rest of a record for too long, or while too many others do the same. */
void connection_end_partials(struct connection_home *home);

/* A point whose rules may name the client's address. Failing, the process crashes; delaying, its worker stands still.
 */
enum fault_action connection_fault_at(const struct connection *c, const char *point);

#endif
