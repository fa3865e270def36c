/* connection_saved.h: connections that continue after the death of their process. */
#ifndef CSSL_RAGENT_CONNECTION_SAVED_H
#define CSSL_RAGENT_CONNECTION_SAVED_H

#include <stddef.h>

#include "ragent/connection/connection_home.h"

/* Bytes for the sealed copy (some 340, or 390 with a client certificate) and the names of one connection. A
 * connection that needs more is not saved. */
#define SAVED_SIDE_LEN 512u

/* So many bytes of unanswered client records may be saved with a connection. */
#define SAVED_KEPT_LEN 1024u

/* Bytes of one connection in a slot of the table. */
size_t connection_saved_len(void);

/* On the worker's thread, before its first connection: takes over all connections that the process before saved for
 * this worker, and whose descriptors were found. They rest until an agent is up or their next record comes. */
void connection_restore_all(struct connection_home *home);

#endif
