/* rendezvous.c: every node draws u in (0, 1) for a key, its score is -weight / ln u, the highest score wins. Of
 * exponentially distributed draws with rates w the smallest belongs to node i with probability w_i / sum w: that makes
 * weights exact. */
#include "proto/rendezvous.h"

#include <math.h>
#include <sodium.h>

#include "proto/wire.h"

/* Not a secret, because every process has to compute the same answer. SipHash is used for its quality as a hash. */
static const uint8_t hash_key[crypto_shorthash_KEYBYTES] = "cssl rendezvous";

uint64_t rendezvous_hash(const void *key, size_t len)
{
	uint8_t out[crypto_shorthash_BYTES];
	crypto_shorthash(out, key, len, hash_key);
	return wire_load_u64(out);
}

/* A bijection in which each input bit reaches each output bit (the constants are those of splitmix64). */
static uint64_t rendezvous_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t rendezvous_draw(uint64_t node_hash, uint64_t key)
{
	return rendezvous_mix(node_hash ^ key);
}

static double rendezvous_score(const struct rendezvous_node *node, uint64_t key)
{
	/* 52 bits and a half: with one bit more the largest draw would round to 1, whose logarithm is 0. */
	double u = ((double)(rendezvous_draw(node->hash, key) >> 12) + 0.5) * 0x1p-52;
	return -node->weight / log(u);
}

int rendezvous_pick(const struct rendezvous_node *nodes, size_t count, uint64_t key,
	int (*allowed)(const void *ctx, size_t index), const void *ctx)
{
	/* Callers may pass plain numbers as keys. Without this, node hashes that differ in few bits would give
	 * related draws. */
	uint64_t mixed = rendezvous_mix(key + UINT64_C(0x9e3779b97f4a7c15));
	int best = -1;
	double best_score = 0;

	for (size_t i = 0; i < count; i++) {
		if (!(nodes[i].weight > 0) || (allowed && !allowed(ctx, i)))
			continue;
		double s = rendezvous_score(&nodes[i], mixed);
		if (s > best_score) {
			best = (int)i;
			best_score = s;
		}
	}
	return best;
}
