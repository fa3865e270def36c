/* front.h: one listener of the cluster file as all workers share it: its settings and its policies. Made and bound
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
	struct policy *preamble; /* as handshake, with turns of its own: or every other agent would get no handshake */
	_Atomic uint64_t connections;
	struct sockaddr_storage *bound; /* the addresses really bound, port 0 resolved: by the first worker */
	size_t bound_count;
};

/* @index: see above. 0 or CSSL_E_NO_MEMORY (then it can be cleared all the same). @conf outlives it. */
int front_init(struct front *f, size_t index, const struct conf_listener *conf);
void front_clear(struct front *f);

/* May this listener's connections change their owner? 1 or 0. */
int front_moves(const struct front *f);
/* Do they, after the handshake, go to the affinity agent (CSSL-SF)? 1 or 0. */
int front_hands_off(const struct front *f);

#endif
