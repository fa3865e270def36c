/* dispatch.c: candidates, affinity, policy. */
#include "ragent/dispatch/dispatch.h"

#include "proto/error.h"
#include "ragent/dispatch/affinity.h"

static size_t candidates(struct links *links, int except)
{
	size_t count = links_candidates(links, except);

	return count || except == NO_AGENT ? count : links_candidates(links, NO_AGENT);
}

int dispatch_hello(struct links *links, struct front *front, const struct client_address *client, enum hello_offer kind,
	int except, struct dispatch *out)
{
	const struct candidate *c = links->candidates;
	size_t count = candidates(links, except);

	if (count == 0)
		return CSSL_E_NOT_FOUND;
	int affinity = affinity_pick(c, count, client, front->conf->affinity_bound);
	struct policy *policy = kind == HELLO_RESUMING ? front->resumption : front->handshake;
	size_t picked = policy_pick(policy, c, count, affinity);
	out->handshake_agent = c[picked].agent;
	out->affinity_agent = front_hands_off(front) && affinity >= 0 ? c[affinity].agent : c[picked].agent;
	return 0;
}

int dispatch_preamble(struct links *links, struct front *front, const struct client_address *client, int except)
{
	const struct candidate *c = links->candidates;
	size_t count = candidates(links, except);

	if (count == 0)
		return NO_AGENT;
	return c[policy_pick(front->preamble, c, count, affinity_pick(c, count, client, front->conf->affinity_bound))]
		.agent;
}

int dispatch_owner(struct links *links, struct front *front, const struct client_address *client, int except)
{
	const struct candidate *c = links->candidates;
	size_t count = links_candidates(links, except);

	if (count == 0)
		return NO_AGENT;
	int affinity = affinity_pick(c, count, client, front->conf->affinity_bound);
	if (front_hands_off(front) && affinity >= 0)
		return c[affinity].agent;
	return c[policy_pick(front->handshake, c, count, affinity)].agent;
}

static struct candidate *find_candidate(struct links *links, size_t count, int agent)
{
	for (size_t i = 0; i < count; i++)
		if (links->candidates[i].agent == agent)
			return &links->candidates[i];
	return NULL;
}

int dispatch_home(struct links *links, struct front *front, const struct client_address *client, int owner)
{
	size_t count = links_candidates(links, NO_AGENT);
	struct candidate *own = find_candidate(links, count, owner);

	if (!own)
		return owner; /* a suspect agent could not hand it off */
	if (own->connections)
		own->connections--; /* or a full agent would send its own connections away */
	int i = affinity_pick(links->candidates, count, client, front->conf->affinity_bound);
	return i < 0 ? owner : links->candidates[i].agent;
}
