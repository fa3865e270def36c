/* connection_saved.h: connections that continue after the death of their process. */
#ifndef CSSL_RAGENT_CONNECTION_SAVED_H
#define CSSL_RAGENT_CONNECTION_SAVED_H

#include "ragent/connection/connection_home.h"

/* On the worker's thread, before its first turn: begins to restore all connections that the process before saved for
 * this worker, and whose descriptors were found, a few in each turn. Those that had an owner wait for it in state
 * REATTACHING; the others are in the state of before. A connection that cannot be restored is reset.
 * @home->on_restored is called at the end of a turn, when all are restored. 0 or CSSL_E_NO_MEMORY.
 */
int connection_restore_begin(struct connection_home *home);
/* All that are left, now. */
void connection_restore_rest(struct connection_home *home);

/* Before the threads of a process after a death run: this process restores nothing, because those before it died while
 * they restored. All saved connections are forgotten, so leftovers_sort() resets them. Counted, and logged. */
void connection_forget_saved(struct notes *n);

/* Before the threads of a process after a death run: clients whose bytes were worked on when the process before crashed
 * or hung become suspects. */
void connection_suspect_clients(struct notes *n);

#endif
