/* leftovers.h: sorts the descriptors of a RAgent proper that died; the next one shares the table of descriptors. It
 * keeps the noted listening sockets, the logs and the socket to the service manager, connections whose slot has
 * everything, and clients that the dead process had accepted but neither read nor written: such a client has noticed
 * nothing. It ends all other TCP connections by a reset, because a FIN could pass for the end of an answer (law 8).
 */
#pragma once

#include <stddef.h>

#include "ragent/keeper/notes.h"

/* Embedded; zero has none. */
struct leftovers {
	int *fresh; /* clients without a byte read or written; each will belong to one owner */
	size_t fresh_count, fresh_cap;
	size_t saved;                /* slots of the table that have their descriptor now */
	size_t reset;                /* TCP connections that were ended */
	size_t clients_reset;        /* of those, the ones that came to a noted listening socket */
	size_t given_up;             /* of those, the ones whose restoring had ended a process */
	size_t outdated;             /* of those, the ones whose slot lacks bytes that were read or written */
	uint64_t began_ns, ended_ns; /* notes_now_ns(), of leftovers_sort() */
};

/* Check every descriptor from 3 on, before this process opens any. With many descriptors this takes seconds; the
 * notes show each step to the keeper, and count the clients that were reset. 0, or CSSL_E_SYSTEM: they cannot be
 * listed; CSSL_E_NO_MEMORY. */
int leftovers_sort(struct leftovers *l, struct notes *n);
/* Ends every TCP connection by a reset, unless its client was told the end: this process ends, and no other follows. If
 * the dead process was giving a worker to another process, or taking it (notes_share()), only the saved connections of
 * the other workers: those are certainly its own. An option of a socket that both have would change the end of a
 * connection that the other process serves. */
void leftovers_end_all(struct notes *n);
/* The same without the table, which may be what it fails at. While a worker is shared this does nothing, because only
 * the table tells which connections are the process's own. */
void leftovers_end_all_blindly(struct notes *n);
/* Frees the list. The descriptors have other owners by then. */
void leftovers_free(struct leftovers *l);
