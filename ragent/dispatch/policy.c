/* policy.c: the policies. Each is one function. Their memory between picks is one struct under one lock, taken once per
 * handshake.
 */
#include "ragent/dispatch/policy.h"

#include <pthread.h>
#include <stdlib.h>

/* So few handshakes under way do not show that an agent has more than its share. */
#define LOCAL_ALLOWANCE      8.0
#define HANDSHAKE_US_UNKNOWN 1000u

struct policy {
	enum conf_policy kind;
	double bound;
	pthread_mutex_t lock;
	uint64_t turn;
	double credit[AGENTS_MAX]; /* weighted: by agent */
};

static size_t pick_round_robin(struct policy *p, const struct candidate *c, size_t count, int affinity)
{
	return p->turn++ % count;
}

/* Smooth weighted round-robin: each agent earns its weight as credit; the agent with most credit is chosen, and pays
 * the credit of all. */
static size_t pick_weighted(struct policy *p, const struct candidate *c, size_t count, int affinity)
{
	double total = 0;
	size_t best = 0;

	for (size_t i = 0; i < count; i++) {
		p->credit[c[i].agent] += c[i].node.weight;
		total += c[i].node.weight;
		if (p->credit[c[i].agent] > p->credit[c[best].agent])
			best = i;
	}
	p->credit[c[best].agent] -= total;
	return best;
}

/* The least cost by weight; agents of equal cost take turns. */
static size_t pick_least(
	struct policy *p, const struct candidate *c, size_t count, double (*cost)(const struct candidate *))
{
	size_t first = p->turn++ % count;
	size_t best = first;

	for (size_t n = 1; n < count; n++) {
		size_t i = (first + n) % count;
		if (cost(&c[i]) * c[best].node.weight < cost(&c[best]) * c[i].node.weight)
			best = i;
	}
	return best;
}

static double cost_connections(const struct candidate *c)
{
	return (double)(c->connections + c->handshakes);
}

static double cost_handshakes(const struct candidate *c)
{
	return (double)c->handshakes;
}

/* The expected time of the next handshake: the time of a recent one, for it and for each that waits already. */
static double cost_response(const struct candidate *c)
{
	uint32_t us = c->handshake_us ? c->handshake_us : HANDSHAKE_US_UNKNOWN;

	return (double)us * (double)(c->handshakes + 1);
}

static size_t pick_least_connections(struct policy *p, const struct candidate *c, size_t count, int affinity)
{
	return pick_least(p, c, count, cost_connections);
}

static size_t pick_shortest_response(struct policy *p, const struct candidate *c, size_t count, int affinity)
{
	return pick_least(p, c, count, cost_response);
}

/* Choose the affinity agent, unless it makes clearly more handshakes than its share. */
static size_t pick_local(struct policy *p, const struct candidate *c, size_t count, int affinity)
{
	double handshakes = 1, weight = 0;

	if (affinity < 0)
		return pick_least(p, c, count, cost_handshakes);
	if (p->bound == 0)
		return (size_t)affinity;
	for (size_t i = 0; i < count; i++) {
		handshakes += (double)c[i].handshakes;
		weight += c[i].node.weight;
	}
	double share = handshakes * c[affinity].node.weight / weight;
	if ((double)(c[affinity].handshakes + 1) <= p->bound * share + LOCAL_ALLOWANCE)
		return (size_t)affinity;
	return pick_least(p, c, count, cost_handshakes);
}

static const struct {
	const char *name;
	size_t (*pick)(struct policy *p, const struct candidate *c, size_t count, int affinity);
} kinds[] = {
	[CONF_ROUND_ROBIN] = { "round-robin", pick_round_robin },
	[CONF_WEIGHTED] = { "weighted", pick_weighted },
	[CONF_LEAST_CONNECTIONS] = { "least-connections", pick_least_connections },
	[CONF_SHORTEST_RESPONSE] = { "shortest-response", pick_shortest_response },
	[CONF_LOCAL] = { "local", pick_local },
};

struct policy *policy_create(enum conf_policy kind, double affinity_bound)
{
	struct policy *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->kind = kind;
	p->bound = affinity_bound;
	if (pthread_mutex_init(&p->lock, NULL) != 0) {
		free(p);
		return NULL;
	}
	return p;
}

void policy_destroy(struct policy *p)
{
	if (!p)
		return;
	pthread_mutex_destroy(&p->lock);
	free(p);
}

size_t policy_pick(struct policy *p, const struct candidate *candidates, size_t count, int affinity)
{
	pthread_mutex_lock(&p->lock);
	size_t picked = kinds[p->kind].pick(p, candidates, count, affinity);
	pthread_mutex_unlock(&p->lock);
	return picked;
}

const char *policy_name(enum conf_policy kind)
{
	return kinds[kind].name;
}
