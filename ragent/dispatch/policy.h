/* policy.h: chooses the agent of a handshake. One interface, a table of functions. Each listener has one policy for
 * full handshakes and one for resumptions. All workers share them, so that "even" means even over the process.
 * Thread-safe.
 */
#ifndef CSSL_RAGENT_POLICY_H
#define CSSL_RAGENT_POLICY_H

#include "ragent/dispatch/agents.h"

struct policy;

/* @affinity_bound: an agent gets by affinity at most this many times its share of the handshakes under way
 * (CONF_LOCAL); 0: no limit. NULL: out of memory. */
struct policy *policy_create(enum conf_policy kind, double affinity_bound);
void policy_destroy(struct policy *p);

/* Choose among @count > 0 candidates: an index into them. @affinity: index of the affinity agent, or -1. */
size_t policy_pick(struct policy *p, const struct candidate *candidates, size_t count, int affinity);

const char *policy_name(enum conf_policy kind);

#endif
