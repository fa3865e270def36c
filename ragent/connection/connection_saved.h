/* connection_saved.h: connections that continue after the death of their process. */
#ifndef CSSL_RAGENT_CONNECTION_SAVED_H
#define CSSL_RAGENT_CONNECTION_SAVED_H

#include "ragent/connection/connection_home.h"

/* What a busy connection needs for the next process, in bytes. */
size_t connection_trail_len(void);

/* On the worker's thread, before its first connection: restores all connections that the process before saved for
 * this worker, and whose descriptors were found. Those that had an owner wait for it in state REATTACHING; the others
 * rest. A connection that cannot be restored is reset.
 */
void connection_restore_all(struct connection_home *home);

/* Before the threads of a process after a death run: this process restores nothing, because those before it died while
 * they restored. All saved connections are forgotten, so leftovers_sort() resets them. Counted, and logged. */
void connection_forget_saved(struct notes *n);

/* Before the threads of a process after a death run: clients whose bytes were worked on when the process before crashed
 * or hung become suspects. */
void connection_suspect_clients(struct notes *n);

#endif
