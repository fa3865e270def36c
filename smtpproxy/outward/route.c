/* route.c: the file's rows for a receiver, and the facts by which two routes are one. */
#include "smtpproxy/outward/route.h"

#include <string.h>

#include "net/socket/address.h"
#include "net/socket/endpoints.h"

/* An attacker does not choose it: it is FNV-1a of addresses that senders reach through us. */
static uint32_t hash_in(uint32_t hash, const struct sockaddr_storage *address)
{
	uint8_t bytes[16];
	const size_t len = address_bytes((const struct sockaddr *)address, bytes);
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

static uint32_t hash_of_id(const uint8_t *id)
{
	uint32_t hash;
	memcpy(&hash, id + ONWARD_ID_LEN - sizeof hash, sizeof hash);
	return hash;
}

uint32_t route_hash(const struct onward_route *r)
{
	const uint32_t basis = 2166136261u ^ address_port((const struct sockaddr *)&r->to) ^ hash_of_id(r->unique_id);
	return hash_in(hash_in(basis, &r->to), &r->as);
}

uint32_t route_receiver_hash(const struct onward_route *r)
{
	return hash_in(2166136261u ^ address_port((const struct sockaddr *)&r->to), &r->to);
}

static bool same_address(const struct sockaddr_storage *x, const struct sockaddr_storage *y)
{
	return address_is_same((const struct sockaddr *)x, (const struct sockaddr *)y);
}

bool route_is_same(const struct onward_route *a, const struct onward_route *b)
{
	return same_address(&a->to, &b->to) && same_address(&a->as, &b->as) && a->head == b->head &&
	       !memcmp(a->unique_id, b->unique_id, sizeof a->unique_id);
}

/* A sender of another family than the receiver, which a next hop may have, cannot be shown to it. */
struct onward_route route_make(
	const struct conf_smtpproxy *c, const struct destination_goal *goal, const struct client_address *from)
{
	struct onward_route r = { .head = goal->unique_id ? ONWARD_HEADED : ONWARD_BARE };
	const struct sockaddr *to = goal->to;
	struct sockaddr_storage as;
	memcpy(&r.to, to, address_len(to));
	if (goal->unique_id)
		memcpy(r.unique_id, goal->unique_id, sizeof r.unique_id);
	if (c->outward.as_sender == CONF_OFF || from->len == 0)
		return r;
	endpoint_sockaddr(from, 0, &as);
	if (as.ss_family == to->sa_family)
		r.as = as;
	return r;
}

static const struct smtpproxy_receiver *known_receiver(const struct conf_smtpproxy *c, const struct sockaddr *to)
{
	for (size_t i = 0; i < c->outward.receiver_count; i++)
		if (address_net_has(&c->outward.receivers[i].network, to))
			return &c->outward.receivers[i];
	return NULL;
}

uint32_t route_apply_file(struct onward_route *r, const struct conf_smtpproxy *c, const struct destination_goal *goal)
{
	const struct smtpproxy_receiver *known = known_receiver(c, (const struct sockaddr *)&r->to);
	const bool by_address = goal->tls == SMTPPROXY_TLS_BY_ADDRESS && known;
	const bool has_name = by_address && known->name;
	r->tls = by_address ? known->tls : goal->tls;
	if (r->tls == SMTPPROXY_TLS_BY_ADDRESS) /* a row that tells nothing of TLS does not weaken it */
		r->tls = c->outward.tls;
	r->name = has_name ? known->name : goal->host;
	r->name_trust = has_name ? DNS_SECURE : goal->trust;
	return known && known->connections ? known->connections : c->limits.connections;
}

/* Sources: each has as many places in a circle as its weight. */

static uint32_t weight_of(const struct smtpproxy_source *s, sa_family_t family)
{
	return s->address.ss_family == family ? s->weight : 0;
}

const struct smtpproxy_source *route_pick_source(
	const struct smtpproxy_outward *outward, sa_family_t family, uint32_t nth)
{
	uint32_t all = 0;
	for (size_t i = 0; i < outward->source_count; i++)
		all += weight_of(&outward->sources[i], family);
	if (all == 0)
		return NULL;
	uint32_t place = nth % all;
	size_t i = 0;
	while (place >= weight_of(&outward->sources[i], family))
		place -= weight_of(&outward->sources[i++], family);
	return &outward->sources[i];
}
