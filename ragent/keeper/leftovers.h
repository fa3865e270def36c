/* leftovers.h: the descriptors of a RAgent proper that died, as the next one finds them: the table of descriptors is
 * the same. It keeps the noted listening sockets and the logs; connections of which the table of slots says all; and
 * clients that the dead one had accepted but neither read nor written: to such a client nothing has happened yet. It
 * ends all others: TCP connections by a reset, because a FIN could pass for the end of an answer (law 8).
 */
#ifndef CSSL_RAGENT_LEFTOVERS_H
#define CSSL_RAGENT_LEFTOVERS_H

#include <stddef.h>

#include "ragent/keeper/notes.h"

/* Embedded; zero has none. */
struct leftovers {
	int *fresh; /* clients with no byte read or written; each is for one owner */
	size_t fresh_count, fresh_cap;
	size_t saved;         /* slots of the table that have their descriptor now */
	size_t reset;         /* TCP connections that were ended */
	size_t clients_reset; /* of those, the ones that came to a noted listening socket */
	size_t given_up;      /* of those, the ones whose restoring had ended a process */
};

/* Look at every descriptor from 3 on, before this process opens any. With many of them this takes seconds: the notes
 * show the keeper each step. 0, or CSSL_E_SYSTEM: they cannot be listed; CSSL_E_NO_MEMORY. */
int leftovers_sort(struct leftovers *l, struct notes *n);
/* The list; the descriptors have other owners by then. */
void leftovers_free(struct leftovers *l);

#endif
