/* rendezvous.h: highest-random-weight hashing: chooses the agent for a key, among those that are up. When an agent
 * goes, only its keys move. An agent gets keys in proportion to its weight. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct rendezvous_node {
	uint64_t hash; /* rendezvous_hash of its name */
	double weight; /* 0: takes no keys */
};

uint64_t rendezvous_hash(const void *key, size_t len);

/* The draw of a node for a key: uniform, and independent of the draws of other nodes. Without weights, the highest draw
 * wins. */
uint64_t rendezvous_draw(uint64_t node_hash, uint64_t key);

/* The index of the node with the highest score for @key, among those for which @allowed(ctx, index) is not 0 (NULL:
 * all); -1: none. */
int rendezvous_pick(const struct rendezvous_node *nodes, size_t count, uint64_t key,
	int (*allowed)(const void *ctx, size_t index), const void *ctx);
