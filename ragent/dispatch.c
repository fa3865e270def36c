/* dispatch.c: candidates, affinity, policy. */
#include "ragent/dispatch.h"

#include "proto/error.h"
#include "ragent/affinity.h"

static size_t candidates(struct ragent_worker *rw, int except)
{
	size_t count = ragent_worker_candidates(rw, except);

	return count || except == NO_AGENT ? count : ragent_worker_candidates(rw, NO_AGENT);
}

int dispatch_hello(struct ragent_worker *rw, struct front *front, const struct client_address *client,
	enum hello_offer kind, int except, struct dispatch *out)
{
	const struct candidate *c = rw->candidates;
	size_t count = candidates(rw, except);

	if (count == 0)
		return CSSL_E_NOT_FOUND;
	int affinity = affinity_pick(c, count, client, front->conf->affinity_bound);
	struct policy *policy = kind == HELLO_RESUMING ? front->resumption : front->handshake;
	size_t picked = policy_pick(policy, c, count, affinity);
	out->handshake_agent = c[picked].agent;
	out->affinity_agent = front_hands_off(front) && affinity >= 0 ? c[affinity].agent : c[picked].agent;
	return 0;
}

int dispatch_owner(struct ragent_worker *rw, struct front *front, const struct client_address *client, int except)
{
	size_t count = ragent_worker_candidates(rw, except);
	int i = affinity_pick(rw->candidates, count, client, front->conf->affinity_bound);

	return count && i >= 0 ? rw->candidates[i].agent : NO_AGENT;
}
