/* outward.c: the table of destinations: hashed by address and port. */
#include "smtpproxy/outward/outward.h"

#include <stdlib.h>
#include <string.h>

#include "net/address.h"
#include "net/container_of.h"

#define BUCKETS 1024u

enum outward_state { OUTWARD_WORKS, OUTWARD_STOPS, OUTWARD_STOPPED };

struct outward {
	const struct outward_home *home;
	TAILQ_HEAD(destinations, destination) buckets[BUCKETS];
	unsigned count;
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
	return o->count;
}

void outward_each(const struct outward *o, void (*fn)(void *ctx, const struct destination *d), void *ctx)
{
	const struct destination *d;
	for (unsigned i = 0; i < BUCKETS; i++) {
		TAILQ_FOREACH(d, &o->buckets[i], next)
		fn(ctx, d);
	}
}

static unsigned connections(const struct outward *o)
{
	const struct destination *d;
	unsigned all = 0;
	for (unsigned i = 0; i < BUCKETS; i++) {
		TAILQ_FOREACH(d, &o->buckets[i], next)
		all += destination_connections(d);
	}
	return all;
}

static void on_turn_end(struct turn_end *t)
{
	struct outward *o = container_of(t, struct outward, turn);
	if (o->state != OUTWARD_STOPS || connections(o) > 0)
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
	o->turn.fn = on_turn_end;
	for (unsigned i = 0; i < BUCKETS; i++)
		TAILQ_INIT(&o->buckets[i]);
	return o;
}

/* An attacker does not choose it: it is FNV-1a of addresses that senders reach through us. */
static unsigned bucket_of(const struct sockaddr *to)
{
	uint8_t bytes[16];
	const size_t len = address_bytes(to, bytes);
	uint32_t hash = 2166136261u ^ address_port(to);
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash % BUCKETS;
}

static int is_to(const struct destination *d, const struct sockaddr *to)
{
	uint8_t a[16], b[16];
	const struct sockaddr *other = (const struct sockaddr *)&d->route.to;
	const size_t len = address_bytes(to, a);
	return address_bytes(other, b) == len && memcmp(a, b, len) == 0 && address_port(other) == address_port(to);
}

struct destination *outward_find(struct outward *o, const struct sockaddr *to)
{
	struct destinations *bucket = &o->buckets[bucket_of(to)];
	struct destination *d;
	TAILQ_FOREACH(d, bucket, next)
	{
		if (is_to(d, to))
			return d;
	}
	if (o->state != OUTWARD_WORKS || o->count >= o->home->conf->limits.destinations)
		return NULL;
	d = destination_create(o, to);
	if (!d)
		return NULL;
	TAILQ_INSERT_TAIL(bucket, d, next);
	o->count++;
	return d;
}

void outward_forget(struct outward *o, struct destination *d)
{
	TAILQ_REMOVE(&o->buckets[bucket_of((const struct sockaddr *)&d->route.to)], d, next);
	o->count--;
	destination_destroy(d);
}

void outward_note_step(struct outward *o)
{
	if (o->state == OUTWARD_STOPS)
		worker_at_turn_end(o->home->worker, &o->turn);
}

void outward_reload(struct outward *o)
{
	struct destination *d;
	for (unsigned i = 0; i < BUCKETS; i++) {
		TAILQ_FOREACH(d, &o->buckets[i], next)
		destination_reload(d);
	}
}

void outward_stop(struct outward *o, void (*done)(void *ctx), void *ctx)
{
	struct destination *d;
	o->state = OUTWARD_STOPS;
	o->done = done;
	o->done_ctx = ctx;
	for (unsigned i = 0; i < BUCKETS; i++) {
		TAILQ_FOREACH(d, &o->buckets[i], next)
		destination_stop(d);
	}
	outward_note_step(o);
}

void outward_destroy(struct outward *o)
{
	struct destination *d;
	if (!o)
		return;
	turn_end_cancel(&o->turn);
	for (unsigned i = 0; i < BUCKETS; i++) {
		while ((d = TAILQ_FIRST(&o->buckets[i])))
			outward_forget(o, d);
	}
	free(o);
}
