/* outward.c: the tables of destinations and of what they share. */
#include "smtpproxy/outward/outward.h"

#include <stdlib.h>
#include <string.h>

#include "net/address.h"
#include "net/container_of.h"
#include "net/endpoints.h"

enum outward_state { OUTWARD_WORKS, OUTWARD_STOPS, OUTWARD_STOPPED };

struct outward {
	const struct outward_home *home;
	struct table destinations, shares;
	TAILQ_HEAD(, destination) unused; /* the first one for the longest time */
	enum outward_state state;
	struct turn_end turn;
	void (*done)(void *ctx);
	void *done_ctx;
};

const struct outward_home *outward_home(const struct outward *o)
{
	return o->home;
}

unsigned outward_count(const struct outward *o)
{
	return (unsigned)o->destinations.count;
}

/* The first one behind NULL. */
static struct destination *next_of(const struct outward *o, const struct destination *d)
{
	struct table_link *l = table_walk(&o->destinations, d ? &d->link : NULL);
	return l ? container_of(l, struct destination, link) : NULL;
}

static struct receiver_share *next_share(const struct outward *o, const struct receiver_share *s)
{
	struct table_link *l = table_walk(&o->shares, s ? &s->link : NULL);
	return l ? container_of(l, struct receiver_share, link) : NULL;
}

void outward_each(const struct outward *o, void (*fn)(void *ctx, const struct destination *d), void *ctx)
{
	for (const struct destination *d = next_of(o, NULL); d; d = next_of(o, d))
		fn(ctx, d);
}

static unsigned outward_connections(const struct outward *o)
{
	unsigned all = 0;
	for (const struct destination *d = next_of(o, NULL); d; d = next_of(o, d))
		all += destination_connections(d);
	return all;
}

static void on_outward_turn_end(struct turn_end *t)
{
	struct outward *o = container_of(t, struct outward, turn);
	if (o->state != OUTWARD_STOPS || outward_connections(o) > 0)
		return;
	o->state = OUTWARD_STOPPED;
	o->done(o->done_ctx);
}

struct outward *outward_create(const struct outward_home *home)
{
	struct outward *o = calloc(1, sizeof *o);
	if (!o)
		return NULL;
	o->home = home;
	o->turn.fn = on_outward_turn_end;
	TAILQ_INIT(&o->unused);
	return o;
}

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

static uint32_t route_hash(const struct onward_route *r)
{
	const uint32_t basis = 2166136261u ^ address_port((const struct sockaddr *)&r->to) ^ hash_of_id(r->unique_id);
	return hash_in(hash_in(basis, &r->to), &r->as);
}

static bool same_address(const struct sockaddr_storage *x, const struct sockaddr_storage *y)
{
	return address_is_same((const struct sockaddr *)x, (const struct sockaddr *)y);
}

/* A sender of another family than the receiver, which a next hop may have, cannot be shown to it. */
static struct onward_route route_of(
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

uint32_t outward_apply_file(const struct outward *o, struct destination *d)
{
	const struct conf_smtpproxy *c = o->home->conf;
	const struct smtpproxy_receiver *known = known_receiver(c, (const struct sockaddr *)&d->route.to);
	const bool by_address = d->goal_tls == SMTPPROXY_TLS_BY_ADDRESS && known;
	const bool has_name = by_address && known->name;
	d->route.tls = by_address ? known->tls : d->goal_tls;
	if (d->route.tls == SMTPPROXY_TLS_BY_ADDRESS) /* a row that tells nothing of TLS does not weaken it */
		d->route.tls = c->outward.tls;
	d->route.name = has_name ? known->name : d->host[0] ? d->host : NULL;
	d->route.name_trust = has_name ? DNS_SECURE : d->host_trust;
	return known && known->connections ? known->connections : c->limits.connections;
}

static bool is_for(const struct destination *d, const struct onward_route *route, const struct destination_goal *goal)
{
	return same_address(&d->route.to, &route->to) && same_address(&d->route.as, &route->as) &&
	       d->route.head == route->head && !memcmp(d->route.unique_id, route->unique_id, sizeof route->unique_id) &&
	       strcmp(d->host, goal->host ? goal->host : "") == 0 && d->host_trust == goal->trust &&
	       d->goal_tls == goal->tls;
}

/* NULL: none, or there is no memory for it. */
static struct receiver_share *outward_share_of(struct outward *o, const struct onward_route *route)
{
	const uint32_t hash = hash_in(2166136261u ^ address_port((const struct sockaddr *)&route->to), &route->to);
	struct receiver_share *s;
	if (route->head == ONWARD_BARE && route->as.ss_family == AF_UNSPEC)
		return NULL;
	for (struct table_link *l = table_first(&o->shares, hash); l; l = table_next(l)) {
		s = container_of(l, struct receiver_share, link);
		if (same_address(&s->to, &route->to) && s->head == route->head)
			return s;
	}
	s = calloc(1, sizeof *s);
	if (!s || table_add(&o->shares, &s->link, hash)) {
		free(s);
		return NULL;
	}
	s->to = route->to;
	s->head = route->head;
	receiver_share_init(s, worker_now_ms(o->home->worker));
	return s;
}

static void free_share(struct outward *o, struct receiver_share *s)
{
	table_remove(&o->shares, &s->link);
	free(s);
}

/* A share of named messages stays. Only the next hops of the file get named messages, so there are few such shares. And
 * each destination of a named message lives only as long as the message, so the share would be made again each time. */
static void free_if_unused(struct outward *o, struct receiver_share *s)
{
	if (s && s->head == ONWARD_BARE && LIST_EMPTY(&s->members))
		free_share(o, s);
}

static bool has_most(const struct outward *o)
{
	return o->destinations.count >= o->home->conf->limits.destinations;
}

bool outward_is_full(const struct outward *o)
{
	return has_most(o) && TAILQ_EMPTY(&o->unused);
}

struct destination *outward_find(
	struct outward *o, const struct destination_goal *goal, const struct client_address *from)
{
	const struct onward_route route = route_of(o->home->conf, goal, from);
	const uint32_t hash = route_hash(&route);
	struct destination *d;
	for (struct table_link *l = table_first(&o->destinations, hash); l; l = table_next(l)) {
		d = container_of(l, struct destination, link);
		if (is_for(d, &route, goal))
			return d;
	}
	if (o->state != OUTWARD_WORKS || outward_is_full(o))
		return NULL;
	if (has_most(o))
		outward_forget(o, TAILQ_FIRST(&o->unused));
	struct receiver_share *share = outward_share_of(o, &route);
	d = destination_create(o, &route, goal, share);
	if (d && table_add(&o->destinations, &d->link, hash) == 0)
		return d;
	if (d)
		destination_destroy(d);
	free_if_unused(o, share);
	return NULL;
}

void outward_note_used(struct outward *o, struct destination *d)
{
	if (d->use == RECEIVER_UNUSED)
		TAILQ_REMOVE(&o->unused, d, unused_next);
	d->use = RECEIVER_USED;
}

void outward_note_unused(struct outward *o, struct destination *d)
{
	if (d->use == RECEIVER_UNUSED)
		return;
	d->use = RECEIVER_UNUSED;
	TAILQ_INSERT_TAIL(&o->unused, d, unused_next);
}

void outward_forget(struct outward *o, struct destination *d)
{
	outward_note_used(o, d);
	table_remove(&o->destinations, &d->link);
	struct receiver_share *share = d->share == &d->own ? NULL : d->share;
	destination_destroy(d);
	free_if_unused(o, share);
}

void outward_note_step(struct outward *o)
{
	if (o->state == OUTWARD_STOPS)
		worker_at_turn_end(o->home->worker, &o->turn);
}

/* Shares outlive their destinations: that of messages with names has none while no such message is under way. */
void outward_reload(struct outward *o)
{
	for (struct destination *d = next_of(o, NULL); d; d = next_of(o, d))
		destination_reload(d);
	for (struct receiver_share *s = next_share(o, NULL); s; s = next_share(o, s))
		s->fallback = (struct fallback){ 0 };
}

void outward_stop(struct outward *o, void (*done)(void *ctx), void *ctx)
{
	o->state = OUTWARD_STOPS;
	o->done = done;
	o->done_ctx = ctx;
	for (struct destination *d = next_of(o, NULL); d; d = next_of(o, d))
		destination_stop(d);
	outward_note_step(o);
}

void outward_destroy(struct outward *o)
{
	struct destination *d;
	struct receiver_share *s;
	if (!o)
		return;
	turn_end_cancel(&o->turn);
	while ((d = next_of(o, NULL)))
		outward_forget(o, d);
	while ((s = next_share(o, NULL)))
		free_share(o, s);
	table_clear(&o->destinations);
	table_clear(&o->shares);
	free(o);
}

/* Sources: each has as many places in a circle as its weight. */

static uint32_t weight_of(const struct smtpproxy_source *s, sa_family_t family)
{
	return s->address.ss_family == family ? s->weight : 0;
}

const struct smtpproxy_source *sources_pick(const struct smtpproxy_outward *outward, sa_family_t family, uint32_t nth)
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
