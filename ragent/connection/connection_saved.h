/* connection_saved.h: connections that go on after the death of the process that had them. */
#ifndef CSSL_RAGENT_CONNECTION_SAVED_H
#define CSSL_RAGENT_CONNECTION_SAVED_H

#include <stddef.h>

#include "ragent/connection/connection_home.h"

/* Bytes for the sealed copy (some 340, 390 with a client certificate) and the names of one connection. One that needs
 * more is not saved. */
#define SAVED_SIDE_LEN 512u

/* Bytes of client records that may be saved with one, until they are answered. */
#define SAVED_KEPT_LEN 1024u

/* What one needs in a slot of the table, in bytes. */
size_t connection_saved_len(void);

/* On the worker's thread, before its first connection: all that the process before has saved for this worker, and whose
 * descriptors were found. They rest until an agent is up, or until their next record. */
void connection_restore_all(struct connection_home *home);

#endif
