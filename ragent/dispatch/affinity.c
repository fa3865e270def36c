/* affinity.c: the key is the client's address without its port. An agent at its bound is skipped: the next in the order
 * is chosen.
 */
#include "ragent/dispatch/affinity.h"

#include <math.h>

struct bounded {
	const struct candidate *candidates;
	double total; /* connections, the new one included */
	double weight;
	double bound;
};

/* Some agent is always below the bound: not all agents can be above their fair share at once. */
static int has_room(const void *ctx, size_t index)
{
	const struct bounded *b = ctx;
	const struct candidate *c = &b->candidates[index];
	double share = b->total * c->node.weight / b->weight;

	return b->bound == 0 || (double)(c->connections + 1) <= ceil(b->bound * share);
}

int affinity_pick(const struct candidate *candidates, size_t count, const struct client_address *client, double bound)
{
	struct rendezvous_node nodes[AGENTS_MAX];
	struct bounded b = { .candidates = candidates, .total = 1, .bound = bound };

	for (size_t i = 0; i < count; i++) {
		nodes[i] = candidates[i].node;
		b.total += (double)candidates[i].connections;
		b.weight += candidates[i].node.weight;
	}
	uint64_t key = rendezvous_hash(client->bytes, client->len);
	return rendezvous_pick(nodes, count, key, has_room, &b);
}
