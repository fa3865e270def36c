/* rendezvous.h: highest-random-weight hashing: which of the agents that are up a key belongs to. Removing an agent
 * moves only its own keys; weights shift keys in proportion. */
#ifndef CSSL_PROTO_RENDEZVOUS_H
#define CSSL_PROTO_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

struct rendezvous_node {
	uint64_t hash; /* rendezvous_hash of its name */
	double weight; /* > 0; 0: takes no keys */
};

uint64_t rendezvous_hash(const void *key, size_t len);

/* What a node draws for a key: uniform, and independent of the draws of others. Among equals the highest wins. */
uint64_t rendezvous_draw(uint64_t node_hash, uint64_t key);

/* Index of the node of highest score for @key among those whose index @allowed(ctx, index) admits (NULL: all); -1:
 * none. */
int rendezvous_pick(const struct rendezvous_node *nodes, size_t count, uint64_t key,
	int (*allowed)(const void *ctx, size_t index), const void *ctx);

#endif
