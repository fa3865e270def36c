/* revival.h: connections that continue after the death of their process. The process before has saved them in memory
 * that outlives it (ragent/keeper/slot_table.h, ragent/connection/trail.h), and can have been attacked: all values are
 * checked.
 */
#ifndef CSSL_RAGENT_REVIVAL_H
#define CSSL_RAGENT_REVIVAL_H

#include "ragent/connection/connection_home.h"

/* On the worker's thread, before its first turn: begins to restore all connections that the process before saved for
 * this worker, and whose descriptors were found, a few in each turn. Those that had an owner wait for it in state
 * REATTACHING; the others are in the state of before. A connection that cannot be restored is reset.
 * @home->on_restored is called at the end of a turn, when all are restored. 0 or CSSL_E_NO_MEMORY.
 */
int connection_restore_begin(struct connection_home *home);
/* All that are left, now. */
void connection_restore_rest(struct connection_home *home);

/* Before the threads of a process after a death run: clients whose bytes were worked on when the process before crashed
 * or hung become suspects. If several in a row died while they restored, this one restores nothing: all saved
 * connections are forgotten, so leftovers_sort() resets them. Counted, and logged. */
void connection_judge_former(struct notes *n);

#endif
