/* revival.h: another process goes on with a connection. In a handover it is packed and unpacked: its descriptor, bytes
 * that are not yet written or used, and every member of struct connection that is not made anew. Packing destroys
 * nothing: until the other process has taken everything, this process can continue the connection. After a death the
 * next process restores it from the memory that outlives processes (ragent/keeper/slot_table.h,
 * ragent/connection/connection_saved.h). What a dead process has left can be an attacker's: all values are checked.
 */
#pragma once

#include "proto/wire.h"
#include "ragent/connection/connection_home.h"

/* --- a handover: connection_pack.c, connection_unpack.c, which a restored connection passes through, too --- */

/* Translates the numbers of the old process into those of this one. */
struct handover_map {
	int agents[AGENTS_MAX]; /* old index -> our index, or NO_AGENT */
	unsigned agent_count;
	struct front **fronts; /* old index -> ours */
	unsigned front_count;
};

/* 0: it is being closed, and is not packed. */
size_t connection_packed_len(const struct connection *c);
void connection_pack(const struct connection *c, struct wire_writer *w);

/* Makes a connection that another process packed (@map NULL: its numbers are this one's), counted everywhere, on the
 * links of @home, which were unpacked before. It does nothing before connection_go_on(). Takes over @fd. 0; or
 * negative: the data is invalid, and @fd is closed. */
int connection_unpack(
	struct connection_home *home, const struct handover_map *map, int fd, const uint8_t *in, size_t len);
/* The connection is this process's now: read, send, wait. */
void connection_go_on(struct connection *c);

/* --- after a death: connection_restoring.c; each connection by connection_restored.c --- */

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
