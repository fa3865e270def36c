/* outward.c: the tables of destinations and of what they share. */
#include "smtpproxy/outward/outward.h"

#include <stdlib.h>
#include <string.h>

#include "net/memory/container_of.h"
#include "net/socket/address.h"

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
		all += onwards_count(d->onwards.in);
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

static bool is_for(const struct destination *d, const struct onward_route *route, const struct destination_goal *goal)
{
	return route_is_same(&d->route, route) && strcmp(d->host, goal->host ? goal->host : "") == 0 &&
	       d->host_trust == goal->trust && d->goal_tls == goal->tls;
}

/* NULL: none, or there is no memory for it. */
static struct receiver_share *outward_share_of(struct outward *o, const struct onward_route *route)
{
	const struct sockaddr *to = (const struct sockaddr *)&route->to;
	const uint32_t hash = route_receiver_hash(route);
	struct receiver_share *s;
	if (route->head == ONWARD_BARE && route->as.ss_family == AF_UNSPEC)
		return NULL;
	for (struct table_link *l = table_first(&o->shares, hash); l; l = table_next(l)) {
		s = container_of(l, struct receiver_share, link);
		if (address_is_same((const struct sockaddr *)&s->to, to) && s->head == route->head)
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

/* A session enters it: its place is not another one's. */
static void outward_use(struct destination *d)
{
	if (d->use == RECEIVER_UNUSED)
		TAILQ_REMOVE(&d->outward->unused, d, unused_next);
	d->use = RECEIVER_USED;
}

static void on_destination_unused(struct destination *d)
{
	if (d->use == RECEIVER_UNUSED)
		return;
	d->use = RECEIVER_UNUSED;
	TAILQ_INSERT_TAIL(&d->outward->unused, d, unused_next);
}

static void outward_forget(struct destination *d)
{
	struct receiver_share *share = d->share == &d->own ? NULL : d->share;
	struct outward *o = d->outward;
	outward_use(d);
	table_remove(&o->destinations, &d->link);
	destination_destroy(d);
	free_if_unused(o, share);
}

static void note_step(struct outward *o)
{
	if (o->state == OUTWARD_STOPS)
		worker_at_turn_end(o->home->worker, &o->turn);
}

static void on_destination_step(struct destination *d)
{
	note_step(d->outward);
}

static const struct destination_ops destination_ops = {
	.on_unused = on_destination_unused,
	.on_step = on_destination_step,
	.on_expired = outward_forget,
};

struct destination *outward_find(
	struct outward *o, const struct destination_goal *goal, const struct client_address *from)
{
	const struct onward_route route = route_make(o->home->conf, goal, from);
	const uint32_t hash = route_hash(&route);
	struct destination *d;
	for (struct table_link *l = table_first(&o->destinations, hash); l; l = table_next(l)) {
		d = container_of(l, struct destination, link);
		if (is_for(d, &route, goal)) {
			outward_use(d);
			return d;
		}
	}
	if (o->state != OUTWARD_WORKS || outward_is_full(o))
		return NULL;
	if (has_most(o))
		outward_forget(TAILQ_FIRST(&o->unused));
	struct receiver_share *share = outward_share_of(o, &route);
	d = destination_create(o->home, &destination_ops, o, &route, goal, share);
	if (d && table_add(&o->destinations, &d->link, hash) == 0)
		return d;
	if (d)
		destination_destroy(d);
	free_if_unused(o, share);
	return NULL;
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
	note_step(o);
}

void outward_destroy(struct outward *o)
{
	struct destination *d;
	struct receiver_share *s;
	if (!o)
		return;
	turn_end_cancel(&o->turn);
	while ((d = next_of(o, NULL)))
		outward_forget(d);
	while ((s = next_share(o, NULL)))
		free_share(o, s);
	table_clear(&o->destinations);
	table_clear(&o->shares);
	free(o);
}
