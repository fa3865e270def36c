/* front.h: one listener of the cluster file, shared by all workers: its settings and its policies. Made and bound
 * before the workers run; then only the policies and the gauge change, and these are thread-safe.
 */
#ifndef CSSL_RAGENT_FRONT_H
#define CSSL_RAGENT_FRONT_H

#include <stdatomic.h>

#include "conf/conf.h"
#include "ragent/dispatch/policy.h"

struct front {
	size_t index; /* among the listeners of the cluster file */
	const struct conf_listener *conf;
	struct policy *handshake, *resumption;
	/* like @handshake, with its own turns. A client before STARTTLS asks twice, once for each: if both used the
	 * same turns, every second agent would get no handshake */
	struct policy *preamble;
	_Atomic uint64_t connections;
	uint32_t beyond;                /* so many of its connections may come above limits.connections */
	struct sockaddr_storage *bound; /* by the first worker: its addresses, with real ports instead of 0 */
	size_t bound_count;
};

/* The listener @index of @all, which outlives it. 0 or CSSL_E_NO_MEMORY (then it can still be cleared). */
int front_init(struct front *f, size_t index, const struct conf *all);
void front_clear(struct front *f);

/* 1 when this listener's connections may change their owner, else 0. */
int front_moves(const struct front *f);
/* 1 when they go to the affinity agent after the handshake (CSSL-SF), else 0. */
int front_hands_off(const struct front *f);

#endif
